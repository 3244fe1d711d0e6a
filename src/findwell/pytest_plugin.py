"""Retrieval quality in tests: a pytest plugin; `-p no:findwell` leaves it out.

    from findwell.pytest_plugin import assert_retrieval

    def test_retrieval(findwell_evaluate):
        result = findwell_evaluate("runs/bm25.trec", "gold.jsonl")
        assert_retrieval(result, "recall@5>=0.8", "judged@10>=0.9")

Nothing of findwell is imported before a test asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from findwell.evaluation.comparison.gates import GateReport
    from findwell.evaluation.results.result import Result

WORST_QUERIES = 5  # queries that a failure shows


@pytest.fixture
def findwell_evaluate(request: pytest.FixtureRequest) -> Callable[..., Result]:
    """Measure runs against gold labels: `findwell.evaluate`, with paths next to the test file.

    A relative path is looked for next to the file of the test first, then where pytest was called.
    """
    folder = request.path.parent

    def evaluate(run: Any, gold: Any = None, *args: Any, **options: Any) -> Result:  # noqa: ANN401
        from findwell.evaluation.evaluate import evaluate as measure  # noqa: PLC0415

        named = ("queries", "corpus")
        options |= {name: _near_test(folder, options[name]) for name in named if name in options}
        return measure(_near_test(folder, run), _near_test(folder, gold), *args, **options)

    return evaluate


def assert_retrieval(
    result: Result,
    *requirements: str,
    baseline: Result | str | os.PathLike[str] | None = None,
    decide: str = "interval",
    undecided: str = "fail",
    worst: int = WORST_QUERIES,
) -> None:
    """Fail unless every run of the result meets the requirements of `findwell.gate`.

    A requirement that is undecided, because the interval spans the threshold, fails as well;
    `undecided="pass"` lets it pass, `decide="value"` asks for the value alone. The failure shows
    each value with its interval and the `worst` queries.
    """
    __tracebackhide__ = True
    from findwell.core.errors import choose  # noqa: PLC0415
    from findwell.evaluation.comparison.gates import gate  # noqa: PLC0415

    choose("choice for undecided gates", undecided, ("fail", "pass"))
    if not requirements:
        raise ValueError('assert_retrieval needs a requirement, for example "recall@5>=0.8"')
    found = gate(result, requirements, baseline=baseline, decide=decide, undecided=undecided)
    if not found.passed:
        raise AssertionError(_message(result, found, worst))


def _message(result: Result, gate: GateReport, count: int) -> str:
    from findwell.show.gate import lines  # noqa: PLC0415

    bad = ("fail",) if gate.undecided == "pass" else ("fail", "undecided")
    message = ["retrieval does not meet its requirements", *lines(gate)]
    failed = (each for each in gate.verdicts if each.outcome in bad)
    for run, measure in dict.fromkeys((each.run, each.measure) for each in failed):
        message += _worst(result, run, measure, count)
    if gate.outcome == "undecided":
        message.append("undecided: add queries, or say undecided='pass' or decide='value'")
    return "\n".join(message)


def _worst(result: Result, run: str, name: str, count: int) -> list[str]:
    """Name the queries with the worst values of the measure that failed."""
    from findwell.evaluation.comparison.requirements import find_figure  # noqa: PLC0415
    from findwell.show.escape import printable  # noqa: PLC0415
    from findwell.show.tables import number  # noqa: PLC0415

    if find_figure(name) is not None:  # a count, or what retrieval cost
        return []
    scored = result.score([name])
    (measure,) = scored.measures
    rows = scored.per_query.filter(run=run).drop_nulls("value")
    order = rows.sort("value", descending=not measure.higher_is_better, maintain_order=True)
    questions: dict[str, Any] = {}
    if "question" in result.queries.columns:
        questions = dict(result.queries.select("query", "question").rows())
    shown = [f"  worst by {name} ({run}):"]
    for query, value in order.head(count).select("query", "value").rows():
        shown.append(f"    {query}  {number(value)}  {questions.get(query) or ''}".rstrip())
    return [printable(line) for line in shown] if order.height else []


def _near_test(folder: Path, data: Any) -> Any:  # noqa: ANN401
    """Return the path of a file next to the test, if there is such a file."""
    from findwell.io.read import Kind, kind_of  # noqa: PLC0415

    kind = kind_of(data)
    if kind is Kind.LISTED:
        return [_near_test(folder, each) for each in data]
    if kind is not Kind.PATH:
        return data
    near = folder / data
    return near if near.exists() else data
