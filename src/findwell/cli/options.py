"""What commands share: options, how their values are read, and how output is written."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import click
from click.core import ParameterSource

from findwell.show.escape import printable
from findwell.show.tables import describe_finding, reading_width
from findwell.show.terminal import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from findwell.core.findings import Finding
    from findwell.core.progress import Progress, Report
    from findwell.evaluation.results.result import Result

NOT_MEASURED = 3  # exit code: as for a gate, there is no number to decide by
# as in findwell.measures, which `findwell --help` need not wait for
DEFAULT_MEASURES = "recall@5, recall@10, P@5, RR, AP, nDCG@10"
DIALECT_HELP = (
    "Tool whose numbers to reproduce: findwell, autorag, continuous-eval, course, liverag, ragas, "
    "trec_eval, trec_eval-9."
)

Decorator: TypeAlias = "Callable[[Callable[..., Any]], Callable[..., Any]]"


def option_set(*decorators: Decorator) -> Decorator:
    """Return a decorator that adds several options, in this order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return add


run_format = click.option(
    "--run-format",
    metavar="NAME",
    help="Format of the runs (default: detected from the content).",
)
gold_format = click.option(
    "--gold-format",
    metavar="NAME",
    help="Format of the gold (default: detected from the content).",
)
skip_bad = click.option(
    "--skip-bad",
    is_flag=True,
    help="Leave out records that cannot be read, and count them, instead of stopping.",
)
id_from = click.option(
    "--id-from",
    metavar="FIELD",
    help="Field of retrieved objects that holds their ids, such as metadata.chunk (default: their "
    "own id).",
)
query_from = click.option(
    "--query-from",
    metavar="ATTRIBUTE",
    help="Attribute of traces that holds the id of the query, such as metadata.query_id (default: "
    "queries are joined with the gold by their questions).",
)
ids = click.option(
    "--ids",
    default="identity",
    metavar="HOW",
    help="How document ids are normalised before they are compared: identity, uuid, "
    "chunk-to-doc:SEP, stem, lower, nfc, regex:PATTERN.",
)


def _limit_spool(context: click.Context, _: click.Parameter, limit: str | None) -> None:
    """Keep that much of a pipe, for as long as the command runs."""
    if limit is not None:
        from findwell.io.storage import spool  # noqa: PLC0415

        context.with_resource(spool.limited(limit))


disjoint = click.option(
    "--disjoint",
    is_flag=True,
    help="The runs search different collections: fuse them although they share no document.",
)
spool_limit = click.option(
    "--spool-limit",
    metavar="SIZE",
    expose_value=False,
    callback=_limit_spool,
    help="Most that is kept in a temporary file of a pipe, such as 500MB or 20GiB; none for no "
    "limit (default: 8GiB; also: FINDWELL_SPOOL_LIMIT).",
)
# what is read beside the runs, how, and what matches
reading = option_set(
    click.option(
        "-g",
        "--gold",
        metavar="FILE",
        help="What should be found: judgements or gold records (default: the records of the "
        "runs hold it).",
    ),
    run_format,
    gold_format,
    skip_bad,
    id_from,
    query_from,
    spool_limit,
    ids,
    click.option(
        "--by",
        metavar="RELATION",
        help="What makes a retrieved document match a gold item: ids, exact, rouge, "
        "rouge-sentence(threshold=0.9), spans, semantic, … (default: spans where the gold "
        "labels places, else ids; `findwell measures --relations` lists all).",
    ),
    click.option(
        "--corpus", metavar="PATH", help="Texts of the documents by id: a file or a folder."
    ),
    click.option(
        "--embedder",
        metavar="MODEL",
        help="Model that embeds texts for the relation `semantic`: minilm, onnx:PATH, "
        "openai:MODEL, … (default: the model that the relation names).",
    ),
    click.option(
        "--tokenizer",
        metavar="NAME",
        help="What counts the tokens of budgets such as recall@2000tokens: approximate, or "
        "tokenizers:PATH for the tokenizer.json of a model (default: approximate).",
    ),
)
dialect = click.option("--dialect", default="findwell", metavar="NAME", help=DIALECT_HELP)
dialects = click.option(
    "--dialect",
    "dialects",
    multiple=True,
    metavar="NAME",
    default=["findwell"],
    help=f"{DIALECT_HELP} Repeat it to see several side by side, and why they differ.",
)
latency = click.option(
    "--latency-unit",
    type=click.Choice(["ms", "s", "us", "ns"]),
    help="Unit of latencies whose field does not name it, as latency_ms does.",
)
runs = click.argument("runs", nargs=-1, required=True, metavar="RUN...")
inputs = option_set(runs, reading, dialect, latency)
measuring = option_set(
    click.option(
        "--rel",
        type=float,
        metavar="GRADE",
        help="Lowest grade that counts as relevant (default: 1).",
    ),
    click.option(
        "--missing",
        type=click.Choice(["zero", "skip", "error"]),
        help="What to do with a query that a run lacks: count it as zero, skip it, or stop "
        "(default: as the dialect does; findwell counts zero).",
    ),
)
slicing = option_set(
    click.option(
        "--queries", metavar="FILE", help="Table with columns about the queries, to slice by."
    ),
    click.option(
        "--slice",
        "slices",
        multiple=True,
        metavar="COLUMN",
        help="Also show the numbers for each value of this column, or by the time in one: "
        "time:hour, time:day, time:week, time:month; may be repeated.",
    ),
    click.option(
        "--cluster",
        metavar="COLUMN",
        help="Column of queries that are not independent: those with the same value count as "
        "one group in intervals (default: the column source, where values repeat).",
    ),
)
labels = click.option(
    "--labels",
    metavar="POOL",
    help="Labels of some pairs: the folder of a pool, its labels.db, or judgements. Estimates "
    "values from them, alone and with a judge, instead of measuring against a gold.",
)
level = click.option(
    "--level",
    type=float,
    default=0.95,
    metavar="SHARE",
    help="Confidence level of the intervals.",
)


def measures(default: str = DEFAULT_MEASURES, example: str = "nDCG@10 or P@5/rouge") -> Decorator:
    """Add the measures, which may be several."""
    return click.option(
        "-m",
        "--measure",
        "measures",
        multiple=True,
        metavar="MEASURE",
        help=f"Measure, such as {example}; may be repeated (default: {default}).",
    )


def output_format(choices: Sequence[str]) -> Decorator:
    """Add the format of the output."""
    return click.option(
        "--format",
        "how",
        type=click.Choice(choices),
        default=choices[0],
        help="Format of the output.",
    )


def output(choices: Sequence[str], also: str = "") -> Decorator:
    """Add the format of the output, and the file it is written to."""
    written = f"Write to this file instead of standard output{also}."
    file = click.option("-o", "--output", metavar="FILE", help=written)
    return option_set(output_format(choices), file)


def whole_numbers(_: click.Context, __: click.Parameter, text: str | None) -> list[int] | None:
    """Read a list of numbers from 1 up, such as 1,5,10, and put them in order."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 1 <= int(part) <= 10**9 for part in parts):
        raise click.BadParameter(f"{text!r} is not a list of whole numbers such as 1,5,10")
    return sorted(set(map(int, parts)))


def explicit(choices: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given; the others are as saved results have them, or usual."""
    context = click.get_current_context()
    return {
        name: value
        for name, value in choices.items()
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def saved_result(runs: Sequence[str], choices: dict[str, Any], *allowed: str) -> Result | None:
    """Return the saved result that is named instead of a run; None if a run file is named.

    Of the options only those `allowed` have an effect on a result; another is an error.
    """
    if all(map(os.path.isfile, runs)):  # a result is a folder
        return None
    from findwell.evaluation.results.result import load_only, refuse_inputs, same_dialect  # noqa: PLC0415

    result = load_only(runs)
    if result is not None:
        chosen = {  # what a project has settled is about the files of a run
            name: value
            for name, value in explicit(choices).items()
            if click.get_current_context().get_parameter_source(name)
            is not ParameterSource.DEFAULT_MAP
        }
        refuse_inputs(
            f"--{name.replace('_', '-')}" for name in chosen if name not in ("dialect", *allowed)
        )
        same_dialect(result, chosen.get("dialect", result.dialect))
    return result


def paths(runs: Sequence[str], gold: str | None = None) -> tuple[list[str], str | None]:
    """Return the files to read, runs and gold; - is standard input."""
    if [*runs, gold].count("-") > 1:
        raise click.UsageError("standard input can be read only once")
    files = ["/dev/stdin" if name == "-" else name for name in runs]
    return files, "/dev/stdin" if gold == "-" else gold


_BARS: list[Any] = []  # bars of progress that are on the screen


class Screen(TypedDict):
    """How a table is drawn."""

    color: bool
    width: int | None  # of the terminal; None: as wide as it likes


def use_color() -> bool:
    """Return whether standard output is a terminal that wants colour."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(output: str | None) -> int | None:
    """Return the width of the terminal that is written to; None if it is none."""
    if output not in (None, "-") or sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def screen(output: str | None) -> Screen:
    """Return how tables are drawn: in colour or not, and how wide at most."""
    return {"color": output in (None, "-") and use_color(), "width": width(output)}


@contextmanager
def progress(message: str) -> Iterator[Report | None]:
    """Show on a terminal's standard error how far the work has come."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bars  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Column  # noqa: PLC0415

    columns = (
        bars.SpinnerColumn(),
        bars.TextColumn("{task.fields[phase]}", table_column=Column(no_wrap=True)),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[rate]}"),
        bars.TimeRemainingColumn(),
        bars.TextColumn("{task.fields[note]}"),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        _BARS.append(bar)
        task = bar.add_task(message, total=None, rate="", note="", phase=message)

        def update_bar(step: Progress) -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:,.{1 if speed < 10 else 0}f}/s" if speed else ""
            phase = step.phase or message
            bar.update(
                task,
                completed=step.done,
                total=step.total,
                rate=rate,
                note=step.note,
                phase=phase,
            )

        try:
            yield update_bar
        finally:
            _BARS.remove(bar)


def print_findings(findings: Iterable[Finding]) -> None:
    """Print findings on standard error, each with what to do about it."""
    for finding in findings:
        note(f"note: {describe_finding(finding)}")
        if finding.fix:
            note(f"  fix: {printable(finding.fix)}")


def note_judges(lines: Iterable[str]) -> None:
    """Print on standard error who judged, where the format has no room for it."""
    for line in lines:
        note(printable(line))


def print_unmeasured(lines: Iterable[str]) -> int:
    """Print what was asked for and not measured; return the exit code, 0 if that is nothing."""
    code = 0
    for line in lines:
        note(f"not measured: {printable(line)}")
        code = NOT_MEASURED
    return code


def error_width() -> int | None:
    """Return the width of the terminal behind standard error; None if it is not a terminal."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return shutil.get_terminal_size().columns if terminal else None


def note(text: str) -> None:
    """Print a line on standard error; on a terminal it is broken between words, and in colour."""
    terminal = error_width() is not None
    lines = wrap(text, error_width())
    plain = not terminal or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    head, colon, rest = lines.partition(":")
    click.echo(lines if plain else f"{click.style(head + colon, fg='yellow')}{rest}", err=True)


def write(text: str, output: str | None, how: str | None = None) -> None:
    """Print to standard output, or write a file whole or not at all.

    In the format `table`, lines that are wider than a terminal are broken between words.
    """
    if output in (None, "-"):
        _print(wrap(text, width(output)) if how == "table" else text)
        return
    from findwell.io.storage.files import write_text  # noqa: PLC0415

    write_text(output, text)


def say(text: str) -> None:
    """Print sentences to standard output, broken between words: for 80 columns, or for fewer."""
    _print(wrap(f"{text}\n", reading_width(width(None))))


def _print(text: str) -> None:
    """Print data whole, or raise: unbuffered, Python drops what a full disk does not take."""
    for bar in _BARS:  # which has taken the place of standard output
        bar.stop()
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:
        click.echo(text, nl=False)
        return
    sys.stdout.flush()
    left = memoryview(text.encode(sys.stdout.encoding, "backslashreplace"))
    while left:
        left = left[raw.write(left) :]
    raw.flush()
