"""What an evaluation is given: runs, one gold for all of them, and columns about the queries."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from findwell.core.data import FACTS, Gold, Run, RunStream
from findwell.core.errors import AlignError, InputError, naming_files
from findwell.core.findings import merge_findings
from findwell.core.progress import Stages
from findwell.core.timing import TIMED
from findwell.engines.prefetch import begin
from findwell.evaluation.results.store import Input
from findwell.io.read import is_several, load_gold, load_run, load_samples, trace_sources
from findwell.io.read.queries import join_queries, load_queries
from findwell.io.read.records import join_about
from findwell.io.read.source import Source
from findwell.retrievers.retriever import Retriever, holds_retrievers, is_retriever, name_of

if TYPE_CHECKING:
    from contextlib import ExitStack

    from findwell.core.data import NamedBy
    from findwell.core.progress import Report
    from findwell.relations.match import Matcher


class LoadedInputs(NamedTuple):
    """What an evaluation reads: runs, gold, where they came from, and what is compared."""

    streams: list[RunStream]
    gold: Gold
    inputs: list[Input]
    by: str | Matcher


def load_inputs(
    run: object,
    gold: Any,  # noqa: ANN401
    run_format: str | None,
    gold_format: str | None,
    reading: ExitStack,
    *,
    by: str | Matcher | None,
    skip_bad: bool,
    texts: bool,
    id_from: str | None = None,
    query_from: str | None = None,
    unlabelled: bool = False,
    queries: object = None,
    corpus: object = None,
    progress: Report | None = None,
) -> LoadedInputs:
    """Open the runs, begin to read the first, and read the gold meanwhile.

    Traces in which lists were reranked are two runs, unless they have a name, which is for one.

    A retriever is asked the questions of the gold, or of the table `queries`, instead.

    `reading` ends what was begun. With `unlabelled` the records need no gold; what they say about
    the queries is kept. Where `by` is None, what the inputs hold decides what is compared
    (`default_relation`); places are then read too.
    """
    how: dict[str, Any] = {"skip_bad": skip_bad, "texts": texts, "id_from": id_from}
    named = _with_reranked(_named(run), run_format, id_from)
    given, loaded = gold, None
    if any(is_retriever(data) for _, data in named):
        if gold is not None:
            gold = _kept(gold)
            loaded = load_gold(gold, format=gold_format, **how)
        stages = Stages(progress, sum(is_retriever(data) for _, data in named))
        named = [
            (name, _asked(name, data, loaded, queries, id_from, stages)) for name, data in named
        ]
    if gold is None:
        inputs = [Input.of("samples", data) for _, data in named]
    else:
        inputs = [*(Input.of("run", data) for _, data in named), Input.of("gold", given)]
    named = [(name, _kept(data)) for name, data in named]
    gold = _kept(gold)

    def read(gold: Any, how: dict[str, Any]) -> tuple[list[RunStream], Gold]:  # noqa: ANN401
        if gold is None:
            about = {"query_from": query_from} if unlabelled else {}
            return _load_both(named, run_format, how | about, inputs, unlabelled=unlabelled)
        formats = run_format, gold_format
        return _load_run_and_gold(named, gold, formats, how | {"query_from": query_from}, reading)

    streams, known = read(loaded or gold, how)
    if by is None:
        carried = {each.name: each.carries for each in streams if not _is_empty(each)}
        by = "ids" if unlabelled else default_relation(carried, known.carries, corpus)
        if by == "spans" and not texts:
            streams, known = read(gold, how | {"texts": True})
            if known.member_facts is None:  # a Gold that was read before
                raise InputError(
                    "the gold labels places, and was read without them",
                    where="gold",
                    fix="read it with load_gold(…, texts=True), or give what it was read from",
                )
    return LoadedInputs(streams, known, inputs, by)


def _load_run_and_gold(
    named: list[tuple[str, Any]],
    gold: Any,  # noqa: ANN401
    formats: tuple[str | None, str | None],
    how: dict[str, Any],
    reading: ExitStack,
) -> tuple[list[RunStream], Gold]:
    """Open the runs, begin to read the first, and read the gold meanwhile."""
    run_format, gold_format = formats

    def opened(name: str, data: Any, names: NamedBy = "id") -> RunStream:  # noqa: ANN401
        return load_run(data, name=name, format=run_format, names=names, **how)

    streams = [opened(name, data) for name, data in named]
    begun = reading.enter_context(begin(streams[0]))
    known = {name: choice for name, choice in how.items() if name != "query_from"}
    loaded = load_gold(gold, format=gold_format, **known)
    joined = [
        join_queries(stream, loaded, partial(opened, name, data))
        for stream, (name, data) in zip(streams, named, strict=True)
    ]
    if joined[0] is streams[0]:  # otherwise what is being read carries other ids
        joined[0] = begun
    return _unique_names(joined), loaded


def default_relation(
    runs: Mapping[str, frozenset[str]], gold: frozenset[str], corpus: object
) -> str:
    """Return what is compared where nothing was chosen: places where the gold has them, else ids.

    It is decided by what runs, by name, and gold carry next to their ids.

    A gold of places, compared by ids alone, would count every chunk of a document as a hit. So a
    run without places is refused, unless a corpus can tell them, or the gold names chunks as well.
    """
    if "places" not in gold:
        return "ids"
    without = [name for name, carries in runs.items() if "places" not in carries]
    if not without or corpus is not None:
        return "spans"
    if "chunks" in gold:
        return "ids"
    raise InputError(
        "the gold labels places in documents (start and end), and this run has no places",
        where=f"run {without[0]}",
        fix="compare places: give source, start and end with each chunk (LangChain: "
        "add_start_index=True), or the documents as a corpus (--corpus, corpus=); or compare "
        'whole documents by their ids (--by ids, by="ids")',
    )


def _is_empty(run: RunStream) -> bool:
    """Tell whether a run is known to hold no document."""
    return run.whole is not None and not run.whole["doc"].count()


def asks_retrievers(run: object) -> bool:
    """Tell whether some of what is evaluated is no run yet, but must be asked for one."""
    return any(is_retriever(data) for _, data in _named(run))


def _asked(  # noqa: PLR0917
    name: str,
    data: object,
    gold: Gold | None,
    queries: object,
    id_from: str | None,
    stages: Stages,
) -> object:
    """Return the run that a retriever makes; anything else stays what it is."""
    if not is_retriever(data):
        return data
    # few evaluations ask a retriever
    from findwell.retrievers.retrieve import (  # noqa: PLC0415
        ask_all,
        load_questions,
        questions_for,
    )

    settings = data if isinstance(data, Retriever) else Retriever(data)
    called = name or settings.name or name_of(settings.target)
    settings = replace(settings, name=called, id_from=settings.id_from or id_from)
    if gold is not None:
        asked = questions_for(gold, queries).select("query", "question")
        run = ask_all(settings, asked, stages.begin(f"asking {called}"))
        return replace(run, about=None if run.about is None else run.about.drop("question"))
    if queries is None:
        raise InputError(
            "a retriever is asked questions, and there are none",
            where=f"run {called}",
            fix="give a gold whose records have a question, or queries={id: question}",
        )
    return ask_all(settings, load_questions(queries), stages.begin(f"asking {called}"))


def _kept(data: object) -> object:
    """Return something that can be read again, as an iterator and a pipe cannot."""
    if isinstance(data, Iterator):
        return list(data)
    if isinstance(data, Source) or not isinstance(data, str | os.PathLike):
        return data
    return data if os.path.isdir(data) else Source.of(data)  # noqa: PTH112 - errors mean no


def _named(run: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    """Return each of several runs with its name, or the one that it is."""
    if isinstance(run, Mapping) and (is_several(run) or holds_retrievers(run)):
        return [(str(name), data) for name, data in run.items()]
    listed = isinstance(run, list | tuple) and run
    if listed and isinstance(run[0], str | os.PathLike | Run | RunStream):  # and not a record
        return [("", data) for data in run]
    return [("", run)]


def _with_reranked(
    named: list[tuple[str, Any]], run_format: str | None, id_from: str | None
) -> list[tuple[str, Any]]:
    """Put traces, which may hold a run before and one after a reranker, into the place of paths."""
    found: list[tuple[str, Any]] = []
    for name, data in named:
        is_path = isinstance(data, str | os.PathLike) and not name
        runs = trace_sources(data, run_format, id_from) if is_path else []
        found += [(name, each) for each in runs] or [(name, data)]
    return found


def _load_both(
    named: list[tuple[str, Any]],
    run_format: str | None,
    how: dict[str, Any],
    given: list[Input],
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
            golds.append(replace(unlabelled_gold(whole), named_by=stream.named_by))
        else:
            samples = load_samples(data, name=name, format=run_format, **how)
            streams.append(samples.run)
            golds.append(samples.gold)
    if len(golds) == 1:
        return streams, golds[0]
    streams = _unique_names(streams)
    names = (stream.name for stream in streams)
    with naming_files(files_of(streams, given)):
        return streams, share_gold(dict(zip(names, golds, strict=True)))


def files_of(streams: list[RunStream], inputs: Sequence[Input]) -> dict[str, str]:
    """Return the files by what errors call the inputs: gold, samples, corpus, run NAME."""
    files: dict[str, str] = {}
    paths = [each.path for each in inputs if each.role in ("run", "samples")]
    if len(paths) == 1 and paths[0] is not None and inputs[0].role == "samples":
        files |= dict.fromkeys(("samples", "gold"), paths[0])
    files |= {each.role: each.path for each in inputs if each.path and each.role != "run"}
    files.setdefault("samples", files.get("gold", "samples"))
    for stream, path in zip(streams, paths, strict=True):
        if path is not None:
            files[f"run {stream.name}"] = path
            files.setdefault(stream.name, path)
    return files


def unlabelled_gold(run: Run) -> Gold:
    """Return a gold without items: the queries of a run, and what it carries about them."""
    queries = run.rows.select("query").unique(maintain_order=True)
    if run.about is not None:
        about = run.about.unique("query", keep="last", maintain_order=True)
        queries = queries.join(about, on="query", how="left", maintain_order="left")
    none = pl.DataFrame(schema={"query": pl.String, "doc": pl.String, "grade": pl.Float64})
    return Gold.build(none, queries=queries)


def collect_runs(
    run: object, *, run_format: str | None, skip_bad: bool, id_from: str | None
) -> tuple[dict[str, Run], pl.DataFrame]:
    """Read runs whole, by name, and return the queries that they answer, with what is known."""
    how: dict[str, Any] = {"skip_bad": skip_bad, "id_from": id_from, "texts": True, "about": True}
    streams = [load_run(data, name=name, format=run_format, **how) for name, data in _named(run)]
    runs = [stream.collect() for stream in _unique_names(streams)]
    queries = join_about([unlabelled_gold(each).queries.drop(TIMED, strict=False) for each in runs])
    return {each.name: each for each in runs}, queries.unique("query", maintain_order=True)


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
            where=os.fspath(queries) if isinstance(queries, str | os.PathLike) else "queries",
            fix="use the query ids of the gold",
        )
    if "question" in gold.queries.columns:  # as the gold asks it
        table = table.drop("question", strict=False)
    joined = gold.queries.join(
        table.unique("query", keep="last"), on="query", how="left", maintain_order="left"
    )
    return replace(gold, queries=joined)


# what must be the same, and how the error calls it
SAME = {"gold": "gold", "question": "question", "reference": "reference answer"}


def share_gold(golds: Mapping[str, Gold]) -> Gold:
    """Return the gold of all runs, by name; an error if they contradict each other about a query.

    A query that only some of them have is held against all. How long a query took is left to the
    runs, since each has its own time.
    """
    first, *others = golds
    shared = golds[first]
    for name in others:
        _check_names(shared, golds[name], first, name)
        _check_same(shared, golds[name], first, name)
        shared = replace(_joined(shared, golds[name]), named_by=shared.named_by)
    findings = dict.fromkeys(chain.from_iterable(gold.findings for gold in golds.values()))
    queries = shared.queries.drop(TIMED, strict=False)
    built = Gold.build(
        shared.rows(), queries=queries, findings=merge_findings(findings), flaws=shared.flaws
    )
    carries = frozenset(chain.from_iterable(gold.carries for gold in golds.values()))
    return replace(built, named_by=golds[first].named_by, carries=carries)


def _check_names(shared: Gold, gold: Gold, first: str, name: str) -> None:
    if gold.named_by != shared.named_by:
        raise AlignError(
            f"its records are known by their {gold.named_by}, those of {first} by their "
            f"{shared.named_by}",
            where=f"run {name}",
            fix="give every record the id of its query, or one gold for all (--gold, gold=)",
        )


def _check_same(shared: Gold, gold: Gold, first: str, name: str) -> None:
    both = _contents(shared).join(_contents(gold), on="query", suffix="_other")
    for column, what in SAME.items():
        other = both.filter(pl.col(column) != pl.col(f"{column}_other"))["query"]
        if not len(other):
            continue
        count = "1 query has" if len(other) == 1 else f"{len(other)} queries have"
        raise AlignError(
            f"{count} another {what} than in {first}, for example {other[0]!r}",
            where=f"run {name}",
            fix="make the records agree, or give one gold for all (--gold, gold=)",
        )


def _contents(gold: Gold) -> pl.DataFrame:
    """Return one row per query with all that must be the same, as texts; null where unknown."""
    rows = gold.rows()
    if "weight" not in rows.columns:
        rows = rows.with_columns(weight=pl.lit(1.0))
    columns = ("doc", "weight", *(name for name in FACTS if name in rows.columns))
    member = pl.concat_str(pl.col(columns).cast(pl.String).fill_null(""), separator="\x1f")
    items = (
        rows.select("query", "grade", item=pl.Series(gold.member_item), member=member)
        .group_by("query", "item")
        .agg(pl.col("grade").first(), pl.col("member").sort().str.join("\x1e"))
        .with_columns(item=pl.concat_str("member", "grade", separator="\x1e"))
        .group_by("query")
        .agg(gold=pl.col("item").sort().str.join("\x1d"))
    )
    known = gold.queries.columns
    queries = gold.queries.select(
        "query",
        *(
            (pl.col(name) if name in known else pl.lit(None)).cast(pl.String).alias(name)
            for name in ("question", "reference")
        ),
    )
    return queries.join(items, on="query", how="left").with_columns(pl.col("gold").fill_null(""))


def _joined(one: Gold, other: Gold) -> Gold:
    """Add the queries that only the other has, and what only it knows about the common ones."""
    new = ~other.queries["query"].is_in(one.queries["query"].implode())
    more = ["query", *(name for name in other.queries.columns if name not in one.queries.columns)]
    known = one.queries.join(other.queries.select(more), "query", "left", maintain_order="left")
    rows = other.rows().filter(pl.col("query").is_in(other.queries["query"].filter(new).implode()))
    return Gold.build(
        pl.concat([one.rows(), rows] if new.any() else [one.rows()], how="diagonal"),
        queries=join_about([known, other.queries.filter(new)]),
        flaws={**other.flaws, **one.flaws},
    )
