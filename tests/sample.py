"""One small evaluation in every shape it can be written in, and the numbers it must give."""

from __future__ import annotations

import copy
import functools
import gzip
import importlib
import io
import json
from typing import TYPE_CHECKING, Any

import findwell
from findwell.evaluation.plan import grouped
from findwell.io.read.format import ZSTD_MODULE
from tests.strategies import by_measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.strategies import Graded, Scored, Values

zstd: Any = importlib.import_module(ZSTD_MODULE)
# ties, ids of several scripts, ids that are equal as numbers, a query without a hit
RUN: Scored = {
    "q1": {"d1": 3.5, "d2": 2.25, "d3": 2.25, "é": 1.0, "007": 0.5},
    "q2": {"d2": 4.0, "7": 1.0, "文档": 0.25},
    "q10": {"d5": 1.0},
}
GOLD: Graded = {
    "q1": {"d1": 0, "d3": 2, "é": 1, "007": 3},
    "q2": {"文档": 1, "d2": 0, "7": 2},
    "q10": {"d6": 1},
}
MEASURES = ["P@2", "recall@3", "nDCG@4", "AP", "RR", "judged@5", "bpref"]


def score(run: Any, gold: Any = GOLD, **options: Any) -> Values:
    """Return the values of the measures by query; those of the sample itself are measured once."""
    if run is RUN and gold is GOLD and not options:
        return copy.deepcopy(_expected())
    return by_measure(findwell.evaluate(run, gold, MEASURES, **grouped(options)))


@functools.cache
def _expected() -> Values:
    return by_measure(findwell.evaluate(RUN, GOLD, MEASURES))


def kinds(result: findwell.Result) -> dict[str, int]:
    """Return the findings as {kind: count}."""
    return {finding.kind: finding.count for finding in result.findings}


def ranked(run: Scored = RUN) -> dict[str, list[str]]:
    """Return the documents of each query in rank order."""
    return {
        query: [doc for doc, _ in sorted(docs.items(), key=_score_then_bytes, reverse=True)]
        for query, docs in run.items()
    }


def _score_then_bytes(entry: tuple[str, float]) -> tuple[float, bytes]:
    return entry[1], entry[0].encode()


def trec_run(run: Scored = RUN, separator: str = " ") -> str:
    """Write a run as TREC does."""
    lists = ranked(run)
    return _lines(
        separator.join((query, "Q0", doc, str(rank), repr(run[query][doc]), "tag"))
        for query, docs in lists.items()
        for rank, doc in enumerate(docs, start=1)
    )


def qrels(gold: Graded = GOLD, separator: str = " ") -> str:
    """Write judgements as TREC does."""
    return _lines(
        separator.join((query, "0", doc, str(grade)))
        for query, docs in gold.items()
        for doc, grade in docs.items()
    )


def run_table(run: Scored = RUN) -> dict[str, list[Any]]:
    """Return the run as columns."""
    rows = [(query, doc, score) for query, docs in run.items() for doc, score in docs.items()]
    return dict(zip(("query", "doc", "score"), map(list, zip(*rows, strict=True)), strict=True))


def gold_table(gold: Graded = GOLD) -> dict[str, list[Any]]:
    """Return the judgements as columns."""
    rows = [(query, doc, grade) for query, docs in gold.items() for doc, grade in docs.items()]
    return dict(zip(("query", "doc", "grade"), map(list, zip(*rows, strict=True)), strict=True))


def delimited(columns: Mapping[str, list[Any]], separator: str = ",") -> str:
    """Write columns as a text table."""
    rows = zip(*columns.values(), strict=True)
    return _lines(separator.join(map(str, row)) for row in [tuple(columns), *rows])


def jsonl(records: Iterable[Mapping[str, Any]]) -> str:
    """Write records, one a line."""
    return _lines(json.dumps(record, ensure_ascii=False) for record in records)


def gzipped(text: str, members: int = 1) -> bytes:
    """Compress, in several members as concatenated .gz files are."""
    data = text.encode()
    size = -(-len(data) // members)
    out = io.BytesIO()
    for start in range(0, len(data), size):
        out.write(gzip.compress(data[start : start + size]))
    return out.getvalue()


def _lines(lines: Iterable[str]) -> str:
    return "".join(line + "\n" for line in lines)
