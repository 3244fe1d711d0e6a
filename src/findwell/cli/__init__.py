"""The command line: one file per command, a thin wrapper on the function of the same name.

Commands are imported when they are called, so that `findwell --help` answers at once.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from findwell import __version__
from findwell.cli.command import DEBUG, DEBUG_VARIABLE, Group
from findwell.core.errors import AlignError, FindwellError, PluginError
from findwell.core.plugins import Registry
from findwell.io.native import described

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTIONS = {
    "Measure": ("score", "compare", "explain", "report", "view"),
    "Retrieve and tune": ("run", "fuse", "tune", "power", "curve"),
    "Start": ("doctor", "check", "init", "demo", "measures", "choose"),
    "Labels and judges": ("labels", "judge", "questions"),
    "Production": ("monitor",),
    "Settings": ("explain-config", "trust", "completion", "schema", "skill"),
}
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)
BAD_INPUT, UNEXPECTED, INTERRUPTED, BROKEN_PIPE = 2, 70, 130, 141
GOLD_OF = "gold of"  # key in the context: the configuration that names the gold
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True}


class _ReaderGoneError(Exception):
    """Standard output has no reader any more; click has its own idea of what that means."""


class _EndOfFileError(Exception):
    """Something ended too early; click would take it for Ctrl-D at a prompt."""


def register_command(command: object) -> click.Command:
    """Add a command, which an entry point of the group `findwell.commands` names."""
    if not isinstance(command, click.Command):
        raise PluginError(
            f"{command!r} is not a command of click",
            fix="point the entry point to a click.Command",
        )
    name = command.name or ""
    if not name or name in COMMANDS:
        raise PluginError(
            f"the name {name!r} of a command is taken by findwell, or empty",
            fix="give the new command another name",
        )
    return PLUGINS.register(name, command)


PLUGINS: Registry[click.Command] = Registry(
    "command", group="findwell.commands", accept=register_command
)


class _Commands(Group):
    """Finds a command in the module of its name, or among those of installed packages."""

    sections = SECTIONS

    def invoke(self, ctx: click.Context) -> object:
        """Call the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGoneError from None
        except EOFError as error:
            raise _EndOfFileError from error
        except AlignError as error:
            if GOLD_OF in ctx.meta:
                error.fix += (
                    f"; the gold is that of {ctx.meta[GOLD_OF]}: `findwell --config none …` takes "
                    "the one that records hold, --gold names another"
                )
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of use, those of installed packages last."""
        del ctx
        with contextlib.suppress(PluginError):  # said where a command is not found
            return [*COMMANDS, *PLUGINS]
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name in COMMANDS:
            module = importlib.import_module(f"findwell.cli.{cmd_name.replace('-', '_')}")
            command: click.Command = module.command
            return command
        found = PLUGINS.known().get(cmd_name)
        if found is None:
            raise self.unknown(ctx, cmd_name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and what the configuration of the project says for it."""
        name, command, rest = super().resolve_command(ctx, args)
        asks_for_help = any(word == "-h" or word.startswith("--help") for word in rest)
        silent = asks_for_help or ctx.resilient_parsing  # a shell completes the line
        if name is not None and command is not None and not silent:
            _configure(self, ctx, name, command, rest)
        return name, command, rest


def _configure(
    group: click.Group, context: click.Context, name: str, command: click.Command, rest: list[str]
) -> None:
    """Let the settings of the project be the defaults of a command, and say which do."""
    from findwell.cli import configuration, options  # noqa: PLC0415

    found = configuration.Configuration.find(context.params.get("config"))
    if found is None or name in configuration.UNCONFIGURED:
        return
    values, words = found.defaults(group, context, name), rest
    context.default_map = {name: values}
    chosen: click.Command | None = command
    if isinstance(command, click.Group):  # only what is checked below may have an effect
        while words and words[0].startswith("-"):
            words = words[1:]
        inner = words[0] if words else ""
        values = values.get(inner, {})
        context.default_map = {name: {inner: values}}
        chosen = configuration.commands_of(command, context).get(inner)
    if chosen is None:
        return
    typed = configuration.given(command, context, words)
    used = configuration.used_parameters(chosen, values, typed)
    if used:
        from findwell.cli import trust  # noqa: PLC0415

        trust.refuse_untrusted(found, group, context, used.values())
        options.note(f"config: {found.shown} sets {', '.join(sorted(used))}")
    if "gold" in used:
        context.meta[GOLD_OF] = found.shown


@click.group(cls=_Commands, context_settings=SETTINGS)
@click.option(
    "--config",
    metavar="FILE",
    help="File with the settings of the project, or none (default: findwell.toml or "
    "[tool.findwell] in pyproject.toml, here or in a folder above; also: FINDWELL_CONFIG).",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Allow that file to name servers, code and places outside its folder, for this command "
    "only (see `findwell trust`; also: FINDWELL_TRUST=1).",
)
@click.version_option(f"{__version__} ({described()})", prog_name="findwell")
def cli(config: str | None, *, trust: bool) -> None:
    """Measure how good the retrieval of a RAG system is.

    \b
    findwell demo                                  see it on a small task
    findwell run app:search --queries q.jsonl      ask a retriever, make a run
    findwell score run.trec --gold qrels.txt       measure a run
    findwell compare a.trec b.trec --gold qrels    is b better than a?
    findwell report monday -o report.html          one page with everything

    Exit codes: 0 done, 1 a gate failed, 2 bad input or usage, 3 a gate could not be decided or
    a measure has no value for any query, 70 an unexpected failure (report it), 130 interrupted,
    141 the output had no reader, 143 terminated.
    """
    del config, trust  # read where the command is found


cli.params.append(
    click.Option(
        [DEBUG],
        is_flag=True,
        expose_value=False,
        help=f"Show the traceback of a failure (also: {DEBUG_VARIABLE}=1).",
    )
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # unknown letters are escapes rather than a crash
            stream.reconfigure(errors="backslashreplace")
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    shared: dict[str, Any] = {}  # what the command line knows when a command fails
    try:
        code = cli.main(given, prog_name="findwell", standalone_mode=False, obj=shared)
        _flush()
    except (_ReaderGoneError, BrokenPipeError):
        _exit(BROKEN_PIPE)
    except SystemExit:  # a signal
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of polars is not an Exception
        _fail(error, given, shared)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(error: BaseException, arguments: Sequence[str], shared: dict[str, Any]) -> NoReturn:
    """Say what went wrong, to people and in JSON if asked to, and exit.

    The exit code is 2 if the user can fix it, 130 if it was interrupted, else 70.
    """
    from findwell.cli import envelope, failures  # noqa: PLC0415

    interrupted = isinstance(error, click.exceptions.Abort | KeyboardInterrupt)
    if _wants_traceback(arguments) and not interrupted:
        _say(failures.formatted_traceback(error))
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        _say(error.format_message())
        _exit(BAD_INPUT)
    if isinstance(error, _EndOfFileError) and error.__cause__ is not None:
        error = error.__cause__
    said: FindwellError
    if interrupted:
        code, said = INTERRUPTED, failures.InterruptedByUserError("interrupted")
    elif (mistake := failures.mistake_of(error, arguments)) is not None:
        code, said = BAD_INPUT, mistake
    else:
        code, said = UNEXPECTED, failures.UnexpectedError(error, arguments)
    envelope.write_failure(shared, arguments, said)
    _exit(code, str(said))


def _wants_traceback(arguments: Sequence[str]) -> bool:
    """Tell whether tracebacks are to be shown; this is known even where an option is wrong."""
    given = list(arguments)
    options = given[: given.index("--")] if "--" in given else given
    return DEBUG in options or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


def _flush() -> None:
    if sys.stdout is not None:  # None: closed by the caller
        sys.stdout.flush()


def _exit(code: int, message: str = "") -> NoReturn:
    if message:
        _say(f"findwell: {message}")
    # what stdout could not take must not be tried again at exit
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
    sys.exit(code)


def _say(text: str) -> None:
    from findwell.cli.options import error_width  # noqa: PLC0415
    from findwell.show.escape import printable  # noqa: PLC0415
    from findwell.show.tables import wrap  # noqa: PLC0415

    lines = "\n".join(map(printable, text.split("\n")))
    with contextlib.suppress(OSError):  # it may have no reader
        click.echo(wrap(lines, error_width(), hang=2), err=True)
