"""`findwell labels`: gather pairs, label them, export them, and keep labels that others wrote."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import envelope, judging, options
from findwell.cli.command import Group, option, option_set, typed_options
from findwell.core.errors import OptionError, needs_package
from findwell.core.findings import shorten
from findwell.core.spelling import counted
from findwell.show.agreement import FORMATS as AGREEMENT_FORMATS
from findwell.show.grid import Grid
from findwell.show.tables import FORMATS, number, render_grids, to_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from findwell.loop.labels.anchor import Anchored
    from findwell.loop.labels.label_pool import LabelPool

POOL_FORMATS = ("table", "json", "csv", "markdown")
PRECISION_BASIS = {  # what the expected precision rests on
    "pilot": "what the labels of the pilot make likely",
    "judge": "what to expect if the judge is right",
    "worst": "for the worst case; --pilot or --judge give better forecasts",
}
BIASED_ORDER = (
    "labels in this order show which run is better, but not how good it is: for that, --for values"
)
FILE_FORMATS = (  # the first four hold all that is known about labels
    "csv", "tsv", "jsonl", "parquet", "qrels", "subtopic-qrels", "beir", "ragas", "deepeval",
    "autorag", "phoenix", "spans",
)  # fmt: skip
DOUBTFUL_STATUS = ("fuzzy", "edited", "ambiguous", "lost")  # of labels that a table shows
CUT_LABELS = ("split", "partly", "none")
QUOTE_LETTERS = 48  # of a quote that a table shows


@click.group("labels", cls=Group, short_help="Gather, label, export and keep labels.")
def command() -> None:
    """Make labels, and keep them usable: say which passages answer which questions.

    \b
    findwell labels pool a.trec b.trec -o pool       gather what to label
    findwell labels serve pool --open                label it, in the browser
    findwell labels export pool qrels.txt            use the labels elsewhere
    findwell labels agree pool                       do the annotators agree?
    findwell labels anchor gold.jsonl --corpus docs  make labels survive chunking
    findwell labels drift spans.jsonl --corpus new   find labels in new versions
    """


def _share(_: click.Context, __: click.Parameter, text: str) -> float:
    """Read a share: 0.2 or 20%."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise click.BadParameter(f"{text!r} is not a share such as 20% or 0.2")
    return share


@command.command("pool", short_help="Gather what systems retrieved, to be labelled.")
@options.runs
@option_set(options.queries, options.corpus, options.read(*options.RUN_READING), group="Input")
@option("--depth K", "How many documents of each run and query are in the pool.", low=1, default=10)
@option(
    "--for ordering|values",
    "What the labels are for: to rank systems, or to measure absolute values.",
    name="purpose",
    default="ordering",
)
@option("--method mm-ns|mtf|depth", "For ordering: which document comes next (default: mm-ns).")
@option("--budget N", "How many pairs will be labelled (default: all).", low=1)
@option(
    "--overlap SHARE",
    "Share of the pairs that every annotator labels.",
    type=str,
    default="0%",
    callback=_share,
)
@judging.judged(
    None,
    "Who grades the pool, for the strata: local, local:text, openai:MODEL, replay:FILE (default: "
    "no judge).",
)
@option(
    "--judged PATH",
    "Grades that a judge gave before, to stratify by. Qrels, any other gold labels, or a saved "
    "result with verdicts about relevance.",
)
@option(
    "--pilot FILE",
    "Labels that are known already, to forecast the precision. Any gold labels or another pool.",
)
@option("--highest N", "Highest grade (1: yes/no labels).", low=1, default=3)
@option("--guidelines FILE", "Text that annotators see at the side.")
@option("--seed N", "Seed of the sample and of the overlap.", default=0)
@options.level
@options.output_format(POOL_FORMATS)
@option("-o, --output FOLDER", "Folder of the pool.", default="pool")
def pool(
    *,
    runs: tuple[str, ...],
    output: str,
    how: str,
    pilot: str | None,
    level: float,
    budget: int | None,
    guidelines: str | None,
    judge: judging.JudgeChoice,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Gather the first documents of every RUN, with their texts, into a folder to label from.

    \b
    findwell labels pool a.trec b.trec --queries q.jsonl --corpus docs -o pool
    findwell labels pool a.jsonl b.jsonl --budget 300 --overlap 20%
    findwell labels pool a.jsonl --for values --budget 200 --judge openai:MODEL
    findwell labels serve pool
    findwell labels pool pool --budget 400

    For ordering, documents that are likely to be relevant come first (mm-ns, a bandit over the
    runs; mtf, move-to-front; depth, by rank), never by the opinion of a judge: few labels then tell
    which system is better, but not how good it is. For values, pairs are a probability sample,
    stratified by the grades of a judge where one is named, and every label keeps its probability.
    What is printed is the precision that the budget buys: the half-widths of the intervals to
    expect about these queries, and about queries like these. With the folder of a pool instead of
    runs, its own labels are the pilot, and --budget has more of it labelled.
    """
    from findwell.io.read.format import Source  # noqa: PLC0415
    from findwell.io.read.labels_database import database_at  # noqa: PLC0415
    from findwell.io.storage.files import temporary_folder  # noqa: PLC0415
    from findwell.loop.labels.pool import pool as make_pool  # noqa: PLC0415

    chosen = {**(judge.options if judge.name is not None else {}), "budget": budget, **choices}
    files, _ = options.paths(runs)
    if len(files) == 1 and database_at(files[0]) is not None:
        _extend_pool(files[0], budget, level, how, output)
        return
    if guidelines is not None:
        chosen["guidelines"] = Source.of(guidelines).read().decode("utf-8", "replace")
    with ExitStack() as held, options.progress("judging") as progress:
        dry = judge.dry_run and judge.name is not None
        folder = held.enter_context(temporary_folder()) / "pool" if dry else Path(output)
        made = make_pool(files, folder, progress=progress, pilot=pilot, **chosen)
    if dry and judge.write_forecast(how, None):
        return
    found = made.precision(pilot=pilot, level=level)
    _show_pool(made, found.to_dicts(), how, output)


def _extend_pool(folder: str, budget: int | None, level: float, how: str, output: str) -> None:
    """Show what a pool with labels buys, by its own labels, and have more of it labelled."""
    from findwell.loop.labels.labels import Labels  # noqa: PLC0415

    given = typed_options(click.get_current_context())
    other = sorted(given.keys() - {"budget", "level", "how", "output"})
    if other:
        raise click.UsageError(f"{given[other[0]]} has no effect on an existing pool")
    if "output" in given and Path(output).resolve() != Path(folder).resolve():
        raise click.UsageError("an existing pool grows in its own folder: leave out -o")
    with Labels.open(folder) as labels:
        if budget is not None:
            labels.extend(budget)
        made = labels.pool()
        found = made.precision(pilot=labels if len(labels) else None, level=level)
    _show_pool(made, found.to_dicts(), how, folder)


def _show_pool(made: LabelPool, rows: list[dict[str, Any]], how: str, folder: str) -> None:
    """Print what was made, what it buys, and what to do next."""
    envelope.wrote(folder)
    if how == "json":
        about: dict[str, Any] = {"queries": made.pairs["query"].n_unique(), **made.settings}
        about |= {"pairs": made.pairs.height, "runs": list(made.runs)}
        envelope.keep({"pool": about, "precision": rows}, findings=made.findings)
    else:
        options.write(_rendered_pool(made, rows, how), None)
    options.print_findings(made.findings)
    basis = rows[0]["basis"].split()[0]
    options.note(f"note: the expected precision is {PRECISION_BASIS[basis]}")
    if made.settings["design"] != "sample":
        options.note(f"note: {BIASED_ORDER}")
    options.note(f"note: label it with: findwell labels serve {folder}")


def _rendered_pool(made: LabelPool, rows: list[dict[str, Any]], how: str) -> str:
    """Return the pool and its precision in a format."""
    import polars as pl  # noqa: PLC0415

    if how == "csv":
        return to_rows(pl.DataFrame(rows), how)
    queries = made.pairs["query"].n_unique()
    sample = made.settings["design"] == "sample"
    title = (
        f"{counted(made.pairs.height, 'pair', 'pairs')}, {counted(queries)}, "
        f"{counted(len(made.runs), 'run', 'runs')} · "
        f"{made.settings['design']} · expected precision (±)"
    )
    header = ["run", "measure", "labels", "these queries", "queries like these"]
    if not sample:
        header = ["run", "measure", "labels", "bounds"]
    cells = [
        [row["run"], row["measure"], str(row["budget"])]
        + [number(row[name]) for name in (("these", "new") if sample else ("these",))]
        for row in rows
        if sample or row["measure"].startswith("P@")
    ]
    grid = Grid(title, header, cells, left=2)
    return render_grids([grid], how, width=options.width(None))


@command.command("serve", short_help="Label the pairs of a pool, in the browser or a terminal.")
@click.argument("pool", metavar="POOL")
@option(
    "--annotator NAME", "Who labels (default: the page asks; a terminal takes your login name)."
)
@option("--terminal", "Label here, without a browser.")
@option("--port N", "Port to listen on (default: any free one).", low=0, high=65535)
@options.opened
def serve(
    *, pool: str, annotator: str | None, terminal: bool, port: int | None, browse: bool
) -> None:
    """Label the pairs of POOL, the folder that `findwell labels pool` made.

    \b
    findwell labels serve pool
    findwell labels serve pool --annotator anna --open
    findwell labels serve pool --terminal

    The page is served on this machine, and only to this machine: one passage at a time or the list
    of a question, by mouse, by touch or by keys. Every label is on disk before the next passage
    is shown. Several people label under several names and do not see each other's labels; where
    they differ, one of them settles it on the page Disagreements.
    """
    from findwell.loop.labels.labels import Labels, annotator_name  # noqa: PLC0415

    if terminal and (browse or port is not None):
        name = "--open" if browse else "--port"
        raise OptionError(f"{name} has no effect with --terminal", fix="leave it out")
    with Labels.open(pool, annotator_name(annotator) if annotator else "") as labels:
        if terminal:
            from findwell.cli.terminal_labelling import label_in_terminal  # noqa: PLC0415

            label_in_terminal(labels, labels.annotator)
            return
        with needs_package("the page", "web", instead="label with --terminal"):
            from findwell.show.web.labelling import label_site  # noqa: PLC0415
            from findwell.show.web.server import serve as serve_site  # noqa: PLC0415
        site = label_site(labels, Path(pool).as_posix(), labels.annotator)
        serve_site(site, port or 0, browse=browse)


file_options = option_set(
    click.argument("pool", metavar="POOL"),
    click.argument("file", metavar="FILE"),
    option(
        "--format NAME",
        f"Format of the FILE. One of: {', '.join(FILE_FORMATS)} (default: as its name or "
        "content says).",
        name="form",
    ),
    option(
        "--spans-of FILE",
        "For phoenix: the run whose documents are annotated. Its queries are ids of spans.",
        name="run",
    ),
)


@command.command("export", short_help="Write the labels of a pool to a file.")
@file_options
def export(*, pool: str, file: str, form: str | None, run: str | None) -> None:
    """Write the labels of POOL to FILE, for findwell or for another tool.

    \b
    findwell labels export pool qrels.txt
    findwell labels export pool labels.csv
    findwell labels export pool testset.jsonl --format ragas
    """
    from findwell.loop.labels.labels import Labels  # noqa: PLC0415

    with Labels.open(pool) as labels:
        labels.export(file, form, run=run)
        options.note(f"{len(labels)} labelled pairs written to {file}")


@command.command("import", short_help="Add the labels of a file to a pool.")
@file_options
@option("--annotator NAME", "Whose labels these are, if FILE does not say it.")
@option("--add", "Also add pairs that are not in the pool.")
def import_labels(
    *, pool: str, file: str, form: str | None, run: str | None, annotator: str | None, add: bool
) -> None:
    """Add the labels of FILE to POOL: what `findwell labels export` writes, or any gold labels.

    \b
    findwell labels import pool labels.csv
    findwell labels import pool qrels.txt --annotator anna --add
    """
    from findwell.loop.labels.labels import Labels, annotator_name  # noqa: PLC0415

    with Labels.open(pool, annotator_name(annotator) if annotator else "") as labels:
        name = labels.annotator or None
        count = labels.import_labels(file, form, annotator=name, add=add, run=run)
        options.note(f"{counted(count, 'label', 'labels')} added to {Path(pool).as_posix()}")


label_options = option_set(
    click.argument("gold", metavar="GOLD"),
    option("--corpus PATH", "Texts of the documents by id. A file or a folder.", required=True),
    options.read("gold_format", "skip_bad"),
    option(
        "--min-score SCORE",
        "Lowest score at which a text that is found only approximately counts as found.",
        type=click.FloatRange(0, 1, min_open=True),
        default=0.85,
    ),
    option(
        "--ambiguous leave|first|all",
        "What to do with a label whose text is in several places. Leave it out, take the first "
        "place, or take all of them as alternatives.",
        default="leave",
    ),
    options.output_format([name for name in FORMATS if name != "latex"]),
)


@command.command("anchor", short_help="Turn chunk ids of labels into characters of documents.")
@label_options
@option("--chunks FILE", "Texts of the chunks that GOLD names by id.")
@option("-o, --output FILE", "Write the new gold to this file; - prints it instead of the table.")
def anchor(*, gold: str, how: str, output: str | None, **choices: Any) -> None:  # noqa: ANN401
    """Find in the documents every chunk or quote that GOLD names, and list what is not there.

    \b
    findwell labels anchor ids.jsonl --chunks all.jsonl --corpus docs -o new.jsonl
    findwell labels anchor quotes.jsonl --corpus docs/ -o spans.jsonl

    The new gold names documents and characters in them, so it is good for any chunker.
    """
    from findwell.loop.labels.anchor import anchor as find  # noqa: PLC0415

    _write_labels(find, gold, choices, how, output)


@command.command("drift", short_help="Find labels again after documents or chunks changed.")
@label_options
@option("--chunks FILE", "New chunks: report which of them hold each label.")
@option(
    "--before PATH",
    "Documents as they were before: the text around a label distinguishes similar places.",
)
@option(
    "-o, --output FILE",
    "Write the gold with the new places to this file; - prints it instead of the table.",
)
def drift(*, gold: str, how: str, output: str | None, **choices: Any) -> None:  # noqa: ANN401
    """Find the labels of GOLD, as `findwell labels anchor` writes it, in changed documents.

    \b
    findwell labels drift spans.jsonl --corpus new-docs/
    findwell labels drift spans.jsonl --corpus new/ --before docs/ -o moved.jsonl
    findwell labels drift spans.jsonl --corpus docs/ --chunks new-chunks.jsonl
    """
    from findwell.loop.labels.anchor import drift as find  # noqa: PLC0415

    _write_labels(find, gold, choices, how, output)


def _write_labels(
    find: Callable[..., Anchored], gold: str, choices: dict[str, Any], how: str, output: str | None
) -> None:
    """Find the labels, write them if asked to, print their status and the findings."""
    (file,), _ = options.paths([gold])
    with options.progress("looking for the labels"):
        anchored = find(file, **choices)
    if output is not None:
        options.write(anchored.jsonl(), output)
    if how == "json" and output != "-":
        rows = anchored.labels.drop("number").to_dicts()
        shown = {"summary": anchored.summary().to_dicts(), "labels": rows}
        envelope.keep(shown, findings=anchored.findings)
    elif output != "-":
        options.write(_rendered_labels(anchored, how), None, how)
    options.print_findings(anchored.findings)


def _rendered_labels(anchored: Anchored, how: str) -> str:
    """Return the labels in a format; tables show only those that need a look."""
    labels = anchored.labels.drop("number")
    if how in ("markdown", "table"):
        return render_grids(_label_grids(anchored), how, width=options.width(None))
    if how != "jsonl":  # which alone can hold lists
        lists = [name for name, kind in labels.schema.items() if kind.is_nested()]
        labels = labels.with_columns(labels[name].list.join(" ") for name in lists)
    return to_rows(labels, how)


def _label_grids(anchored: Anchored) -> Iterator[Grid]:
    labels = anchored.labels
    for column, title in (("status", "labels"), ("cut", "chunks that hold them")):
        if column in labels.columns:
            counts = anchored.summary(column).rows()
            rows = [[value, str(count)] for value, count in counts]
            yield Grid(f"{title} · {sum(count for _, count in counts)}", [column, "labels"], rows)
    doubtful = labels["status"].is_in(DOUBTFUL_STATUS)
    if "cut" in labels.columns:
        doubtful |= labels["cut"].is_in(CUT_LABELS).fill_null(value=False)
    rows = [_label_cells(row) for row in labels.filter(doubtful).to_dicts()]
    if rows:
        header = ["query", "label", "status", "place", "note", "score"]
        yield Grid("labels to look at", header, rows, left=5)


def _label_cells(row: dict[str, Any]) -> list[str]:
    text = " ".join((row["quote"] or row["id"]).split())
    place = "–" if row["start"] is None else f"{row['doc']} {row['start']}–{row['end']}"
    status, note = row["status"], row["note"]
    if row.get("cut") in CUT_LABELS:
        status += f", {row['cut']}"
        held = f"in {', '.join(row['chunks'])}" if row["chunks"] else ""
        note = "; ".join(filter(None, [note, held]))
    return [row["query"], shorten(text, QUOTE_LETTERS), status, place, note, number(row["score"])]


@command.command("agree", short_help="Say how far two rankings, labellings or results agree.")
@click.argument("first", metavar="FIRST")
@click.argument("second", metavar="[SECOND]", required=False)
@option("--kind rankings|labels|systems", "What the two sides are (default: detected).")
@options.measures("those of the first result", "recall@5, by which results order systems")
@option(
    "-p, --persistence P",
    "Rankings: p of RBO, the probability of reading on to the next rank.",
    default=0.9,
)
@option(
    "-k, --cutoff K", "Rankings: cut them at this rank (default: whole lists).", name="depth", low=1
)
@option("--column NAME", "Labels in tables: the column that holds them.")
@options.level
@options.read("run_format", "gold_format", "skip_bad", "id_from", "ids")
@option("--details", "Also print every query or every system.")
@options.output(AGREEMENT_FORMATS)
def agree(
    *,
    first: str,
    second: str | None,
    measures: tuple[str, ...],
    how: str,
    output: str | None,
    details: bool,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Say how far two rankings, two sets of labels, two results or the annotators of a pool agree.

    \b
    findwell labels agree old.trec new.trec                two rankings
    findwell labels agree qrels-anna.txt qrels-ben.txt     two sets of labels
    findwell labels agree anna.csv judge.csv --column v    labels in tables
    findwell labels agree results/gold results/judge       two orders of systems
    findwell labels agree pool/                            annotators of one pool

    Rankings are compared by RBO, Kendall's tau and tau-AP, labels by Cohen's kappa, plain and
    weighted, and orders of systems, one for each measure, by tau and tau-AP. Tables of labels
    have the columns query, doc and the one that --column names. Annotators are compared by Cohen's
    and Fleiss' kappa, Krippendorff's alpha and Gwet's AC1, with the prevalence next to them; with
    --details also one by one, and query by query, the least clear ones first.
    """
    from findwell.loop.labels.agree import agree as compare_labels  # noqa: PLC0415
    from findwell.show.document import document_of  # noqa: PLC0415

    found = compare_labels(first, second, measures=list(measures) or None, **choices)
    envelope.show(how, output, document_of(found, details=details))
    if how != "json":
        options.print_findings(found.findings)
