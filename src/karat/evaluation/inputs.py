"""What an evaluation is given: runs and a gold, in any form, and columns about the queries."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.core.data import Gold, Run, RunStream
from karat.engines.prefetch import Prefetch
from karat.errors import InputError
from karat.evaluation.shared_gold import share_gold
from karat.read import is_several, load_gold, load_run, load_samples
from karat.read.queries import join_queries, load_queries
from karat.read.source import Source
from karat.results.store import Input

if TYPE_CHECKING:
    from karat.core.data import NamedBy


def load_inputs(
    run: object,
    gold: Any,  # noqa: ANN401
    run_format: str | None,
    gold_format: str | None,
    *,
    skip_bad: bool,
    texts: bool,
    unlabelled: bool = False,
) -> tuple[list[RunStream], Gold, list[Input], Prefetch | None]:
    """Open the runs, begin to read the first, and read the gold meanwhile.

    With `unlabelled` the records need no gold; what they say about the queries is kept.
    """
    how: dict[str, Any] = {"skip_bad": skip_bad, "texts": texts}
    named = _named(run)
    if gold is None:
        streams, loaded = _load_both(named, run_format, how, unlabelled=unlabelled)
        return streams, loaded, [Input.of("samples", data) for _, data in named], None
    inputs = [Input.of("run", data) for _, data in named]
    named = [(name, _kept(data)) for name, data in named]

    def opened(name: str, data: Any, names: NamedBy = "id") -> RunStream:  # noqa: ANN401
        return load_run(data, name=name, format=run_format, names=names, **how)

    streams = [opened(name, data) for name, data in named]
    reading = Prefetch(streams[0].batches())
    try:
        loaded = load_gold(gold, format=gold_format, **how)
    except BaseException:
        reading.close()
        raise
    joined = [
        join_queries(stream, loaded, partial(opened, name, data))
        for stream, (name, data) in zip(streams, named, strict=True)
    ]
    inputs.append(Input.of("gold", gold))
    if joined[0] is not streams[0]:  # what is being read carries other ids
        reading.close()
        return _unique_names(joined), loaded, inputs, None
    return _unique_names(joined), loaded, inputs, reading


def _kept(data: object) -> object:
    """Return something that can be read again, as an iterator and a pipe cannot."""
    if isinstance(data, Iterator):
        return list(data)
    return Source.of(data) if isinstance(data, str | os.PathLike) else data


def _named(run: object) -> list[tuple[str, Any]]:
    """Return each of several runs with its name, or the one that it is."""
    if is_several(run) and isinstance(run, Mapping):
        return [(str(name), data) for name, data in run.items()]
    if isinstance(run, list | tuple) and run and _is_run(run[0]):
        return [("", data) for data in run]
    return [("", run)]


def _load_both(
    named: list[tuple[str, Any]],
    run_format: str | None,
    how: dict[str, Any],
    *,
    unlabelled: bool,
) -> tuple[list[RunStream], Gold]:
    """Read records that hold both run and gold, or need no gold; several have one gold."""
    streams: list[RunStream] = []
    golds: list[Gold] = []
    for name, data in named:
        if unlabelled:
            stream = load_run(data, name=name, format=run_format, about=True, **how)
            whole = stream.collect()
            streams.append(whole.stream())
            golds.append(replace(_unlabelled(whole), named_by=stream.named_by))
        else:
            samples = load_samples(data, name=name, format=run_format, **how)
            streams.append(samples.run)
            golds.append(samples.gold)
    if len(golds) == 1:
        return streams, golds[0]
    streams = _unique_names(streams)
    names = (stream.name for stream in streams)
    return streams, share_gold(dict(zip(names, golds, strict=True)))


def _unlabelled(run: Run) -> Gold:
    """Return a gold without items: the queries of a run, and what it says about them."""
    queries = run.rows.select("query").unique(maintain_order=True)
    if run.about is not None:
        about = run.about.unique("query", keep="last", maintain_order=True)
        queries = queries.join(about, on="query", how="left", maintain_order="left")
    none = pl.DataFrame(schema={"query": pl.String, "doc": pl.String, "grade": pl.Float64})
    return Gold.build(none, queries=queries)


def _is_run(data: object) -> bool:
    """Tell an element of a list of runs from a record."""
    return isinstance(data, str | os.PathLike | Run | RunStream)


def _unique_names(streams: list[RunStream]) -> list[RunStream]:
    """Number runs of the same name: run, run-2, run-3."""
    seen: dict[str, int] = {}
    named = []
    for stream in streams:
        seen[stream.name] = seen.get(stream.name, 0) + 1
        again = seen[stream.name]
        named.append(stream if again == 1 else replace(stream, name=f"{stream.name}-{again}"))
    return named


def with_columns(gold: Gold, queries: object) -> Gold:
    """Add the columns of a table about the queries, to slice by."""
    if queries is None:
        return gold
    table = load_queries(queries)
    index = gold.find(table["query"])
    if not (index >= 0).any():
        raise InputError(
            f"no query of this table is in the gold: it has {table['query'][0]!r}",
            where="queries",
            fix="use the query ids of the gold",
        )
    joined = gold.queries.join(
        table.unique("query", keep="last"), on="query", how="left", maintain_order="left"
    )
    return replace(gold, queries=joined)
