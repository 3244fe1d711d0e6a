"""What commands share: options, how their values are read, and how output is written."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.core import ParameterSource

from karat.findings import shorten
from karat.reports.escape import printable
from karat.reports.tables import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from karat.findings import Finding
    from karat.progress import Progress, Report
    from karat.results.result import Result


NOT_MEASURED = 3  # exit code: as for a gate, there is no number to decide by
# as in karat.measures, which `karat --help` need not wait for
DEFAULT_MEASURES = "recall@5, recall@10, P@5, RR, AP, nDCG@10"

Decorator: TypeAlias = "Callable[[Callable[..., Any]], Callable[..., Any]]"


def inputs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the runs, and the options that say what else is read, how, and in which dialect."""
    function = reading(dialect(latency(function)))
    return click.argument("runs", nargs=-1, required=True, metavar="RUN...")(function)


def reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what is read beside the runs, how, and what matches."""
    return _add(
        function,
        click.option(
            "-g",
            "--gold",
            metavar="FILE",
            help="What should be found: judgements or gold records (default: the records of the "
            "runs hold it).",
        ),
        formats,
        click.option(
            "--ids",
            default="identity",
            metavar="HOW",
            help="How document ids are normalised before they are compared: identity, uuid, "
            "chunk-to-doc:SEP, stem, lower, nfc, regex:PATTERN.",
        ),
        click.option(
            "--by",
            metavar="RELATION",
            help="What makes a retrieved document match a gold item: ids, exact, rouge, "
            "rouge-sentence(threshold=0.9), spans, semantic, … (default: ids; "
            "`karat measures --relations` lists all).",
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
    )


def formats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how files are read."""
    detected = "(default: detected from the content)."
    return _add(
        function,
        click.option("--run-format", metavar="NAME", help=f"Format of the runs {detected}"),
        click.option("--gold-format", metavar="NAME", help=f"Format of the gold {detected}"),
        click.option(
            "--skip-bad",
            is_flag=True,
            help="Leave out records that cannot be read, and count them, instead of stopping.",
        ),
    )


DIALECT_HELP = (
    "Tool whose numbers to reproduce: karat, autorag, continuous-eval, course, liverag, ragas, "
    "trec_eval, trec_eval-9."
)


def dialect(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that names one dialect."""
    return click.option("--dialect", default="karat", metavar="NAME", help=DIALECT_HELP)(function)


def dialects(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that names one or several dialects."""
    return click.option(
        "--dialect",
        "dialects",
        multiple=True,
        metavar="NAME",
        default=["karat"],
        help=f"{DIALECT_HELP} Repeat it to see several side by side, and why they differ.",
    )(function)


def latency(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the unit of times."""
    return click.option(
        "--latency-unit",
        type=click.Choice(["ms", "s", "us", "ns"]),
        help="Unit of latencies whose field does not name it, as latency_ms does.",
    )(function)


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


def measuring(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that measures what it reads."""
    return _add(
        function,
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
            "(default: as the dialect does; karat counts zero).",
        ),
    )


def slicing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the columns of the queries, and what is done by them."""
    return _add(
        function,
        click.option(
            "--queries", metavar="FILE", help="Table with columns about the queries, to slice by."
        ),
        click.option(
            "--slice",
            "slices",
            multiple=True,
            metavar="COLUMN",
            help="Also show the numbers for each value of this column; may be repeated.",
        ),
        click.option(
            "--cluster",
            metavar="COLUMN",
            help="Column of queries that are not independent: those with the same value count as "
            "one group in intervals (default: the column source, where values repeat).",
        ),
    )


def output(choices: Sequence[str], also: str = "") -> Decorator:
    """Add the format of the output, and the file it is written to."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _add(
            function,
            click.option(
                "--format",
                "how",
                type=click.Choice(choices),
                default=choices[0],
                help="Format of the output.",
            ),
            click.option(
                "-o",
                "--output",
                metavar="FILE",
                help=f"Write to this file instead of standard output{also}.",
            ),
        )

    return decorate


def _add(function: Callable[..., Any], *decorators: Decorator) -> Callable[..., Any]:
    """Add options in this order."""
    for option in reversed(decorators):
        function = option(function)
    return function


def some(
    *names: str, of: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add only these of the options that a decorator adds, by the names of their parameters."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        every: Any = of(lambda: None)
        chosen = [each for each in every.__click_params__ if each.name in names]
        vars(function).setdefault("__click_params__", []).extend(chosen)
        return function

    return add


def given(choices: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given; the rest is as saved results say, or as usual."""
    context = click.get_current_context()
    return {
        name: value
        for name, value in choices.items()
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def saved_result(runs: tuple[str, ...], choices: dict[str, Any], *meant: str) -> Result | None:
    """Return the saved result that stands in the place of RUN; None if a run file does.

    Of the options only those that are `meant` for results have an effect; another is an error.
    """
    from karat.results.reuse import load_only, refuse_inputs, same_dialect  # noqa: PLC0415

    result = load_only(runs)
    if result is not None:
        chosen = given(choices)
        refuse_inputs(
            f"--{name.replace('_', '-')}" for name in chosen if name not in ("dialect", *meant)
        )
        same_dialect(result, chosen.get("dialect", result.dialect))
    return result


def systems(runs: tuple[str, ...], gold: str | None) -> tuple[list[str], str | None]:
    """Return what is compared: run files and their gold, or files and folders that hold both."""
    files, gold = paths(runs, gold)
    return ([files] if isinstance(files, str) else files), gold


def paths(runs: tuple[str, ...], gold: str | None) -> tuple[str | list[str], str | None]:
    """Return the runs and the gold to read, or the files that hold both."""
    if [*runs, gold].count("-") > 1:
        raise click.UsageError("standard input can be read only once")
    files = [_path(run) for run in runs]
    if gold is None:
        return (files[0] if len(files) == 1 else files), None
    return files, _path(gold)


def _path(name: str) -> str:
    """Return the path of a file; - is standard input."""
    return "/dev/stdin" if name == "-" else name


def use_color() -> bool:
    """Tell whether standard output is a terminal that wants colour."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(output: str | None) -> int | None:
    """Return the width of the terminal that is written to; None if it is none."""
    if output not in (None, "-") or sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


@contextmanager
def progress(message: str) -> Iterator[Report | None]:
    """Show on a terminal's standard error how far the work has come."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bars  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    columns = (
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[rate]}"),
        bars.TimeRemainingColumn(),
        bars.TextColumn("{task.fields[note]}"),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(message, total=None, rate="", note="")

        def tell_bar(step: Progress) -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:,.{1 if speed < 10 else 0}f}/s" if speed else ""
            bar.update(task, completed=step.done, total=step.total, rate=rate, note=step.note)

        yield tell_bar


def tell(findings: Iterable[Finding]) -> None:
    """Print findings on standard error, each with what to do about it."""
    for finding in findings:
        click.echo(f"note: {describe(finding)}", err=True)
        if finding.fix:
            click.echo(f"  fix: {printable(finding.fix)}", err=True)


def describe(finding: Finding) -> str:
    """Return a finding as one line."""
    examples = ", ".join(map(shorten, finding.examples))
    examples += ", …" if finding.count > len(finding.examples) else ""
    run = f"{finding.run}: " if finding.run else ""
    return printable(f"{run}{finding.count} × {finding.message} ({examples})")


def tell_unmeasured(lines: Iterable[str]) -> int:
    """Say what was asked for and not measured; return the exit code, 0 if that is nothing."""
    code = 0
    for line in lines:
        click.echo(f"not measured: {printable(line)}", err=True)
        code = NOT_MEASURED
    return code


def write(text: str, output: str | None) -> None:
    """Print to standard output, or write a file whole or not at all."""
    if output in (None, "-"):
        _print(text)
        return
    from karat.storage.files import write_text  # noqa: PLC0415

    write_text(output, text)


def _print(text: str) -> None:
    """Print data whole, or raise: unbuffered, Python drops what a full disk does not take."""
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:
        click.echo(text, nl=False)
        return
    sys.stdout.flush()
    left = memoryview(text.encode(sys.stdout.encoding, "backslashreplace"))
    while left:
        left = left[raw.write(left) :]
    raw.flush()


__all__ = [
    "FORMATS",
    "describe",
    "dialect",
    "dialects",
    "formats",
    "given",
    "inputs",
    "latency",
    "measures",
    "measuring",
    "output",
    "paths",
    "progress",
    "reading",
    "saved_result",
    "slicing",
    "some",
    "systems",
    "tell",
    "tell_unmeasured",
    "use_color",
    "width",
    "write",
]
