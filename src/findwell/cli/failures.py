"""What the command line says when something fails that findwell has no message of its own for."""

from __future__ import annotations

import errno
import os
import platform
import re
import shlex
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findwell import __version__
from findwell.cli.command import plain_message, settings_of
from findwell.core.errors import FindwellError, InputError, OptionError, SaveError, nearest
from findwell.io.native import described

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

ISSUES = "https://github.com/findwell-eval/findwell/issues"  # as in pyproject.toml
FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EROFS})
MESSAGES_OF_CLICK = {
    r"^Option '(.+)' requires an argument": r"\1 needs a value",
    r"^Option '(.+)' does not take a value": r"\1 takes no value",
    r"^Got unexpected extra arguments? \((.*)\)": r"too many arguments: \1",
}
LONGEST_MESSAGE = 400  # letters of the message of an error, and of the command
# what an address may hold and a report must not: a login, and keys behind a question mark
_LOGIN, _KEYS = re.compile(r"(?<=://)[^/@\s]*@"), re.compile(r"(://[^\s?']*\?)[^\s']*")


def formatted_traceback(error: BaseException) -> str:
    """Return the traceback of an error, the errors before it included."""
    return "".join(traceback.format_exception(error)).rstrip("\n")


class InterruptedByUserError(FindwellError):
    """The user has stopped the command."""


class UnexpectedError(FindwellError):
    """A failure that should not happen: what, where, with which versions, who to tell."""

    def __init__(self, error: BaseException, arguments: Sequence[str]) -> None:
        reason = next(iter(str(error).strip().splitlines()), "")
        kind = type(error).__name__
        what = f"{kind}: {_cut(reason)}" if reason else kind
        fix = f"report it at {ISSUES}, with what --debug shows"
        if isinstance(error, MemoryError):
            what, fix = f"out of memory ({what})", "score fewer runs at once, or without --bounds"
        super().__init__(f"unexpected failure: {what}", where=_place(error.__traceback__), fix=fix)
        self.command = without_secrets(shlex.join(["findwell", *arguments]))

    def __str__(self) -> str:
        lines = [
            self.what,
            *([f"  in: {self.where}"] if self.where else []),
            f"  with: {_versions()}",
            f"  command: {_cut(self.command)}",
            f"  fix: {self.fix}",
        ]
        return "\n".join(lines)


def without_secrets(text: str) -> str:
    """Return a text without what the addresses in it may hold: a login, and keys."""
    return _KEYS.sub(r"\1***", _LOGIN.sub("***@", text))


def mistake_of(error: BaseException, arguments: Sequence[str]) -> FindwellError | None:
    """Return the error that says what the user can do about it; None if nothing can be done."""
    if isinstance(error, click.ClickException):
        return mistaken_usage(error)
    if isinstance(error, OSError):
        return mistaken_file(error, arguments)
    return error if isinstance(error, FindwellError) else None


def mistaken_usage(error: click.ClickException) -> OptionError:
    """Return a mistake in a command line as an error of findwell, with what to do about it."""
    context = getattr(error, "ctx", None)
    path = "findwell" if context is None else context.command_path
    fix = f"`{path} --help` shows how it is used"
    if isinstance(error, click.NoSuchOption):
        return _unknown_option(error, path)
    if isinstance(error, click.BadParameter) and error.param is not None:
        named = max(error.param.opts, key=len)
        if not isinstance(error, click.MissingParameter):
            return OptionError(f"{named}: {plain_message(error)}", fix=fix)
        if error.param.param_type_name == "argument":
            named = "" if context is None else error.param.make_metavar(context)
        return OptionError(f"{named} is missing", fix=fix)
    what = error.format_message().removesuffix(".")
    for theirs, ours in MESSAGES_OF_CLICK.items():
        what = re.sub(theirs, ours, what)
    return OptionError(what, fix=fix)


def _unknown_option(error: click.NoSuchOption, path: str) -> OptionError:
    """Suggest options of similar names, or the setting that has the name."""
    command = error.ctx.command if error.ctx is not None else None
    if error.ctx is not None and error.ctx.parent is not None:
        root = error.ctx.find_root()
        if any(error.option_name in each.opts for each in root.command.params):
            fix = f"write it before the command: findwell {error.option_name} … {path[9:]} …"
            return OptionError(f"{error.option_name} is not an option of `{path}`", fix=fix)
    key = error.option_name.lstrip("-").replace("-", "_")
    for each in settings_of(command) if command is not None else ():
        if key in each.fields:
            setting = each.fields[key]
            values = setting.metavar if setting.is_mapping else f"={setting.metavar}"
            fix = f"it is a setting: {setting.spelling}{values}"
            return OptionError(f"unknown option {error.option_name}", fix=fix)
    known = [name for each in command.params for name in each.opts] if command is not None else []
    suggestion = nearest(error.option_name, [name for name in known if name.startswith("--")])
    layer = "--help" if isinstance(command, click.Group) else "--help-all"
    fix = f"{suggestion} `{path} {layer}` lists the options".strip()
    return OptionError(f"unknown option {error.option_name}", fix=fix)


def mistaken_file(error: OSError, arguments: Sequence[str]) -> FindwellError | None:
    """Return the error about a file that the user named, or a full disk; None if it is neither."""
    reason = error.strerror or str(error)
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    if error.errno in FULL_DISK:
        if not name:
            return SaveError(f"the output could not be written: {reason}")
        fix = "free some space, or name another place for the output (TMPDIR: temporary files)"
        return SaveError(reason, where=name, fix=fix)
    if name and _is_given(name, arguments):
        fix = "check that it is there, and who may read and write it"
        return InputError(reason, where=name, fix=fix)
    return None


def _is_given(name: str, arguments: Sequence[str]) -> bool:
    """Tell whether a file is an argument or the value of an option, or is in such a folder."""
    path = Path(name).absolute()
    values = {value for each in arguments for value in (each, each.partition("=")[2]) if value}
    return any(path.is_relative_to(Path(value).absolute()) for value in values)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}…"


def _place(trace: TracebackType | None) -> str:
    """Name the line where it failed, from the name of its package on."""
    frames = traceback.extract_tb(trace)
    if not frames:
        return ""
    last = frames[-1]
    parts = Path(last.filename).parts
    tail = parts[parts.index("site-packages") + 1 :] if "site-packages" in parts else parts[-3:]
    return f"{'/'.join(tail)}, line {last.lineno}"


def _versions() -> str:
    polars = sys.modules.get("polars")
    libraries = f"polars {polars.__version__}, " if polars is not None else ""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    ours = f"findwell {__version__} ({described()})"
    return f"{ours}, Python {platform.python_version()}, {libraries}{system}"
