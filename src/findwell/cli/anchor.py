"""`findwell anchor`: gold that names chunks becomes gold that names characters of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from findwell.cli import options
from findwell.core.findings import shorten
from findwell.show.grid import Grid
from findwell.show.tables import (
    FORMATS,
    number,
    render_grids,
    to_json,
    to_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from findwell.loop.labels.anchor import Anchored

TO_CHECK = ("fuzzy", "edited", "ambiguous", "lost")  # labels that a table shows
CUT = ("split", "partly", "none")
CELL = 48  # characters of a quote that a table shows


label_options = options.option_set(
    click.argument("gold", metavar="GOLD"),
    click.option("--corpus", required=True, metavar="PATH", help="Documents: a folder or a file."),
    options.gold_format,
    options.skip_bad,
    click.option(
        "--min-score",
        type=click.FloatRange(0, 1, min_open=True),
        default=0.85,
        metavar="SCORE",
        help="Lowest score at which a text that is found only approximately counts as found.",
    ),
    click.option(
        "--ambiguous",
        type=click.Choice(["leave", "first", "all"]),
        default="leave",
        help="What to do with a label whose text is in several places: leave it out, take "
        "the first place, or take all of them as alternatives.",
    ),
    options.output_format([name for name in FORMATS if name != "latex"]),
)


@click.command("anchor", short_help="Turn chunk ids of a gold into characters of documents.")
@label_options
@click.option("--chunks", metavar="FILE", help="Texts of the chunks that GOLD names by id.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the new gold to this file; - prints it instead of the table.",
)
def command(*, gold: str, how: str, output: str | None, **choices: Any) -> None:  # noqa: ANN401
    """Find in the documents every chunk or quote that GOLD names, and list what is not there.

    \b
    findwell anchor gold.jsonl --chunks chunks.jsonl --corpus docs/ -o spans.jsonl
    findwell anchor quotes.jsonl --corpus docs/ -o spans.jsonl

    The new gold names documents and characters in them, so it is good for any chunker.
    """
    from findwell.loop.labels.anchor import anchor  # noqa: PLC0415

    write_labels(anchor, gold, choices, how, output)


def write_labels(
    find: Callable[..., Anchored], gold: str, choices: dict[str, Any], how: str, output: str | None
) -> None:
    """Find the labels, write the gold if asked to, print what became of them and the findings."""
    (file,), _ = options.paths([gold])
    with options.progress("looking for the labels"):
        anchored = find(file, **choices)
    if output is not None:
        options.write(anchored.jsonl(), output)
    if output != "-":
        options.write(render(anchored, how), None, how)
    options.print_findings(anchored.findings)


def render(anchored: Anchored, how: str) -> str:
    """Return the labels in a format; tables show only those that need a look."""
    labels = anchored.labels.drop("number")
    if how == "json":
        shown = {
            "summary": anchored.summary().to_dicts(),
            "labels": labels.to_dicts(),
            "findings": [finding.as_dict() for finding in anchored.findings],
        }
        return to_json(shown)
    if how in ("markdown", "table"):
        return render_grids(_grids(anchored), how, width=options.width(None))
    if how != "jsonl":  # which alone can hold lists
        lists = [name for name, kind in labels.schema.items() if kind.is_nested()]
        labels = labels.with_columns(labels[name].list.join(" ") for name in lists)
    return to_rows(labels, how)


def _grids(anchored: Anchored) -> Iterator[Grid]:
    labels = anchored.labels
    for column, title in (("status", "labels"), ("cut", "chunks that hold them")):
        if column in labels.columns:
            counts = anchored.summary(column).rows()
            rows = [[value, str(count)] for value, count in counts]
            yield Grid(f"{title} · {sum(count for _, count in counts)}", [column, "labels"], rows)
    doubtful = labels["status"].is_in(TO_CHECK)
    if "cut" in labels.columns:
        doubtful |= labels["cut"].is_in(CUT).fill_null(value=False)
    rows = [_line(row) for row in labels.filter(doubtful).to_dicts()]
    if rows:
        header = ["query", "label", "status", "place", "note", "score"]
        yield Grid("labels to look at", header, rows, left=5)


def _line(row: dict[str, Any]) -> list[str]:
    text = " ".join((row["quote"] or row["id"]).split())
    place = "–" if row["start"] is None else f"{row['doc']} {row['start']}–{row['end']}"
    status, note = row["status"], row["note"]
    if row.get("cut") in CUT:
        status += f", {row['cut']}"
        held = f"in {', '.join(row['chunks'])}" if row["chunks"] else ""
        note = "; ".join(filter(None, [note, held]))
    return [row["query"], shorten(text, CELL), status, place, note, number(row["score"])]
