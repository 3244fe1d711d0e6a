"""`findwell trust`: which settings of a configuration file take effect only after the user agreed.

A configuration file may come with another person's repository. Settings that only say what is
measured take effect at once. Those that name servers, code, headers or places outside the
project's folder are guarded: they take effect after `findwell trust`, which keeps a fingerprint of
them in the user's own folder. All settings of a file that another user can change are guarded.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findwell.cli import options
from findwell.cli.command import Command, option
from findwell.core.errors import InputError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from findwell.cli.configuration import Configuration

VARIABLE, ANY_FILE = "FINDWELL_TRUST", "1"
LIST = "trusted.json"
SERVER = "it says which server texts or keys are sent to"
OUTSIDE = "it is a path outside the project's folder"
SCRIPT = "a file of this name could be run as a program"
CODE = "it names code that is run, or a server that is asked"
PROMPT = "it names what a model is asked"
OTHER_REASON = "it can do more than choose what is measured"
# texts that only choose what is measured and shown; any other text is guarded
HARMLESS_TEXTS = frozenset(
    """
    alerts ask baseline by chart cluster column columns current cutoffs date_key dialect
    dialects engine every expected_language form gold gold_format hits id_from ids language
    measures name no_regression normaliser only overlap query query_from require
    names run run_format run_id search_span shares since sizes slices spool_limit system targets
    tokenizer until weights
    """.split()  # noqa: SIM905 - easier to read than one word per line
)
MODELS = frozenset({"measures", "by", "require", "no_regression", "targets", "tokenizer"})
ASKED_SETTINGS = {"retriever": CODE, "prompt": PROMPT}
LOCAL_MODELS = frozenset({"local", "local:text", "minilm"})
SERVERS = frozenset({"base_url", "webhook", "judge", "judges", "embedder", "headers", "master"})
# flags and numbers that change what is kept of the user's own data, or what is sent
GUARDED_FLAGS = frozenset({"fresh", "gateway_port", "rebaseline", "sample", "texts"})
GUARDED_FLAGS |= {"update_baseline", "webhook_texts"}
WRITTEN_FILES = frozenset({"junit", "output", "outputs", "plot", "prometheus", "save", "file"})
# of files that no other program would run
ENDINGS = frozenset(
    "csv html json jsonl md parquet pdf png prom qrels svg tex trec tsv txt xml".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Guarded:
    """A setting that needs trust."""

    place: str  # in the file: "score.output"
    value: object
    reason: str
    parameters: frozenset[int]  # the ids of those that it sets


def refuse_untrusted(
    found: Configuration, group: click.Group, context: click.Context, used: Iterable[object]
) -> None:
    """Raise if one of the parameters that the file sets needs trust that the user did not give."""
    guarded = guarded_settings(found, group, context)
    wanted = {id(each) for each in used}
    needed = [each for each in guarded if each.parameters & wanted]
    if not needed or context.params.get("trust") or _is_trusted(found.path, fingerprint(guarded)):
        return
    first = needed[0]
    more = ", ".join(each.place for each in needed[1:])
    named = "" if found.path.parent == Path.cwd() else f" {shlex.quote(found.shown)}"
    raise OptionError(
        f"this setting takes effect only in a file that you trust: {first.reason}"
        + (f" (the same holds for {more})" if more else ""),
        where=found.where(first.place),
        fix=f"read the file; if you agree, run `findwell trust{named}`, or `findwell --trust …` "
        "for this one time; `findwell --config none …` ignores the file",
    )


def guarded_settings(
    found: Configuration, group: click.Group, context: click.Context
) -> list[Guarded]:
    """Return the settings of a file that need trust: of one that others can change, all."""
    folder = Path(os.path.realpath(found.path.parent))
    guarded: dict[str, Guarded] = {}
    for parameter, keys, value in found.sources(group, context):
        if reason := found.foreign or risk(parameter, value, folder):
            place = ".".join(keys)
            before = guarded[place].parameters if place in guarded else frozenset()
            guarded[place] = Guarded(place, value, reason, before | {id(parameter)})
    return list(guarded.values())


def risk(parameter: click.Parameter, value: object, folder: Path) -> str:
    """Return why a setting needs trust; an empty text if it does not."""
    values = value if isinstance(value, list) else [value]
    return next(filter(None, (_risk(parameter, each, folder) for each in values)), "")


def _risk(parameter: click.Parameter, value: object, folder: Path) -> str:
    from findwell.cli.command import is_path  # noqa: PLC0415

    name, text = parameter.name or "", str(value)
    texts = isinstance(parameter.type, click.types.StringParamType | click.Path)
    if name in GUARDED_FLAGS or not texts:  # a flag, a number or a choice
        return OTHER_REASON if name in GUARDED_FLAGS else ""
    if name in ASKED_SETTINGS:
        return ASKED_SETTINGS[name]
    if name in SERVERS:
        kind, _, file = text.partition(":")
        near = text in LOCAL_MODELS or (
            kind == "replay" and not _path_risk(parameter, file, folder)
        )
        return "" if near else SERVER
    if "://" in text or (name in MODELS and ":" in text):
        return SERVER
    if is_path(parameter):
        return _path_risk(parameter, text, folder)
    return "" if name in HARMLESS_TEXTS else OTHER_REASON


def _path_risk(parameter: click.Parameter, text: str, folder: Path) -> str:
    """Return why a path needs trust."""
    if text == "-":
        return ""
    if ":" in text:
        return CODE
    place = Path(os.path.realpath(folder / text))
    if not place.is_relative_to(folder):
        return OUTSIDE
    if any(part.startswith(".") for part in place.relative_to(folder).parts):
        return OUTSIDE  # .git, .venv: of the user, not of the project
    written = parameter.name in WRITTEN_FILES and parameter.metavar == "FILE"
    return SCRIPT if written and place.suffix[1:].lower() not in ENDINGS else ""


def why_foreign(status: os.stat_result, path: Path) -> str:
    """Say why others could have written an open file; an empty text if they could not."""
    if sys.platform == "win32":
        return ""
    link, folder = path.lstat(), path.parent.stat()
    if not {status.st_uid, link.st_uid} <= {0, os.getuid()}:
        return "the file belongs to another user"
    if status.st_mode & stat.S_IWOTH:
        return "every user can change the file"
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        return "every user can replace files in its folder"
    return ""


def fingerprint(guarded: Iterable[Guarded]) -> str:
    """Return what changes when a guarded setting does."""
    settings = {each.place: each.value for each in guarded}
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()


def _is_trusted(path: Path, mark: str) -> bool:
    """Tell whether the user trusts these settings of a file."""
    place = _absolute(path)
    named = os.environ.get(VARIABLE, "").split(os.pathsep)
    if (
        ANY_FILE in named
        or mark in named
        or any(str(each) in named for each in (place, *place.parents))
    ):
        return True
    return _trusted().get(str(place)) == mark


def _absolute(path: Path) -> Path:
    return Path(os.path.realpath(path.parent)) / path.name


def _list() -> Path:
    """Return the file with what the user trusts, in the user's folder for settings."""
    chosen = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if chosen.is_absolute():
        return chosen / "findwell" / LIST
    if sys.platform == "win32":
        folder = Path(os.environ.get("APPDATA", "") or Path.home() / "AppData" / "Roaming")
        return folder / "findwell" / LIST
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "findwell" / LIST
    return Path.home() / ".config" / "findwell" / LIST


def _trusted() -> dict[str, str]:
    """Return the fingerprints of what the user trusts, by file."""
    path = _list()
    try:
        with path.open("rb") as file:
            reason = why_foreign(os.fstat(file.fileno()), path)
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        reason, found = str(error), {}
    if reason or not isinstance(found, dict):
        raise InputError(
            f"the list of trusted files cannot be used: {reason or 'it is not an object'}",
            where=str(path),
            fix="delete it, and trust your files again",
        )
    return found


def _remember(path: Path, mark: str | None) -> None:
    """Put a file on the list, or take it off."""
    from findwell.io.storage.files import make_folder, write_text  # noqa: PLC0415

    known = _trusted()
    place = str(_absolute(path))
    if known.get(place) == mark:
        return
    known.pop(place, None)
    target = _list()
    make_folder(target.parent)
    write_text(
        target, json.dumps(known | ({place: mark} if mark else {}), indent=1) + "\n", private=True
    )


def trust_own(path: Path, group: click.Group, context: click.Context) -> None:
    """Trust a file that findwell itself has just written for the user."""
    from findwell.cli.configuration import Configuration  # noqa: PLC0415

    found = Configuration.read(path)
    if found is not None and (guarded := guarded_settings(found, group, context)):
        _remember(path, fingerprint(guarded))


@click.command("trust", cls=Command, short_help="Trust the settings of a file.")
@click.argument("path", metavar="[PATH]", required=False)
@option("--revoke", "Trust the file no longer.")
@click.pass_context
def command(context: click.Context, path: str | None, *, revoke: bool) -> None:
    """Let a configuration file name servers, code, headers and places outside its folder.

    \b
    findwell trust
    findwell trust other/findwell.toml

    Shows the settings that need trust, and remembers a fingerprint of them in your own folder for
    settings. When one of them changes, findwell asks for trust again. PATH is a file or its folder
    (default: the file that other commands would use here).
    """
    from findwell.cli.configuration import Configuration  # noqa: PLC0415

    parent = context.parent
    if parent is None or not isinstance(parent.command, click.Group):
        raise click.UsageError("this command belongs to `findwell`")
    if path is not None and Path(path).is_dir():
        found = Configuration.of_folder(Path(path))
    else:
        found = Configuration.find(path or parent.params.get("config"))
    if found is None:
        raise OptionError("there is no configuration file here", fix="name it: findwell trust PATH")
    if revoke:
        _remember(found.path, None)
        options.note(f"no longer trusted: {found.shown}")
        return
    guarded = guarded_settings(found, parent.command, parent)
    if not guarded:
        options.note(f"{found.shown}: no setting needs trust")
        return
    options.write("".join(_lines(guarded)), None)
    mark = fingerprint(guarded)
    _remember(found.path, mark)
    options.note(f"trusted: {found.shown}")
    options.note(f"in CI the same settings, and no others, are trusted with {VARIABLE}={mark}")


def _lines(guarded: Sequence[Guarded]) -> Iterator[str]:
    """Go through the settings; letters that look like others are escaped, as in a host's name."""
    for each in guarded:
        yield f"{each.place} = {json.dumps(each.value, default=str)}  # {each.reason}\n"
