"""The targets of the design, and whether this run met them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.comparison import COMPARE
from benchmarks.matching import MATCHING
from benchmarks.report import Table
from benchmarks.tools import DICTS, FILES, KERNEL, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.sections import Facts

FASTER = (
    (FILES, "trec_eval", 3),
    (FILES, "pytrec-eval-terrier", 5),
    (FILES, "ir-measures", 10),
    (FILES, "ranx", 20),
    (DICTS, "pytrec-eval-terrier", 4),
    (DICTS, "ranx", 8),
    (KERNEL, "pytrec-eval-terrier", 50),
    (KERNEL, "ranx", 50),
    (MATCHING, "continuous-eval", 50),
    (COMPARE, "ranx", 20),
)
# as whole commands, by CPU time: queries, tool, how many times as fast
COMMANDS = ((10_000, "trec_eval", 3), (100_000, "pytrec-eval-terrier", 10))
# small evaluations as whole commands: at most so many times the time of a pytrec_eval script
SMALL = {
    "findwell score, TREC": 1.2,
    "findwell score, JSON lines": 1.2,
    "findwell compare, TREC": 1.5,
}
STRAIGHT = 1.05  # the exponent up to which a whole command counts as linear
OTHERWISE = 1.5  # how much dearer the same TREC run may be, written otherwise
WHERE = {
    FILES: "from TREC files",
    DICTS: "from dicts",
    KERNEL: "kernel",
    MATCHING: "matching texts",
    COMPARE: "comparing systems",
}
LINEAR = 1.1  # the exponent up to which time counts as linear in the queries
HELD = 0.1  # bytes of memory a byte of run, up to which memory counts as bounded
GRACE = 0.1  # seconds
BUSY = 0.9  # of the allowed concurrency
TAKEN_IN, KEPT_IN_MEMORY = 20_000, 2.0  # spans a second; growth of memory for ten times as many

REMARK = """\
Ratios are those of the largest files. A kernel ratio takes findwell's kernel, which has matched
before, against kernels that match each time; what it would be with findwell's sorting and matching
included stands next to it. Time counts as linear up to an exponent of {linear} over the
larger half of the sizes; memory as bounded if, from the second deepest run of as many queries to
the deepest, it grows by at most {held} bytes for each byte of run."""

Line = tuple[str, str, str]


def targets(facts: Facts, quick: bool) -> Table:
    """Judge every target; a quick run is too small to judge any."""
    lines = [*_faster(facts), _linear(facts), _bounded(facts), _start_up(facts), _busy(facts)]
    lines += [*_commands(facts), *_small(facts), _straight(facts), _otherwise(facts)]
    lines += _taken_in(facts)
    if quick:
        lines = [(target, measured, "not judged") for target, measured, _ in lines]
    remark = REMARK.format(linear=LINEAR, held=HELD)
    return Table("Targets", remark, ("target", "measured", "verdict"), lines, texts=3)


def agreement(facts: Facts) -> Table:
    """Say whether all tools measured the same."""
    remark = "Every tool must report findwell's numbers, or the times compare nothing."
    rows = [(line, "disagrees") for line in facts.disagreements]
    rows = rows or [("all tools, all sizes, all measures", "agree")]
    return Table("Agreement", remark, ("numbers", "verdict"), rows, texts=2)


def _faster(facts: Facts) -> Iterator[Line]:
    for stage, tool, factor in FASTER:
        target = f"{WHERE[stage]}: at least {factor} × as fast as {tool}"
        ratio = facts.ratios.get((stage, tool))
        if ratio is None:
            yield target, "not measured", "not judged"
        else:
            measured = f"{ratio:.1f} ×"
            if stage == KERNEL:
                same_work = ratio / facts.ratios[TABLES, "findwell"]
                measured += f" ({same_work:.1f} × with sorting and matching)"
            yield target, measured, _verdict(ratio >= factor)


def _commands(facts: Facts) -> Iterator[Line]:
    for queries, tool, factor in COMMANDS:
        target = f"whole command, {queries:,} queries: at least {factor} × as fast as {tool}"
        spent = facts.commands.get(queries, {})
        if tool not in spent:
            yield target, "not measured", "not judged"
        else:
            ratio = spent[tool] / spent["findwell"]
            yield target, f"{ratio:.1f} × (CPU)", _verdict(ratio >= factor)


def _small(facts: Facts) -> Iterator[Line]:
    for name, most in SMALL.items():
        target = f"small evaluation, {name}: at most {most} × the time of a pytrec_eval script"
        if name not in facts.small:
            yield target, "not measured", "not judged"
        else:
            yield target, f"{facts.small[name]:.2f} ×", _verdict(facts.small[name] <= most)


def _straight(facts: Facts) -> Line:
    target = "whole command: time linear in queries"
    if facts.command_exponent is None:
        return target, "not measured", "not judged"
    found = facts.command_exponent
    return target, f"exponent {found:.2f}", _verdict(found <= STRAIGHT)


def _otherwise(facts: Facts) -> Line:
    target = f"a TREC run written otherwise: at most {OTHERWISE} × the plain file"
    trec = {name: ratio for name, ratio in facts.variants.items() if not name.startswith("JSON")}
    if not trec:
        return target, "not measured", "not judged"
    worst = max(trec, key=trec.__getitem__)
    return target, f"{trec[worst]:.2f} × (CPU, {worst})", _verdict(trec[worst] <= OTHERWISE)


def _linear(facts: Facts) -> Line:
    target = "time linear in queries"
    if facts.exponent is None:
        return target, "not measured", "not judged"
    return target, f"exponent {facts.exponent:.2f}", _verdict(facts.exponent <= LINEAR)


def _bounded(facts: Facts) -> Line:
    target = "memory bounded as the run grows"
    if facts.held is None:
        return target, "not measured", "not judged"
    return target, f"{facts.held:.2f} bytes a byte of run", _verdict(facts.held <= HELD)


def _start_up(facts: Facts) -> Line:
    target = "findwell --help: at most 2 × python -c pass + 100 ms"
    if facts.start_up is None:
        return target, "not measured", "not judged"
    bare, ours = facts.start_up
    limit = 2 * bare + GRACE
    measured = f"{ours * 1000:.0f} ms, limit {limit * 1000:.0f} ms"
    return target, measured, _verdict(ours <= limit)


def _busy(facts: Facts) -> Line:
    target = f"judging whole samples: at least {BUSY:.0%} of the allowed concurrency used"
    if facts.busy is None:
        return target, "not measured", "not judged"
    return target, f"{facts.busy:.1%}", _verdict(facts.busy >= BUSY)


def _taken_in(facts: Facts) -> Iterator[Line]:
    rate, growth = facts.taken_in, facts.taken_in_memory
    target = f"taking traces in: at least {TAKEN_IN:,} spans a second"
    bounded = f"taking traces in: memory at most {KEPT_IN_MEMORY:g} × for ten times as many spans"
    if rate is None or growth is None:
        yield target, "not measured", "not judged"
        yield bounded, "not measured", "not judged"
        return
    yield target, f"{rate:,.0f} a second", _verdict(rate >= TAKEN_IN)
    yield bounded, f"{growth:.2f} ×", _verdict(growth <= KEPT_IN_MEMORY)


def _verdict(met: bool) -> str:
    return "met" if met else "NOT MET"
