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
from findwell.core.errors import FindwellError, SaveError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from findwell.evaluation.doctor import Diagnosis
    from findwell.evaluation.project_files import Project, ProjectFile

HEAD = """\
# Defaults of `findwell score`, `findwell compare` and the other commands in this folder. Options on
# the command line win. Keys are names of options; a table such as [score] is for one command.
# `findwell explain-config` shows the settings of each command.
"""
LABELLED_MEASURES = ("recall@5", "P@5", "RR", "nDCG@10")
JUDGED_MEASURES = ("context_precision", "context_relevancy")


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
    in the file as comments. What is compared, and with which run, is what `findwell doctor` finds
    to fit; a comment above each setting says why.
    """
    from findwell.evaluation.project_files import Project  # noqa: PLC0415
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
        project = Project.of(folder)
        found = _examined(project)
    text = "\n".join(_lines(project, found, Path(folder)))
    if dry_run:
        options.write(text, None)
        return
    write_text(str(target), text)
    if context.parent is not None and isinstance(context.parent.command, click.Group):
        trust_own(target, context.parent.command, context.parent)
    golds = (project.gold,) if project.gold is not None else ()
    for each in (*project.runs, *golds, *project.other_golds, *project.corpora):
        options.note(f"found: {each.path} ({each.role})")
    options.note(f"written: {target}")
    for line in found.project:
        if line.state == "broken":
            options.note(f"broken: {line.sentence}")
    options.note(
        "next: `findwell score` measures, `findwell compare` says whether a difference is real, "
        "`findwell doctor` says what to look at"
    )


def _examined(project: Project) -> Diagnosis:
    """Return what the doctor says; nothing where the files cannot be brought together."""
    from findwell.evaluation.doctor import Diagnosis, examine_project  # noqa: PLC0415

    try:
        return examine_project(project, measures=LABELLED_MEASURES)
    except FindwellError as error:
        options.note(f"look: {error.what}")
        return Diagnosis()


def _lines(project: Project, found: Diagnosis, folder: Path) -> Iterator[str]:
    """Go through the lines of the file: each setting below the reason for it."""
    yield HEAD
    both = " and what should be found" if project.runs[0].role == "samples" else ""
    yield f"# what was retrieved{both}"
    if found.baseline:
        yield f"# the others are compared with the first: {found.why_baseline}"
    ordered = sorted(project.runs, key=lambda each: str(each.path) != found.baseline_file)
    yield _setting("runs", [*_names(ordered, folder)])
    if project.gold is not None:
        yield "# what should be found" + (
            ": of several files the one that shares most queries with the runs"
            if project.other_golds
            else ""
        )
        yield _setting("gold", *_names([project.gold], folder))
        yield from (f"# gold = {json.dumps(name)}" for name in _names(project.other_golds, folder))
    matches_texts = found.by not in ("", "ids")
    for corpus in _names(project.corpora[:1], folder):
        yield "# texts by id, for matching by text and judging"
        yield f"{'' if matches_texts else '# '}{_setting('corpus', corpus)}"
    yield ""
    if matches_texts:
        yield f"# {found.why_by}"
        yield _setting("by", found.by)
    elif not found.by and project.gold is not None and project.gold.places:
        yield "# the gold labels places in documents (start and end)"
        yield _setting("by", "spans")
    if not project.labelled:
        yield "# nothing says what should be found: an embedded judge reads question and texts"
        yield _setting("judge", "local")
    yield "# how much was found, how much of the list is relevant, and how high that stands"
    yield _setting("measures", [*(LABELLED_MEASURES if project.labelled else JUDGED_MEASURES)])
    yield ""
    if found.ids:
        yield "[read]"
        yield f"# {found.why_by}"
        yield _setting("ids", found.ids)
        yield ""
    yield "# [score]"
    yield '# require = ["recall@5>=0.8"]  # a gate: exit code 1 where it fails'
    yield ""


def _names(found: Iterable[ProjectFile], folder: Path) -> Iterator[str]:
    """Go through the files as seen from the folder."""
    return (each.path.relative_to(folder).as_posix() for each in found)


def _setting(key: str, value: str | list[str]) -> str:
    """Write a setting; TOML writes texts and lists of texts as JSON does."""
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"
