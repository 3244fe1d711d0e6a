"""`findwell init`: write a configuration file from the files that are there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findwell.cli import options
from findwell.cli.command import Command, option
from findwell.cli.configuration import FILE
from findwell.cli.trust import trust_own
from findwell.core.errors import InputError, SaveError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from findwell.evaluation.project_files import ProjectFile, Role

HEAD = """\
# What `findwell score`, `findwell compare` and the other commands do in this folder when nothing
# else is said. Keys are the names of options; a table such as [score] is for one command alone.
# `findwell explain-config` shows what holds where.
"""
MEASURES = ("recall@5", "P@5", "RR", "nDCG@10")
JUDGED = ("context_precision", "context_relevancy")


@click.command("init", cls=Command, short_help="Write findwell.toml from the files found.")
@click.argument("folder", metavar="[FOLDER]", default=".")
@option("--force", "Write the file even where there is one.")
@option("--dry-run", "Print the file instead of writing it.")
@click.pass_context
def command(context: click.Context, folder: str, *, force: bool, dry_run: bool) -> None:
    """Look for runs and gold in a FOLDER, and write a findwell.toml that names them.

    \b
    findwell init
    findwell score

    Files are recognised by their content, in the folder and two levels below it. Where several
    could be the gold, the one that shares most queries with the runs is taken; the others stand
    in the file as comments.
    """
    from findwell.evaluation.project_files import project_files  # noqa: PLC0415
    from findwell.io.storage.files import write_text  # noqa: PLC0415

    target = Path(folder) / FILE
    if target.is_symlink() and not dry_run:  # it may lead out of the folder
        raise SaveError(
            "this is a link, and a configuration is written only as a file of its own",
            where=str(target),
            fix="delete the link, or look at the settings with --dry-run",
        )
    if target.exists() and not (force or dry_run):
        raise SaveError(
            "there is a configuration already",
            where=str(target),
            fix="change it by hand, or write a new one with --force",
        )
    with options.progress("looking"):
        found = project_files(folder)
    if not any(each.role in ("run", "samples") for each in found):
        raise InputError(
            "no run was found: no file says what was retrieved for which query",
            where=folder,
            fix="make one with `findwell run`, or see `findwell demo --files demo` for examples",
        )
    text = "\n".join(_lines(found, Path(folder)))
    if dry_run:
        options.write(text, None)
        return
    write_text(str(target), text)
    if context.parent is not None and isinstance(context.parent.command, click.Group):
        trust_own(target, context.parent.command, context.parent)
    for each in found:
        options.note(f"found: {each.path} ({each.role})")
    options.note(f"written: {target}")
    options.note(
        "next: `findwell score` measures, `findwell compare` says whether a difference is real"
    )


def _lines(found: Sequence[ProjectFile], folder: Path) -> Iterator[str]:
    """Go through the lines of the file."""
    runs = _of(found, "run")
    gold, others = _gold(runs, _of(found, "gold"))
    # records that hold both are a task of their own; next to gold labels they are not what is meant
    samples = [] if gold is not None and runs else _of(found, "samples")
    yield HEAD
    yield _setting("runs", [*_names(samples or runs, folder)])
    if gold is not None and not samples:
        yield _setting("gold", *_names([gold], folder))
        yield from (f"# gold = {json.dumps(name)}" for name in _names(others, folder))
    for corpus in _names(_of(found, "corpus")[:1], folder):
        yield f"# corpus = {json.dumps(corpus)}  # texts by id, for matching by text and judging"
    judged = gold is None and not samples
    yield ""
    labelled = [gold] if gold is not None and not samples else samples
    if any(each.places for each in labelled):
        yield "# the gold labels places in documents (start and end)"
        yield _setting("by", "spans")
    if judged:
        yield "# nothing says what should be found: an embedded judge reads question and texts"
        yield _setting("judge", "local")
    yield _setting("measures", [*(JUDGED if judged else MEASURES)])
    yield ""
    yield "# [score]"
    yield '# require = ["recall@5>=0.8"]  # a gate: exit code 1 where it fails'
    yield ""


def _gold(
    runs: Sequence[ProjectFile], golds: Sequence[ProjectFile]
) -> tuple[ProjectFile | None, list[ProjectFile]]:
    """Choose the gold that shares most queries with the runs; return it and the others."""
    asked = frozenset().union(*(run.queries for run in runs))
    best = max(golds, key=lambda gold: len(gold.queries & asked), default=None)
    return best, [gold for gold in golds if gold is not best]


def _of(found: Iterable[ProjectFile], role: Role) -> list[ProjectFile]:
    return [each for each in found if each.role == role]


def _names(found: Iterable[ProjectFile], folder: Path) -> Iterator[str]:
    """Go through the files as seen from the folder."""
    return (each.path.relative_to(folder).as_posix() for each in found)


def _setting(key: str, value: str | list[str]) -> str:
    """Write a setting; TOML writes texts and lists of texts as JSON does."""
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"
