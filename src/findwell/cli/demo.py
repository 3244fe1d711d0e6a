"""`findwell demo`: the main job on a small task that comes with the package."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findwell.cli import options
from findwell.cli.command import Command, option
from findwell.core.errors import OptionError, SaveError

if TYPE_CHECKING:
    from findwell.evaluation.results.result import Result

KEPT_DOCUMENTS = 20  # documents of each list that the report shows
FILES = ("bm25.trec", "minilm.trec", "questions.jsonl", "passages.jsonl")


@click.command("demo", cls=Command, short_help="See findwell at work on a small task.")
@options.opened
@option("--save DIR", "Save the result to this folder.")
@option("--files DIR", "Only copy the demo's files to this folder, to try things out.")
@option("--report FILE", "Write the report to this file (default: in the cache folder).")
def command(save: str | None, files: str | None, report: str | None, *, browse: bool) -> None:
    """Measure two retrievers, BM25 and an embedding model, on a help centre's questions.

    The task is an illustration written for findwell, not evidence about the two retrievers.
    """
    from findwell.evaluation.evaluate import execute  # noqa: PLC0415
    from findwell.evaluation.plan import Plan  # noqa: PLC0415
    from findwell.io.storage.folders import refuse_foreign  # noqa: PLC0415
    from findwell.measures import DEFAULTS  # noqa: PLC0415

    if save is not None:
        refuse_foreign(save)
    folder = Path(__file__).parent.parent / "demo"
    gold = folder / "questions.jsonl"
    runs = [folder / "bm25.trec", folder / "minilm.trec"]
    if files is not None:
        _copy(folder, Path(files))
        if save is None and report is None and not browse:
            return
    plan = Plan.of(DEFAULTS, corpus=folder / "passages.jsonl", keep=KEPT_DOCUMENTS)
    result = execute(plan, runs, gold)
    if files is None:
        _show(result, runs, folder)
    if save is not None:
        result.save(save)
        options.note(f"saved: {save}")
    if files is None or report is not None or browse:
        page = _report(result, report)
        options.write(f"\nThe same and more as a page: {page}\n", None, "table")
        if browse and page != "-":
            click.launch(Path(page).absolute().as_uri())


def _show(result: Result, runs: list[Path], folder: Path) -> None:
    """Print the answer, the tables, what the embedded judge says, and what to try next."""
    from findwell.evaluation.comparison.compare import compare  # noqa: PLC0415
    from findwell.show import render  # noqa: PLC0415
    from findwell.show.comparison import headlines  # noqa: PLC0415
    from findwell.show.document import Document, write  # noqa: PLC0415

    screen = options.screen(None)
    answer = Document((), headlines=headlines(compare(result, slices="wording")))
    options.write(write(answer, "table", **screen), None, "table")
    options.say(
        "Two retrievers answer 95 questions about an e-bike maker's help centre (170 passages). "
        "Written to show findwell at work; it proves nothing about BM25 or MiniLM.\n"
    )
    options.write(render(result, "table", by=["wording", "kind"], **screen), None, "table")
    options.say(
        "Read it: the embedding model is ahead overall. By wording the picture splits: where "
        "questions use the passages' own words BM25 keeps up, on paraphrases it falls behind."
    )
    _judged(runs, folder)
    options.print_findings(result.findings)
    options.say(
        "\nTry it yourself:\n"
        "  findwell demo --files demo\n"
        "  findwell score demo/bm25.trec demo/minilm.trec \\\n"
        "    --gold demo/questions.jsonl \\\n"
        "    -m recall@5 -m nDCG@10 --slice topic\n"
        "  findwell measures nDCG"
    )


def _judged(runs: list[Path], folder: Path) -> None:
    """Show what the embedded judge says, which has seen no label."""
    from findwell.evaluation.evaluate import JUDGED_MEASURES, execute  # noqa: PLC0415
    from findwell.evaluation.plan import Plan  # noqa: PLC0415
    from findwell.show import render  # noqa: PLC0415

    measures = [f"{name}@5" for name in JUDGED_MEASURES]
    try:
        plan = Plan.of(
            measures, judge="local:text(entities=rules)", corpus=folder / "passages.jsonl"
        )
        result = execute(plan, runs, folder / "questions.jsonl")
    except OptionError as error:  # it splits sentences with a library
        options.say(f"\nThe embedded judge cannot run here: {error.what}; {error.fix}")
        return
    options.say("\nThe same runs scored by findwell's built-in judge, without labels:\n")
    options.write(render(result, "table", **options.screen(None)), None, "table")
    options.say(
        "It compares words, so its relevance sides with BM25, while claims and entities of the "
        "reference answers show that the embedding model finds more. So check your judge as well."
    )


def _report(result: Result, wanted: str | None) -> str:
    """Write the report of the demo, and return its path."""
    from findwell.io.storage.database import cache_folder  # noqa: PLC0415
    from findwell.io.storage.files import make_folder, write_text  # noqa: PLC0415
    from findwell.show.report import report  # noqa: PLC0415

    page = report(result)
    if wanted is not None:
        options.write(page, wanted)
        return wanted
    # one place for all demos, so that they leave nothing behind but the last report
    path = cache_folder() / "demo" / "report.html"
    try:
        make_folder(path.parent)
        write_text(path, page)
    except (OSError, SaveError):  # such as a user without a home
        path = Path(tempfile.mkdtemp(prefix="findwell-demo-")) / "report.html"
        write_text(path, page)
    return str(path)


def _copy(folder: Path, target: Path) -> None:
    """Copy the files; the folder may have its own of these names, which must not be lost."""
    from findwell.io.storage.files import not_written, write_bytes  # noqa: PLC0415

    try:
        target.mkdir(parents=True, exist_ok=True)
        contents = {target / name: (folder / name).read_bytes() for name in FILES}
        for path, content in contents.items():
            if path.exists() and path.read_bytes() != content:
                raise SaveError(
                    "a file of this name exists and holds something else",
                    where=str(path),
                    fix="name a new folder",
                )
    except OSError as error:
        raise not_written("folder", target, error) from None
    for path, content in contents.items():
        write_bytes(path, content)
    options.note(f"written: {target}")
