"""`karat demo`: the main job on a small task that comes with the package."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from karat.cli import options
from karat.errors import SaveError

FILES = ("bm25.trec", "minilm.trec", "questions.jsonl", "passages.jsonl")


@click.command("demo", short_help="See karat at work on a small task.")
@click.option("--save", metavar="DIR", help="Save the result there.")
@click.option("--files", metavar="DIR", help="Copy the demo's files there, to play with.")
def command(save: str | None, files: str | None) -> None:
    """Measure two retrievers, BM25 and an embedding model, on a help centre's questions.

    The task is an illustration written for karat, not evidence about the two retrievers.
    """
    from karat.evaluation import evaluate  # noqa: PLC0415
    from karat.report.text import render  # noqa: PLC0415

    folder = Path(__file__).parent.parent / "demo"
    gold = folder / "questions.jsonl"
    result = evaluate([folder / "bm25.trec", folder / "minilm.trec"], gold)
    click.echo(
        "Two retrievers answer 95 questions about an e-bike maker's help centre (170 passages).\n"
        "Written to show karat at work; it proves nothing about BM25 or MiniLM.\n"
    )
    click.echo(render(result, "table", by=["wording", "kind"], color=options.use_color()), nl=False)
    click.echo(
        "\nRead it: the embedding model is ahead overall. By wording the picture splits: where\n"
        "questions use the passages' own words BM25 keeps up, on paraphrases it falls behind."
    )
    options.tell(result.findings)
    if save is not None:
        result.save(save)
        click.echo(f"saved: {save}", err=True)
    if files is not None:
        _copy(folder, Path(files))
    where = files or "demo"
    click.echo(
        "\nTry it yourself:\n"
        + ("" if files else "  karat demo --files demo\n")
        + f"  karat score {where}/bm25.trec {where}/minilm.trec --gold {where}/questions.jsonl"
        " -m recall@5 -m nDCG@10 --slice topic\n"
        "  karat measures nDCG"
    )


def _copy(folder: Path, target: Path) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copy(folder / name, target)
    except OSError as error:
        raise SaveError(
            f"the files could not be copied: {error.strerror}",
            where=str(target),
            fix="name another folder",
        ) from None
