"""What commands share: options, how their values are read, and how output is written.

Options have the names of what they set: the fields of `Plan` and of `Reading`.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict

import click
from click.core import ParameterSource

from findwell.cli.command import Decorator, Settings, option, option_set, settings_of, typed_options
from findwell.core.errors import OptionError
from findwell.show.escape import printable
from findwell.show.tables import describe_finding, reading_width, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from findwell.core.findings import Finding
    from findwell.core.progress import Progress, Report
    from findwell.evaluation.results.result import Result
    from findwell.show.document import Document

NOT_MEASURED = 3  # exit code: as for a gate, there is no number to decide by
# as in findwell.measures, which `findwell --help` need not wait for
DEFAULT_MEASURES = "recall@5, recall@10, P@5, RR, AP, nDCG@10"
DIALECTS = "findwell, autorag, continuous-eval, course, liverag, ragas, trec_eval, trec_eval-9"

RUN_READING = ("run_format", "skip_bad", "id_from", "spool_limit")
# options about what is read, which have no effect on a saved result
INPUTS = frozenset({"gold", "by", "corpus", "queries", "labels", "judge", "dry_run"})


def read(*names: str) -> Decorator:
    """Add `--read NAME=VALUE`, also spelled `--map`; its values are keywords of the command."""
    roles = [name.removesuffix("_format") for name in names if name.endswith("_format")]
    meaning = "--map gold.FIELD=gold says what a field means. " if roles else ""
    how = option(
        "--read, --map",
        f"How inputs are read: {', '.join(names[:3])}{', …' if names[3:] else '.'} {meaning}"
        "May be repeated; --help-input lists all.",
        cls=Settings,
        table="read",
        topic="input",
        sections=["read", "map"],
        names=[*names, *roles],
        name="read",
    )
    return option_set(how, group="Input", make=_reading_options)


def _reading_options(read: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of --read as functions take them."""
    if fields := {role: read.pop(role) for role in ("run", "gold") if role in read}:
        read["fields"] = fields
    limit = read.pop("spool_limit", None)
    if limit is not None:
        from findwell.io.storage import spool  # noqa: PLC0415

        click.get_current_context().with_resource(spool.limited(limit))
    return read


runs = click.argument("runs", nargs=-1, required=True, metavar="RUN...")
gold = option(
    "-g, --gold FILE",
    "What should be found. Judgements or gold records (default: the records of the runs hold it).",
)
corpus = option("--corpus PATH", "Texts of the documents by id. A file or a folder.")
queries = option(
    "--queries FILE",
    "Table about the queries: texts, slices. Its columns are query, question and others.",
)
by = option(
    "--by RELATION",
    "What makes a document match: ids, rouge, … Also: exact, rouge-sentence(threshold=0.9), "
    "spans, semantic (default: spans where the gold labels places, else ids; `findwell measures "
    "--relations` lists all).",
    group="Measures",
)
dialect = option(
    "--dialect NAME",
    f"Tool whose numbers to reproduce. One of: {DIALECTS}.",
    default="findwell",
    group="Measures",
)
dialects = option(
    "--dialect NAME...",
    f"Tool whose numbers to reproduce. One of: {DIALECTS}. Repeat it to see several side by "
    "side, and why they differ.",
    name="dialects",
    default=["findwell"],
    group="Measures",
)
rel = option("--rel GRADE", "Lowest grade that counts as relevant (default: 1).", group="Measures")
slices = option(
    "--slice COLUMN...",
    "Also show results for each value of this column. A column of times as time:hour, time:day, "
    "time:week or time:month; may be repeated.",
    name="slices",
    group="Measures",
)
disjoint = option(
    "--disjoint", "Fuse runs that share no document. They search different collections."
)
labels = option(
    "--labels POOL",
    "Labels of some pairs, instead of --gold. The folder of a pool, its labels.db, or "
    "judgements: values are estimated from them, alone and with a judge.",
    group="Input",
)
level = option(
    "--level SHARE", "Confidence level of the intervals.", default=0.95, group="Measures"
)
opened = option("--open", "Also open the browser.", name="browse", group="Output")


def reading(*more: str, queries_too: bool = False) -> Decorator:
    """Add what is read in addition to the runs, how, and what matches."""
    known = (
        *("run_format", "skip_bad", "ids", "gold_format", "id_from", "query_from"),
        "search_span",
        *("embedder", "tokenizer", "spool_limit"),
    )
    added = (gold, corpus, *((queries,) if queries_too else ()), read(*known, *more))
    return option_set(*added, by, group="Input")


def measures(default: str = DEFAULT_MEASURES, example: str = "nDCG@10 or P@5/rouge") -> Decorator:
    """Add the measures, which may be several."""
    return option(
        "-m, --measure MEASURE...",
        f"Measure, such as {example}. May be repeated (default: {default}).",
        name="measures",
        group="Measures",
    )


def output_format(choices: Sequence[str]) -> Decorator:
    """Add the format of the output."""
    return option(
        "--format FORMAT",
        f"Format of the output. One of: {', '.join(choices)}.",
        name="how",
        type=click.Choice(choices),
        default=choices[0],
        group="Output",
    )


def output(choices: Sequence[str], also: str = "") -> Decorator:
    """Add the format of the output, and the file it is written to."""
    return option_set(output_format(choices), output_file(also))


def output_file(also: str = "") -> Decorator:
    """Add the file that output is written to."""
    text = f"Write to this file instead of standard output{also}."
    return option("-o, --output FILE", text, group="Output", callback=_no_page)


def _no_page(_: click.Context, __: click.Parameter, path: str | None) -> str | None:
    """Refuse the name of a page: what is written is text."""
    if path is not None and path.lower().endswith((".html", ".htm")):
        raise OptionError(
            f"this command writes text, not a page such as {path}",
            fix="make a page with `findwell report`, of runs, saved results or a trace store",
        )
    return path


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


def saved_result(runs: Sequence[str], *allowed: str) -> Result | None:
    """Return the saved result that is named instead of a run; None if a run file is named.

    Of the options about inputs only those `allowed` have an effect on a result; another one on the
    command line is an error. What a project has settled is about the files of a run.
    """
    if all(map(os.path.isfile, runs)):  # a result is a folder
        return None
    from findwell.evaluation.results.result import load_only, refuse_inputs, same_dialect  # noqa: PLC0415

    result = load_only(runs)
    if result is not None:
        context = click.get_current_context()
        settings = {name for each in settings_of(context.command) for name in each.fields}
        typed = typed_options(context)
        refuse_inputs(
            spelling
            for name, spelling in typed.items()
            if name in INPUTS | settings and name not in allowed
        )
        same_dialect(result, context.params["dialect"] if "dialect" in typed else result.dialect)
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
    """Return the width of the terminal that is written to; None if it is not a terminal."""
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
            shown: dict[str, Any] = {"note": step.note, "phase": step.phase or message}
            bar.update(task, completed=step.done, total=step.total, rate=rate, **shown)

        try:
            yield update_bar
        finally:
            _BARS.remove(bar)


def print_findings(findings: Iterable[Finding]) -> None:
    """Print findings on standard error, each with what to do about it."""
    for finding in findings:
        fix = [f"  fix: {printable(finding.fix)}"] if finding.fix else []
        note(f"note: {describe_finding(finding)}", *fix)


def print_unmeasured(lines: Iterable[str]) -> int:
    """Print what was asked for and not measured; return the exit code, 0 if that is nothing."""
    unmeasured = list(lines)
    for line in unmeasured:
        note(f"not measured: {printable(line)}")
    if not unmeasured:
        return 0
    from findwell.cli.envelope import fail  # noqa: PLC0415

    fail("NotMeasured", "; ".join(unmeasured))
    return NOT_MEASURED


def error_width() -> int | None:
    """Return the width of the terminal behind standard error; None if it is not a terminal."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return shutil.get_terminal_size().columns if terminal else None


def note(*texts: str) -> None:
    """Print lines on standard error; on a terminal they are broken between words.

    What one is about is in the colour of warnings, unless it only says what was written or saved.
    """
    columns = error_width()
    plain = columns is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    for text in texts:
        lines = wrap(text, columns)
        head, colon, rest = lines.partition(":")
        colored = f"{click.style(head + colon, fg='yellow')}{rest}"
        click.echo(lines if plain or head in ("written", "saved") else colored, err=True)


def write(text: str, output: str | None, how: str | None = None) -> None:
    """Print to standard output, or write a file whole or not at all.

    In the format `table`, lines that are wider than a terminal are broken between words.
    """
    if output in (None, "-"):
        _print(wrap(text, width(output)) if how == "table" else text)
        return
    from findwell.cli.envelope import wrote  # noqa: PLC0415
    from findwell.io.storage.files import write_text  # noqa: PLC0415

    write_text(output, text)
    wrote(output)


def prepare(how: str, output: str | None, *documents: Document) -> Callable[[], None]:
    """Compute all that documents show in a format, and return the function that writes it."""
    if how == "json":
        from findwell.cli import envelope  # noqa: PLC0415

        for each in documents:
            envelope.keep(each.data(), findings=each.findings, verdicts=each.verdicts())
        return functools.partial(envelope.send_to, output)
    from findwell.show.document import write as written  # noqa: PLC0415

    look = screen(output)
    texts = [written(each, how, **look) for each in documents]
    text = ("\n" if how == "markdown" else "").join(texts)
    shown = wrap(text, look["width"]) if how == "table" and output in (None, "-") else text
    return functools.partial(write, shown, output)


def say(text: str) -> None:
    """Print sentences to standard output, broken between words: for 80 columns, or for fewer."""
    _print(wrap(f"{text}\n", reading_width(width(None))))


def _print(text: str) -> None:
    """Print data whole, or raise: unbuffered, Python drops what a full disk does not take."""
    for bar in _BARS:  # which writes to standard output, too
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
