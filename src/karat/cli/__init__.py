"""The command line: one file per command, a thin wrapper on the function of the same name.

Commands are imported when they are called, so that `karat --help` answers at once.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from karat import __version__
from karat.errors import KaratError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (
    "score",
    "compare",
    "check",
    "explain",
    "curve",
    "report",
    "view",
    "power",
    "agree",
    "judge-card",
    "anchor",
    "drift",
    "measures",
    "demo",
)
BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


class _ReaderGoneError(Exception):
    """Nobody reads standard output any more; click has its own idea of what that means."""


class _Commands(click.Group):
    """Finds a command in the module of its name."""

    def invoke(self, ctx: click.Context) -> object:
        """Call the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGoneError from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of use."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in COMMANDS:
            suggestion = nearest(cmd_name, COMMANDS)
            raise click.UsageError(f"no command {cmd_name!r}. {suggestion}".strip(), ctx)
        command: click.Command = importlib.import_module(
            f"karat.cli.{cmd_name.replace('-', '_')}"
        ).command
        return command


@click.group(cls=_Commands, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="karat")
def cli() -> None:
    """Measure how good the retrieval of a RAG system is.

    \b
    karat demo                                  see it on a small task
    karat score run.trec --gold qrels.txt       measure a run
    karat compare a.trec b.trec --gold qrels    is b better than a?
    karat check run.trec --gold qrels.txt       problems in the files
    karat explain run.trec --gold qrels.txt     how a query's numbers are computed
    karat report monday -o report.html          one page with everything
    karat anchor gold.jsonl --corpus docs       labels that survive a new chunker
    karat measures nDCG                         what a measure means

    Exit codes: 0 done, 1 a gate failed, 2 bad input or usage, 3 a gate could not be decided or
    a measure has no value for any query, 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    _write_any_letter()
    try:
        code = cli.main(arguments, prog_name="karat", standalone_mode=False)
        _flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        _exit(INTERRUPTED, "interrupted")
    except click.ClickException as error:
        error.show()
        _exit(BAD_INPUT)
    except KaratError as error:
        _exit(BAD_INPUT, str(error))
    except MemoryError:
        _exit(BAD_INPUT, "out of memory\n  fix: score fewer runs at once, or without --bounds")
    except (_ReaderGoneError, BrokenPipeError):
        _exit(BROKEN_PIPE)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EFBIG):
            raise
        _exit(BAD_INPUT, f"the output could not be written: {error.strerror}")
    sys.exit(code if isinstance(code, int) else 0)


def _write_any_letter() -> None:
    """Let letters that the terminal does not know be escapes rather than a crash."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush() -> None:
    if sys.stdout is not None:  # None: closed by the caller
        sys.stdout.flush()


def _exit(code: int, message: str = "") -> NoReturn:
    if message:
        from karat.reports.escape import printable  # noqa: PLC0415

        click.echo("\n".join(map(printable, f"karat: {message}".split("\n"))), err=True)
    # what stdout could not take must not be tried again at exit
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
    sys.exit(code)
