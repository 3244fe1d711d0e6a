"""`karat anchor`: gold that names chunks becomes gold that names characters of documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from karat.labels.anchor import Anchored
    from karat.reports.tables import Grid

SHOWN = tuple(name for name in options.FORMATS if name != "latex")
TO_CHECK = ("fuzzy", "edited", "ambiguous", "lost")  # labels that a table shows
CUT = ("split", "partly", "none")
CELL = 48  # characters of a quote that a table shows


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what `anchor` and `drift` share."""
    decorators: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
        click.argument("gold", metavar="GOLD"),
        click.option(
            "--corpus", required=True, metavar="PATH", help="The documents: a folder or a file."
        ),
        options.some("gold_format", "skip_bad", of=options.reading),
        click.option(
            "--min-score",
            type=click.FloatRange(0, 1, min_open=True),
            default=0.85,
            show_default=True,
            help="The lowest score of a text that is found only approximately.",
        ),
        click.option(
            "--ambiguous",
            type=click.Choice(["leave", "first", "all"]),
            default="leave",
            show_default=True,
            help="What to do with a label whose text is in several places: leave it out, take "
            "the first place, or take all of them as alternatives.",
        ),
        click.option("--format", "how", type=click.Choice(SHOWN), default="table"),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


@click.command("anchor", short_help="Turn chunk ids of a gold into characters of documents.")
@common
@click.option("--chunks", metavar="FILE", help="The texts of the ids that the gold names.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the gold to this file; - prints it instead of the table.",
)
def command(*, gold: str, how: str, output: str | None, **choices: Any) -> None:  # noqa: ANN401
    """Find the text of every chunk that GOLD names in the documents, and list what is not there.

    \b
    karat anchor gold.jsonl --chunks chunks.jsonl --corpus docs/ -o gold-spans.jsonl
    karat anchor quotes.jsonl --corpus docs/ -o gold-spans.jsonl
    """
    from karat.labels.anchor import anchor  # noqa: PLC0415

    file, _ = options.paths((gold,), None)
    with options.progress("looking for the labels"):
        anchored = anchor(file, **choices)
    deliver(anchored, how, output)


def deliver(anchored: Anchored, how: str, output: str | None) -> None:
    """Write the gold if asked to, print what became of the labels, report the findings."""
    if output is not None:
        options.write(anchored.jsonl(), output)
    if output != "-":
        options.write(render(anchored, how), None)
    options.tell(anchored.findings)


def render(anchored: Anchored, how: str) -> str:
    """Return the labels in a format; tables show only those that need a look."""
    from karat.reports.tables import markdown, terminal  # noqa: PLC0415

    labels = anchored.labels.drop("number")
    if how == "json":
        shown = {
            "summary": anchored.summary().to_dicts(),
            "labels": labels.to_dicts(),
            "findings": [finding.as_dict() for finding in anchored.findings],
        }
        return json.dumps(shown, indent=1, ensure_ascii=False) + "\n"
    if how == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in labels.to_dicts())
    if how == "markdown":
        return "\n".join(markdown(grid) for grid in _grids(anchored))
    if how == "table":
        return "".join(terminal(grid) for grid in _grids(anchored))
    lists = [name for name, kind in labels.schema.items() if kind.is_nested()]
    flat = labels.with_columns(labels[name].list.join(" ") for name in lists)
    return flat.write_csv(separator="\t" if how == "tsv" else ",")


def _grids(anchored: Anchored) -> Iterator[Grid]:
    from karat.reports.tables import Grid  # noqa: PLC0415

    labels = anchored.labels
    for column, title in (("status", "labels"), ("cut", "chunks that hold them")):
        if column in labels.columns:
            counts = anchored.summary(column).rows()
            rows = [[value, str(count)] for value, count in counts]
            yield Grid(f"{title} · {sum(count for _, count in counts)}", [column, "labels"], rows)
    odd = labels["status"].is_in(TO_CHECK)
    if "cut" in labels.columns:
        odd |= labels["cut"].is_in(CUT).fill_null(value=False)
    rows = [_line(row) for row in labels.filter(odd).to_dicts()]
    if rows:
        header = ["query", "label", "status", "place", "note", "score"]
        yield Grid("labels to look at", header, rows, left=5)


def _line(row: dict[str, Any]) -> list[str]:
    from karat.reports.tables import number  # noqa: PLC0415

    text = " ".join((row["quote"] or row["id"]).split())
    place = "–" if row["start"] is None else f"{row['doc']} {row['start']}–{row['end']}"
    status, note = row["status"], row["note"]
    if row.get("cut") in CUT:
        status += f", {row['cut']}"
        note = "; ".join(
            filter(None, [note, "in " + ", ".join(row["chunks"])] if row["chunks"] else [note])
        )
    shown = text if len(text) <= CELL else text[: CELL - 1] + "…"
    return [row["query"], shown, status, place, note, number(row["score"])]
