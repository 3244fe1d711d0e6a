"""`findwell demo`: the main job on a small task that comes with the package."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findwell.cli import options
from findwell.core.errors import OptionError, SaveError

if TYPE_CHECKING:
    from findwell.evaluation.results.result import Result

KEPT = 20  # documents of each list that the report shows
FILES = ("bm25.trec", "minilm.trec", "questions.jsonl", "passages.jsonl")


@click.command("demo", short_help="See findwell at work on a small task.")
@click.option("--save", metavar="DIR", help="Save the result to this folder.")
@click.option(
    "--files", metavar="DIR", help="Copy the demo's files to this folder, to try things out."
)
@click.option(
    "--report",
    metavar="FILE",
    help="Write the report to this file (default: one in the folder for caches).",
)
def command(save: str | None, files: str | None, report: str | None) -> None:
    """Measure two retrievers, BM25 and an embedding model, on a help centre's questions.

    The task is an illustration written for findwell, not evidence about the two retrievers.
    """
    from findwell.evaluation.evaluate import evaluate  # noqa: PLC0415
    from findwell.evaluation.plan import Reading  # noqa: PLC0415
    from findwell.io.storage.folders import refuse_foreign  # noqa: PLC0415
    from findwell.show.result import render  # noqa: PLC0415

    if save is not None:
        refuse_foreign(save)
    folder = Path(__file__).parent.parent / "demo"
    gold = folder / "questions.jsonl"
    runs = [folder / "bm25.trec", folder / "minilm.trec"]
    result = evaluate(runs, gold, corpus=folder / "passages.jsonl", reading=Reading(keep=KEPT))
    options.say(
        "Two retrievers answer 95 questions about an e-bike maker's help centre (170 passages). "
        "Written to show findwell at work; it proves nothing about BM25 or MiniLM.\n"
    )
    tables = render(result, "table", by=["wording", "kind"], **options.screen(None))
    options.write(tables, None, "table")
    options.say(
        "\nRead it: the embedding model is ahead overall. By wording the picture splits: where "
        "questions use the passages' own words BM25 keeps up, on paraphrases it falls behind."
    )
    _judged(runs, folder)
    options.print_findings(result.findings)
    if save is not None:
        result.save(save)
        options.note(f"saved: {save}")
    if files is not None:
        _copy(folder, Path(files))
    where = files or "demo"
    options.say(
        "\nTry it yourself:\n"
        + ("" if files else "  findwell demo --files demo\n")
        + f"  findwell score {where}/bm25.trec {where}/minilm.trec \\\n"
        f"    --gold {where}/questions.jsonl \\\n"
        "    -m recall@5 -m nDCG@10 --slice topic\n"
        "  findwell measures nDCG"
    )
    options.write(f"\nThe same and more as a page: {_report(result, report)}\n", None, "table")


def _judged(runs: list[Path], folder: Path) -> None:
    """Show what the embedded judge says, which has seen no label."""
    from findwell.evaluation.evaluate import JUDGED, evaluate  # noqa: PLC0415
    from findwell.show.result import render  # noqa: PLC0415

    measures = [f"{name}@5" for name in JUDGED]
    try:
        result = evaluate(
            runs,
            folder / "questions.jsonl",
            measures,
            judge="local:text(entities=rules)",
            corpus=folder / "passages.jsonl",
        )
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
    from findwell.io.storage.files import write_bytes  # noqa: PLC0415

    try:
        target.mkdir(parents=True, exist_ok=True)
        contents = {target / name: (folder / name).read_bytes() for name in FILES}
        for path, content in contents.items():
            if path.exists() and path.read_bytes() != content:
                raise SaveError(
                    "the file is there already and holds something else",
                    where=str(path),
                    fix="name a new folder",
                )
    except OSError as error:
        raise SaveError(
            f"the files could not be copied: {error.strerror}",
            where=str(target),
            fix="name another folder",
        ) from None
    for path, content in contents.items():
        write_bytes(path, content)
