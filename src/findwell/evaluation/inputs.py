"""What an evaluation is given: runs, one gold for all of them, and columns about the queries."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from findwell.core.data import FACTS, Gold, Run, RunStream
from findwell.core.errors import AlignError, InputError, naming_files
from findwell.core.findings import merge_findings
from findwell.core.frames import pl
from findwell.core.progress import Progress
from findwell.core.timing import TIME_COLUMNS
from findwell.engines.local import begin
from findwell.io.read import (
    Given,
    Kind,
    each_input,
    kind_of,
    load_gold,
    load_run,
    load_samples,
    open_input,
    open_inputs,
    path_of,
)
from findwell.io.read.format import Source
from findwell.relations.preflight import only_ids

if TYPE_CHECKING:
    from contextlib import ExitStack

    from findwell.core.data import NamedBy
    from findwell.core.findings import Finding
    from findwell.core.progress import Report
    from findwell.evaluation.plan import InputReading, Plan

NamedInputs = list[tuple[str, Any]]  # each input with its name; "" where it has none


IN_MEMORY = "data in memory"
SHOWN_LETTERS = 8  # of a hash


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set: what people call it, and the SHA-256 of the gold; empty if it is not a file."""

    name: str
    sha256: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.sha256[:SHOWN_LETTERS]}".strip()


def data_set_of(inputs: Iterable[Mapping[str, Any]]) -> DataSet:
    """Return the data set from what a manifest says about the inputs.

    A file that holds run and gold together has no hash of the gold alone.

    >>> gold = {"role": "gold", "kind": "file", "path": "data/qrels.txt", "sha256": "0123456789"}
    >>> print(data_set_of([gold]))
    qrels.txt 01234567
    >>> print(data_set_of([{"role": "gold", "kind": "dict", "path": None, "sha256": None}]))
    data in memory
    """
    golds = [each for each in inputs if each.get("role") in ("gold", "samples")]
    for each in golds:
        path, sha256 = each.get("path"), each.get("sha256")
        if isinstance(path, str) and PurePath(path).name:
            known = isinstance(sha256, str) and each.get("role") == "gold"
            return DataSet(PurePath(path).name, str(sha256) if known else "")
    return DataSet(IN_MEMORY)


@dataclass(frozen=True, slots=True)
class Input:
    """Where an input came from: a file, or an object of this type."""

    role: str
    kind: str
    path: str | None = None
    sha256: str | None = None  # as it was saved, empty if not known; None: not saved yet

    @classmethod
    def of(cls, role: str, data: object) -> Input:
        """Describe an input."""
        if isinstance(data, str | os.PathLike):
            return cls(role, "file", os.fspath(data))
        return cls(role, type(data).__name__)

    def as_dict(self) -> dict[str, str | None]:
        """Return what the manifest says about it, with the hash of a file that still exists."""
        sha256 = self.sha256
        if sha256 is None and self.path is not None and Path(self.path).is_file():
            sha256 = Source(Path(self.path)).sha256()
        return {"role": self.role, "kind": self.kind, "path": self.path, "sha256": sha256 or None}


class Stages:
    """Several pieces of work, one after another, reported as one that never goes back.

    All pieces count for the same; a piece of which less was done than it promised is done when the
    next begins.

    >>> seen = []
    >>> stages = Stages(seen.append, 2)
    >>> first, second = stages.begin("reading a"), stages.begin("reading b")
    >>> second(Progress(5, 10))
    >>> [(step.phase, step.done, step.total) for step in seen]
    [('reading a', 0, 2), ('reading b', 1, 2), ('reading b', 15, 20)]
    """

    def __init__(self, report: Report | None, count: int) -> None:
        self._report, self._count = report, max(count, 1)
        self._begun = 0
        self._size = 1  # steps of a piece: those of the largest so far

    def begin(self, phase: str) -> Report | None:
        """Begin the next piece; return what is told how far it has come."""
        report, before = self._report, min(self._begun, self._count - 1)
        self._begun += 1
        if report is None:
            return None

        def tell(step: Progress) -> None:
            self._size = max(self._size, step.total)
            done = self._size * step.done // max(step.total, 1)
            whole = replace(step, done=self._size * before + done, total=self._size * self._count)
            report(replace(whole, phase=": ".join(filter(None, (phase, step.phase)))))

        report(Progress(self._size * before, self._size * self._count, phase=phase))
        return tell


def asks_retrievers(run: object) -> bool:
    """Tell whether some of what is evaluated must be asked for its run."""
    return any(kind_of(data) is Kind.RETRIEVER for _, data in each_input(run))


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What was read for a plan, which now says what is compared."""

    plan: Plan
    runs: list[RunStream]
    gold: Gold
    corpus: pl.DataFrame | None
    sources: tuple[Input, ...]  # where they came from
    findings: tuple[Finding, ...]
    progress: Report | None  # of what comes next


def read_inputs(
    plan: Plan, run: object, gold: object, held: ExitStack, progress: Report | None = None
) -> Inputs:
    """Open the runs, begin to read the first, and read the gold meanwhile.

    A retriever is asked the questions of the gold, or of the table about the queries, instead.
    Where every relation is judged, the records need no gold; what they say about the queries is
    kept. Where the plan leaves open what is compared, the inputs decide (`default_relation`).

    `held` ends what was begun; while it lasts, errors name the files.
    """
    reading = plan.reading
    how = (reading.run_format, reading.id_from, reading.search_span, reading.fields)
    given = open_inputs(run, *how)
    labels = None if gold is None else open_input(gold).readable
    loaded = None
    if asking := sum(each.kind is Kind.RETRIEVER for each in given):
        stages = Stages(progress, 2)
        loaded = None if labels is None else load_gold(labels, **reading.gold)
        each_asked = Stages(stages.begin(""), asking)
        given = [
            _asked(each, loaded, reading, each_asked) if each.kind is Kind.RETRIEVER else each
            for each in given
        ]
        progress = stages.begin("measuring")
    named = [(each.name, each.readable) for each in given]
    sources = [Input.of("samples" if gold is None else "run", each.data) for each in given]
    sources += [] if gold is None else [Input.of("gold", gold)]

    def read(gold: Any, reading: InputReading) -> tuple[list[RunStream], Gold]:  # noqa: ANN401
        if gold is not None:
            return _run_and_gold(named, gold, reading, held)
        if plan.unlabelled:
            streams, golds = _runs_alone(named, reading)
        else:
            both = [load_samples(data, name=name, **reading.samples) for name, data in named]
            streams, golds = [each.run for each in both], [each.gold for each in both]
        if len(golds) == 1:
            return streams, golds[0]
        streams = _renamed(streams)
        with naming_files(files_of(streams, sources)):
            names = (stream.name for stream in streams)
            return streams, share_gold(dict(zip(names, golds, strict=True)))

    streams, known = read(loaded or labels, reading)
    settled = plan.over("ids")
    if plan.is_open:
        # what is known to hold no document says nothing
        full = (each for each in streams if each.whole is None or each.whole["doc"].count())
        carried = {each.name: each.carries for each in full}
        settled = plan.over(default_relation(carried, known.carries, reading.corpus))
        if settled.reads_texts and not reading.texts:
            streams, known = read(labels, reading.with_texts())
            if known.member_facts is None:  # a Gold that was read before
                raise InputError(
                    "the gold labels places in documents, but was read without them",
                    where="gold",
                    fix="read it with load_gold(…, texts=True), or give what it was read from",
                )
    corpus: Any = reading.corpus
    sources += [] if corpus is None else [Input.of("corpus", corpus)]
    files = files_of(streams, sources)
    plain = plan.is_open and settled.by == "ids" and "texts" in known.carries
    held.enter_context(naming_files(files))
    gold = known if reading.queries is None else with_columns(known, reading.queries)
    if corpus is not None:
        from findwell.io.read.corpus import load_corpus  # noqa: PLC0415 - most have none

        corpus = load_corpus(corpus, id_from=reading.id_from)
    return Inputs(
        plan=settled,
        runs=streams,
        gold=gold,
        corpus=corpus,
        sources=tuple(sources),
        findings=tuple(only_ids(streams, known) if plain else ()),
        progress=progress,
    )


def _run_and_gold(
    named: NamedInputs,
    gold: Any,  # noqa: ANN401
    reading: InputReading,
    held: ExitStack,
) -> tuple[list[RunStream], Gold]:
    """Open the runs, begin to read the first, and read the gold meanwhile."""

    def opened(name: str, data: Any, names: NamedBy = "id") -> RunStream:  # noqa: ANN401
        return load_run(data, name=name, names=names, **reading.run)

    how, streams = reading.gold, [opened(name, data) for name, data in named]
    begun = held.enter_context(begin(streams[0]))
    loaded = load_gold(gold, **how)
    joined = list(streams)
    if any(each.named_by != loaded.named_by for each in streams):
        from findwell.io.read.queries import join_queries  # noqa: PLC0415 - most have the same ids

        joined = [
            join_queries(stream, loaded, partial(opened, *each))
            for stream, each in zip(streams, named, strict=True)
        ]
    if joined[0] is streams[0]:  # otherwise what is being read carries other ids
        joined[0] = begun
    return _renamed(joined), loaded


def _runs_alone(named: NamedInputs, reading: InputReading) -> tuple[list[RunStream], list[Gold]]:
    """Read records that need no gold: what they say about the queries is all of it."""
    streams = [load_run(data, name=name, about=True, **reading.run) for name, data in named]
    runs = [stream.collect() for stream in streams]
    golds = [
        replace(unlabelled_gold(run), named_by=stream.named_by)
        for run, stream in zip(runs, streams, strict=True)
    ]
    return [run.stream() for run in runs], golds


def default_relation(
    runs: Mapping[str, frozenset[str]], gold: frozenset[str], corpus: object
) -> str:
    """Return what is compared where nothing was chosen: places where the gold has them, else ids.

    It is decided by what runs, by name, and gold carry next to their ids.

    Labels of places, compared by ids alone, would count every chunk of a document as a hit. So a
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


def _asked(given: Given, gold: Gold | None, reading: InputReading, stages: Stages) -> Given:
    """Return the run that a retriever makes."""
    # few evaluations ask a retriever
    from findwell.retrievers.retrieve import ask_all, asked_again, load_questions, questions_for  # noqa: PLC0415
    from findwell.retrievers.retriever import Retriever, name_of  # noqa: PLC0415

    settings = given.data if isinstance(given.data, Retriever) else Retriever(given.data)
    called = given.name or settings.name or name_of(settings.target)
    settings = replace(settings, name=called, id_from=settings.id_from or reading.id_from)
    if gold is not None:
        questions = questions_for(gold, reading.queries).select("query", "question")
    elif reading.queries is None:
        raise InputError(
            "a retriever is asked questions, and there are none",
            where=f"run {called}",
            fix="give gold labels whose records have a question, or queries={id: question}",
        )
    else:
        questions = load_questions(reading.queries)
    run = ask_all(settings, questions, stages.begin(f"asking {called}"))
    if gold is not None and run.about is not None:
        run = replace(run, about=run.about.drop("question"))
    run = replace(run, findings=(*run.findings, *asked_again(settings, questions)))
    return Given(given.name, Kind.RUN, run, run)


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
    """Return gold labels without items: the queries of a run, and what it carries about them."""
    queries = run.rows.select("query").unique(maintain_order=True)
    if run.about is not None:
        about = run.about.unique("query", keep="last", maintain_order=True)
        queries = queries.join(about, on="query", how="left", maintain_order="left")
    none = pl.DataFrame(schema={"query": pl.String, "doc": pl.String, "grade": pl.Float64})
    return Gold.build(none, queries=queries)


def collect_runs(run: object, reading: InputReading) -> tuple[dict[str, Run], pl.DataFrame]:
    """Read runs whole, by name, and return the queries that they answer, with what is known."""
    how = {**reading.with_texts().samples, "about": True}
    streams = [load_run(data, name=name, **how) for name, data in each_input(run)]
    runs = [stream.collect() for stream in _renamed(streams)]
    from findwell.io.read.values import join_about  # noqa: PLC0415

    queries = join_about(
        [unlabelled_gold(each).queries.drop(TIME_COLUMNS, strict=False) for each in runs]
    )
    return {each.name: each for each in runs}, queries.unique("query", maintain_order=True)


def _renamed(streams: list[RunStream]) -> list[RunStream]:
    """Number runs of the same name: run, run-2, run-3."""
    names = unique_names([[stream.name] for stream in streams])
    return [replace(stream, name=name) for stream, name in zip(streams, names, strict=True)]


def unique_names(spellings: Sequence[Sequence[str]]) -> list[str]:
    """Choose for each the shortest spelling that no other has; the last resort is a number.

    >>> unique_names([["run", "old/run"], ["run", "new/run"], ["bm25", "new/bm25"]])
    ['old/run', 'new/run', 'bm25']
    >>> unique_names([["run"], ["run"]])
    ['run', 'run-2']
    """
    level = [0] * len(spellings)
    while True:
        names = [each[at] for each, at in zip(spellings, level, strict=True)]
        times = Counter(names)
        longer = [
            number
            for number, each in enumerate(spellings)
            if times[names[number]] > 1 and level[number] + 1 < len(each)
        ]
        if not longer:
            break
        for number in longer:
            level[number] += 1
    taken: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}-{again}" for again in count(2))
        taken[next(new for new in chain([name], numbered) if new not in taken)] = None
    return list(taken)


def no_known_query(example: str, where: str) -> InputError:
    """Return the error for a table about queries of which the gold has none."""
    return InputError(
        f"no query of this table is in the gold: it has {example!r}",
        where=where,
        fix="use the query ids of the gold",
    )


def with_columns(gold: Gold, queries: object) -> Gold:
    """Add the columns of a table about the queries, to slice by."""
    if queries is None:
        return gold
    from findwell.io.read.queries import load_queries  # noqa: PLC0415

    table = load_queries(queries)
    index = gold.find(table["query"])
    if not (index >= 0).any():
        raise no_known_query(table["query"][0], path_of(queries, "queries"))
    if "question" in gold.queries.columns:  # as the gold asks it
        table = table.drop("question", strict=False)
    joined = gold.queries.join(
        table.unique("query", keep="last"), on="query", how="left", maintain_order="left"
    )
    return replace(gold, queries=joined)


# what must be the same, and how the error calls it
SHARED_FIELDS = {"gold": "gold", "question": "question", "reference": "reference answer"}


def share_gold(golds: Mapping[str, Gold]) -> Gold:
    """Return the gold of all runs, by name; an error if they contradict each other about a query.

    A query that only some of them have counts for all. How long a query took is left to the
    runs, since each has its own time.
    """
    first, *others = golds
    shared = golds[first]
    for name in others:
        if golds[name].named_by != shared.named_by:
            raise AlignError(
                f"its records are known by their {golds[name].named_by}, those of {first} by their "
                f"{shared.named_by}",
                where=f"run {name}",
                fix="give every record the id of its query, or one gold for all (--gold, gold=)",
            )
        _check_same(shared, golds[name], first, name)
        shared = replace(_joined(shared, golds[name]), named_by=shared.named_by)
    findings = dict.fromkeys(chain.from_iterable(gold.findings for gold in golds.values()))
    queries = shared.queries.drop(TIME_COLUMNS, strict=False)
    built = Gold.build(
        shared.rows(), queries=queries, findings=merge_findings(findings), flaws=shared.flaws
    )
    carries = frozenset(chain.from_iterable(gold.carries for gold in golds.values()))
    return replace(built, named_by=golds[first].named_by, carries=carries)


def _check_same(shared: Gold, gold: Gold, first: str, name: str) -> None:
    both = _contents(shared).join(_contents(gold), on="query", suffix="_other")
    for column, what in SHARED_FIELDS.items():
        other = both.filter(pl.col(column) != pl.col(f"{column}_other"))["query"]
        if not len(other):
            continue
        count = "1 query has" if len(other) == 1 else f"{len(other)} queries have"
        raise AlignError(
            f"{count} a different {what} than in {first}, for example {other[0]!r}",
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
    from findwell.io.read.values import join_about  # noqa: PLC0415

    new = ~other.queries["query"].is_in(one.queries["query"].implode())
    more = ["query", *(name for name in other.queries.columns if name not in one.queries.columns)]
    known = one.queries.join(other.queries.select(more), "query", "left", maintain_order="left")
    rows = other.rows().filter(pl.col("query").is_in(other.queries["query"].filter(new).implode()))
    return Gold.build(
        pl.concat([one.rows(), rows] if new.any() else [one.rows()], how="diagonal"),
        queries=join_about([known, other.queries.filter(new)]),
        flaws={**other.flaws, **one.flaws},
    )
