"""What is measured: each section runs its jobs and says what it found, as a table and as facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from statistics import linear_regression
from typing import TYPE_CHECKING

from benchmarks.measure import STARTS, Job, Outcome, run_all, start_ups
from benchmarks.report import MB, NOTHING, Table, shown_seconds
from benchmarks.tools import DICTS, FILES, KERNEL, MEASURES, TABLES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.data import Files

    Outcomes = Mapping[Job, Outcome]

FROM_FILES = """\
From a TREC run and TREC judgements on disk to six aggregated numbers, each tool with the reader
that its documentation shows. *Peak* is the most memory the process held, *added* that minus what
it held after imports and warm-up."""
FROM_DICTS = """\
From `{query: {doc: score}}` and `{query: {doc: grade}}` in memory to six aggregated numbers; making
the dicts is not timed, making a tool's own objects from them is."""
KERNELS = """\
From what each tool keeps in memory to a value for each query and measure. They do not keep the
same:

- findwell: the formulas over a relation, in which documents are sorted and matched with the
  judgements already; nothing that an earlier measurement computed is used.
- findwell, sorting and matching included: `findwell.evaluate` of a `Run` and a `Gold`, tables of
  strings in the order of the file, to aggregated numbers.
- pytrec-eval-terrier: `evaluate` of a run dict by an evaluator that holds the judgements; sorts
  and matches each time.
- ranx: `evaluate` of a `Run` and a `Qrels`, which are sorted already, with `make_comparable` and
  `save_results_in_run` off; hashes the document ids and matches each time.

The second line is the one to compare with the other tools, as it does at least what they do. The
first is what one more evaluation costs once a run is matched, which the others do not offer: other
measures, other cutoffs, a slice."""
SCALING = """\
findwell from TREC files, more and more queries. The exponent is the slope of log time over log
queries: 1 is linear."""
MEMORY = """\
findwell from TREC files. The judgements and what was hit are held, the run is read in blocks: with
more queries there are more judgements to hold, with a deeper run of as many queries there are
not. The shallow runs fit into a block or two."""
START_UP = f"""\
Median of {STARTS} starts, in turns."""


@dataclass(slots=True)
class Facts:
    """What the targets are judged by, gathered section by section."""

    ratios: dict[tuple[str, str], float] = field(default_factory=dict)  # stage, tool: largest files
    exponent: float | None = None
    held: float | None = None  # bytes of memory a byte that the run grew by
    start_up: tuple[float, float] | None = None  # bare Python, findwell --help
    busy: float | None = None  # share of the allowed concurrency that a judge's client used
    disagreements: list[str] = field(default_factory=list)
    commands: dict[int, dict[str, float]] = field(default_factory=dict)  # CPU s by queries and tool
    command_exponent: float | None = None  # of findwell, between the two largest files
    variants: dict[str, float] = field(default_factory=dict)  # CPU time ÷ that of the plain file
    small: dict[str, float] = field(default_factory=dict)  # wall time ÷ that of pytrec_eval
    taken_in: float | None = None  # spans a second
    taken_in_memory: float | None = None  # peak of the large store ÷ that of the small one


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table that compares tools."""

    label: str
    tool: str
    stage: str

    def job(self, files: Files) -> Job:
        """Return what to run for it."""
        return Job(self.tool, self.stage, files)


def _rows(stage: str, *tools: str) -> list[Row]:
    return [Row(tool, tool, stage) for tool in tools]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same stage of several tools, over several sizes; the first row is what others face."""

    title: str
    remark: str
    rows: Sequence[Row]
    memory: bool = False

    def jobs(self, sizes: Sequence[Files]) -> list[Job]:
        """Return what to run."""
        return [row.job(files) for files in sizes for row in self.rows]

    def note(self, sizes: Sequence[Files], outcomes: Outcomes, facts: Facts) -> None:
        """Add what was found to the facts."""
        for files in sizes:
            facts.disagreements += _disagreements(self._at(files, outcomes))
        found = self._at(sizes[-1], outcomes)
        ours = found[self.rows[0]].seconds
        facts.ratios |= {(row.stage, row.tool): each.seconds / ours for row, each in found.items()}

    def table(self, sizes: Sequence[Files], outcomes: Outcomes) -> Table:
        """Return what was found as a table."""
        header = ["queries × documents", "tool", "seconds", "ratio", "tries"]
        header += ["peak MB", "added MB"] if self.memory else []
        lines = []
        for files in sizes:
            found = self._at(files, outcomes)
            lines += [[str(files), row.label, *self._cells(row, found)] for row in self.rows]
        return Table(self.title, self.remark, header, lines, texts=2)

    def _at(self, files: Files, outcomes: Outcomes) -> dict[Row, Outcome]:
        jobs = {row: row.job(files) for row in self.rows}
        return {row: outcomes[job] for row, job in jobs.items() if job in outcomes}

    def _cells(self, row: Row, found: Mapping[Row, Outcome]) -> list[str]:
        if row not in found:
            return [TOOLS[row.tool].absent(), *[NOTHING] * (4 if self.memory else 2)]
        outcome, ours = found[row], found[self.rows[0]].seconds
        cells = [
            shown_seconds(outcome.seconds),
            f"{outcome.seconds / ours:.1f}",
            str(outcome.tries),
        ]
        return cells + ([_mb(outcome.peak), _mb(outcome.added)] if self.memory else [])


PEERS = ("pytrec-eval-terrier", "ir-measures", "ranx")
COMPARISONS = (
    Comparison(
        "1. From TREC files",
        FROM_FILES,
        _rows(FILES, "findwell", "findwell, one core", "trec_eval", *PEERS),
        memory=True,
    ),
    Comparison("2. From dicts", FROM_DICTS, _rows(DICTS, "findwell", *PEERS)),
    Comparison(
        "3. Kernels",
        KERNELS,
        [
            *_rows(KERNEL, "findwell"),
            Row("findwell, sorting and matching included", "findwell", TABLES),
            *_rows(KERNEL, "pytrec-eval-terrier", "ranx"),
        ],
    ),
)


def _mb(size: int) -> str:
    return f"{size / MB:,.0f}"


def _disagreements(found: Mapping[Row, Outcome]) -> list[str]:
    """Name every number that is not findwell's."""
    (_, reference), *others = found.items()
    return [
        f"{row.label}, {row.stage}: {measure} is {outcome.numbers[measure]:.8f}, "
        f"findwell's is {reference.numbers[measure]:.8f}"
        for row, outcome in others
        for measure in MEASURES
        if abs(outcome.numbers[measure] - reference.numbers[measure]) > TOOLS[row.tool].tolerance
    ]


def scaling(sizes: Sequence[Files], rounds: int, facts: Facts) -> Table:
    """Time findwell over more and more queries."""
    outcomes = _findwell(sizes, rounds)
    points = [(files.queries, outcome.seconds) for files, outcome in outcomes.items()]
    whole, tail = exponent(points), exponent(points[len(points) // 2 :])
    facts.exponent = tail
    rows = [
        (
            f"{files}",
            shown_seconds(seconds := outcome.seconds),
            f"{seconds / files.queries * 1e6:.1f}",
        )
        for files, outcome in outcomes.items()
    ]
    half = points[len(points) // 2][0]
    rows += [("exponent", f"{whole:.2f}", ""), (f"exponent from {half:,} on", f"{tail:.2f}", "")]
    return Table("4. Scaling", SCALING, ("queries × documents", "seconds", "µs a query"), rows)


def _findwell(sizes: Sequence[Files], rounds: int) -> dict[Files, Outcome]:
    jobs = {files: Job("findwell", FILES, files) for files in sizes}
    outcomes = run_all(list(jobs.values()), rounds)
    return {files: outcomes[job] for files, job in jobs.items()}


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """Return the slope of log seconds over log queries: 1 is linear."""
    queries, seconds = zip(*points, strict=True)
    return linear_regression([log(number) for number in queries], [log(s) for s in seconds]).slope


def memory(
    more_queries: Sequence[Files], deeper: Sequence[Files], rounds: int, facts: Facts
) -> Table:
    """Weigh findwell over larger and larger files."""
    outcomes = _findwell([*more_queries, *deeper], rounds)
    if len(deeper) > 1:
        shallow, deep = deeper[-2:]  # both of many blocks; a short run fills no pipeline
        grown = outcomes[deep].added - outcomes[shallow].added
        facts.held = max(grown, 0) / (deep.run_bytes - shallow.run_bytes)
    rows = [
        (
            str(files),
            _mb(files.run_bytes),
            _mb(files.gold.stat().st_size),
            _mb(outcome.peak),
            _mb(outcome.added),
        )
        for files, outcome in outcomes.items()
    ]
    header = ("queries × documents", "run MB", "judgements MB", "peak MB", "added MB")
    return Table("5. Memory", MEMORY, header, rows)


def start_up(facts: Facts) -> Table:
    """Time what a user waits for before anything happens."""
    bare, ours = start_ups([["-c", "pass"], ["-m", "findwell", "--help"]])
    if bare is not None and ours is not None:
        facts.start_up = bare, ours
    rows = [
        (name, "n/a" if value is None else f"{value * 1000:.0f}")
        for name, value in (("python -c pass", bare), ("python -m findwell --help", ours))
    ]
    return Table("6. Start-up", START_UP, ("command", "ms"), rows)
