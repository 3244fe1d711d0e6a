"""`findwell labels pool`: what systems retrieved, once, with texts, ready to be labelled."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell import __version__
from findwell.core.data import Gold
from findwell.core.errors import InputError, OptionError, SaveError, choose, takes_options
from findwell.core.findings import Finding, finding_about, finding_about_rows, merge_findings
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.evaluation.results.result import Result, load_only
from findwell.io.read import load_gold, load_run, path_of, readable_again, several_inputs
from findwell.io.read.corpus import load_corpus
from findwell.io.read.labels_database import APPLICATION, FILE, LAYOUT, PAIR, TABLES, table, typed
from findwell.io.read.queries import join_queries
from findwell.io.storage.database import create_durable
from findwell.io.storage.files import make_folder, not_written, removed_at_the_end
from findwell.judges.find import find_judge
from findwell.judges.verdicts import Sample
from findwell.loop.labels.label_pool import (
    METHODS,
    PAIR_COLUMNS,
    SAMPLE,
    LabelPool,
    draw,
    sampling_keys,
    strata_of,
)
from findwell.loop.labels.labels import LABELS_DATABASE
from findwell.loop.tuning.pool import Pool
from findwell.retrievers.retrieve import load_questions

if TYPE_CHECKING:
    from findwell.core.data import NamedBy, Run, RunStream
    from findwell.core.progress import Report
    from findwell.io.read import GoldLike, RunLike
    from findwell.judges.verdicts import JudgeProtocol

PURPOSES = ("ordering", "values")
PASSAGE = ("text", "source", "start", "end")


@takes_options()
def pool(
    runs: Sequence[RunLike] | Mapping[str, RunLike],
    folder: str | os.PathLike[str],
    *,
    queries: object = None,
    corpus: object = None,
    depth: int = 10,
    purpose: str = "ordering",
    method: str | None = None,
    budget: int | None = None,
    overlap: float = 0.0,
    judge: object = None,
    judged: GoldLike | Result | None = None,
    pilot: GoldLike | None = None,
    highest: int = 3,
    guidelines: str = "",
    seed: int = 0,
    run_format: str | None = None,
    skip_bad: bool = False,
    id_from: str | None = None,
    fields: Mapping[str, Any] | None = None,
    progress: Report | None = None,
) -> LabelPool:
    """Gather what several runs retrieved into a folder from which it is labelled.

    The first `depth` documents of each run are the pool. `purpose` says what labels are for:

    - `ordering`: which system is better. Documents come in the order of `method`: `mm-ns` (by
      default), `mtf` or `depth`; the averages of such labels are biased.
    - `values`: how good a system is. A probability sample of pairs, stratified by the grades of a
      `judge` or by those that are given (`judged`, gold labels or a result with verdicts); every
      label keeps its inclusion probability and its stratum.

    `budget` is how many pairs are labelled, all by default. Of these the share `overlap` is
    labelled by every annotator. `queries` are the questions, `corpus` the texts, where the runs do
    not have them; `highest` is the highest grade, 1 for yes and no. `LabelPool.precision` says what
    precision the budget buys, from a `pilot` of labels if there is one.

    >>> import tempfile
    >>> found = pool([{"q": ["a", "b"]}, {"q": ["b", "c"]}], tempfile.mkdtemp() + "/pool", depth=1)
    >>> found.pairs["doc"].to_list()
    ['a', 'b']
    """
    refuse_after_fork()
    target = Path(folder)
    _check(purpose, method, overlap, depth=depth, highest=highest, budget=budget)
    _refuse_existing(target)
    design = SAMPLE if purpose == "values" else method or METHODS[0]
    asked = None if queries is None else load_questions(queries)
    reading = {"format": run_format, "skip_bad": skip_bad, "id_from": id_from, "fields": fields}
    loaded = _load(runs, asked, **reading)
    pairs, ranks, findings = _pooled(loaded, depth)
    pairs, unasked = _with_questions(pairs, loaded, asked)
    pairs = _with_texts(pairs, loaded, None if corpus is None else load_corpus(corpus))
    asker = None if judge is None else find_judge(judge)
    pairs, ungraded = _with_grades(pairs, asker, judged, progress)
    silent = finding_about_rows(
        "no-text",
        pairs.filter(pl.col("text").str.strip_chars() == ""),
        "# document|documents has|have no text; annotators see the id alone.",
        "give the texts: --corpus PATH (corpus=)",
    )
    settings = {
        "findwell": __version__, "created": time.time(), "purpose": purpose, "design": design,
        "depth": depth, "budget": budget, "overlap": overlap, "highest": highest, "seed": seed,
        "judge": "" if asker is None else asker.name,
    }  # fmt: skip
    made = LabelPool(
        _designed(pairs, design, budget, seed),
        ranks,
        tuple(run.name for run in loaded),
        settings,
        merge_findings((*findings, *unasked, *ungraded, *silent)),
    )
    made = replace(made, expected=made.precision(pilot=pilot))
    _save(made, target, guidelines)
    return made


def _check(purpose: str, method: str | None, overlap: float, **counts: int | None) -> None:
    choose("purpose of labels", purpose, PURPOSES)
    if method is not None:
        choose("method", method, METHODS)
        if purpose == "values":
            raise OptionError(
                f"the method {method} orders documents, which biases absolute values",
                fix="leave the method out for values: they need a probability sample",
            )
    for name, value in counts.items():
        if (value is not None or name != "budget") and (type(value) is not int or value < 1):
            fix = "such as 200" if name == "budget" else ""
            raise OptionError(f"{name}={value!r} is not a whole number from 1", fix=fix)
    if not 0 <= overlap <= 1:
        raise OptionError(f"overlap={overlap!r} is not a share", fix="a number from 0 to 1, or 20%")


def _refuse_existing(target: Path) -> None:
    if (target / FILE).exists():
        raise SaveError(
            "there is a pool with labels already, which is never replaced",
            where=str(target),
            fix="name another folder; `findwell labels import` brings labels of this one into it",
        )
    if target.exists() and not target.is_dir():
        raise SaveError("this is not a folder", where=str(target), fix="name a new folder")


def _load(
    runs: object,
    asked: pl.DataFrame | None,
    **reading: Any,  # noqa: ANN401
) -> list[Run]:
    """Read the runs with their texts, and name their queries as the questions do."""
    named = several_inputs(runs)
    if not named:
        raise OptionError("there are no runs to pool", fix="pass them as a list: [first, second]")
    gold = None if asked is None else Gold.build(table([], *PAIR, "grade"), queries=asked)

    def opened(name: str, data: Any, names: NamedBy = "id") -> RunStream:  # noqa: ANN401
        return load_run(data, name=name, texts=True, about=True, names=names, **reading)

    loaded: list[Run] = []
    seen: dict[str, int] = {}
    for name, data in named:
        kept = readable_again(data)
        stream = opened(name, kept)
        if gold is not None:
            stream = join_queries(stream, gold, partial(opened, name, kept))
        run = stream.collect()
        seen[run.name] = again = seen.get(run.name, 0) + 1
        loaded.append(run if again == 1 else replace(run, name=f"{run.name}-{again}"))
    return loaded


def _pooled(
    loaded: Sequence[Run], depth: int
) -> tuple[pl.DataFrame, pl.DataFrame, Sequence[Finding]]:
    """Return the pairs, best rank first within a query, and their ranks in each run."""
    found = Pool.of(loaded)
    rank = np.where(found.rank <= depth, found.rank, 0)
    keep = np.flatnonzero((rank > 0).any(axis=0))
    if not len(keep):
        raise InputError("the runs retrieved nothing", fix="check the runs: findwell check")
    best = np.where(rank > 0, rank, depth + 1).min(axis=0)
    keep = keep[np.lexsort((best[keep], found.query[keep]))]
    query = found.queries.gather(found.query[keep])
    pairs = pl.DataFrame({"query": query, "doc": found.doc.gather(keep)})
    at, run = np.nonzero(rank[:, keep].T)
    score = pl.Series(found.score[run, keep[at]]).fill_nan(None)
    ranks = pl.DataFrame({"pair": at, "run": run, "rank": rank[run, keep[at]], "score": score})
    return pairs, ranks, found.findings


def _with_questions(
    pairs: pl.DataFrame, loaded: Sequence[Run], asked: pl.DataFrame | None
) -> tuple[pl.DataFrame, list[Finding]]:
    """Add the questions: those given, or those of the runs, or else the ids."""
    tables = [] if asked is None else [asked.select("query", "question")]
    tables += [
        run.about.select("query", pl.col("question").cast(pl.String))
        for run in loaded
        if run.about is not None and "question" in run.about.columns
    ]
    known = pl.concat([table([], "query", "question"), *tables]).drop_nulls()
    known = known.unique("query", keep="first", maintain_order=True)
    joined = pairs.join(known, on="query", how="left", maintain_order="left")
    retrieved = set(pairs["query"])
    findings = finding_about(
        "empty-query",
        [] if asked is None else [name for name in asked["query"] if name not in retrieved],
        "# query|queries has|have nothing to label: no run retrieved anything.",
        "check the runs",
    )
    findings += finding_about(
        "no-question",
        joined.filter(pl.col("question").is_null())["query"].unique(maintain_order=True),
        "# query|queries has|have no question; annotators see the id.",
        "add it to the file of questions"
        if tables
        else "give the questions: --queries FILE (queries=)",
    )
    return joined.with_columns(pl.coalesce("question", "query")), findings


def _with_texts(
    pairs: pl.DataFrame, loaded: Sequence[Run], corpus: pl.DataFrame | None
) -> pl.DataFrame:
    """Add text, source, start and end: of the first run that has them, or else of the corpus."""
    tables = [
        run.rows.select(*PAIR, *typed(run.rows, PASSAGE)).drop_nulls(["doc", "text"])
        for run in loaded
        if "text" in run.rows.columns
    ]
    known = pl.concat([table([], *PAIR, *PASSAGE), *tables])
    known = known.unique(PAIR, keep="first", maintain_order=True)
    pairs = pairs.join(known, on=PAIR, how="left", maintain_order="left")
    if corpus is not None:
        rest = corpus.select("doc", *typed(corpus, PASSAGE))
        pairs = pairs.join(rest, on="doc", how="left", maintain_order="left", suffix="_of_corpus")
        others = [f"{name}_of_corpus" for name in PASSAGE]
        pairs = pairs.with_columns(map(pl.coalesce, PASSAGE, others)).drop(others)
    return pairs.with_columns(pl.col("text").fill_null(""))


def _with_grades(
    pairs: pl.DataFrame,
    judge: JudgeProtocol | None,
    judged: GoldLike | Result | None,
    progress: Report | None,
) -> tuple[pl.DataFrame, list[Finding]]:
    """Add what a judge says: its grade and its quote."""
    if judge is not None and judged is not None:
        raise OptionError("a judge and its grades are both given", fix="give one of them")
    pairs = pairs.with_columns(judge=pl.lit(None, pl.Float64), quote=pl.lit(None, pl.String))
    if judged is not None:
        pairs = _graded_before(pairs, judged)
    elif judge is not None:
        pairs = _asked_judge(pairs, judge, progress)
    else:
        return pairs, []
    return pairs, finding_about_rows(
        "not-judged",
        pairs.filter(pl.col("judge").is_null()),
        "# pair|pairs has|have no grade of the judge and forms|form a stratum of its|their own.",
        "let the judge grade the whole pool",
    )


def _graded_before(pairs: pl.DataFrame, judged: GoldLike | Result) -> pl.DataFrame:
    """Add the grades of gold labels, or the verdicts about relevance that a result has kept."""
    saved = judged if isinstance(judged, Result) else None
    if path := path_of(judged):
        saved = load_only([path])
    if saved is None:
        rows = load_gold(judged).rows()  # type: ignore[arg-type]
        grades, on = rows.group_by(PAIR).agg(judge=pl.col("grade").max()), PAIR
    else:
        verdicts = saved.kept.verdicts
        if verdicts is None or not (verdicts["aspect"] == "relevance").any():
            raise InputError(
                "the result has kept no verdicts about relevance",
                where=path_of(judged, "judged"),
                fix="keep them: findwell score RUN -m P@10/relevance --judge … --save FOLDER",
            )
        about = verdicts.filter(pl.col("aspect") == "relevance").drop_nulls("value")
        grades = about.group_by("query", text="chunk").agg(
            judge=pl.col("value").max().cast(pl.Float64), quote=pl.col("quote").first()
        )
        on = ["query", "text"]
    bare = pairs.drop([name for name in ("judge", "quote") if name in grades.columns])
    joined = bare.join(grades, on=on, how="left", maintain_order="left")
    return joined.select(pairs.columns)


def _asked_judge(
    pairs: pl.DataFrame, judge: JudgeProtocol, progress: Report | None
) -> pl.DataFrame:
    """Ask a judge how relevant each passage is to its question."""
    samples, rows = [], []
    filled = pairs.with_row_index("row").filter(pl.col("text").str.strip_chars() != "")
    for (query, question), part in filled.group_by("query", "question", maintain_order=True):
        texts = part["text"].unique(maintain_order=True)
        samples.append(Sample(str(query), str(question), tuple(texts)))
        rows.append(part)
    found = judge.judge(samples, frozenset({"relevance"}), progress)
    grade, quote = pairs["judge"].to_list(), pairs["quote"].to_list()
    for sample, part, verdicts in zip(samples, rows, found, strict=True):
        said = dict(zip(sample.chunks, verdicts["relevance"].row, strict=False))
        for row, text in part.select("row", "text").iter_rows():
            verdict = said.get(text)
            if verdict is not None and verdict.value is not None:
                grade[row], quote[row] = float(verdict.value), verdict.quote or None
    return pairs.with_columns(
        judge=pl.Series(grade, dtype=pl.Float64), quote=pl.Series(quote, dtype=pl.String)
    )


def _designed(pairs: pl.DataFrame, design: str, budget: int | None, seed: int) -> pl.DataFrame:
    """Add design, stratum, probability and place."""
    pairs = pairs.with_columns(design=pl.lit(design))
    if design == SAMPLE:
        strata = strata_of(pairs["judge"])
        drawn = draw(strata, sampling_keys(pairs, seed), budget)
        place = pl.Series(drawn.place, dtype=pl.Int64)
        pairs = pairs.with_columns(
            stratum=pl.Series(strata, dtype=pl.String),
            probability=pl.Series(drawn.probability),
            place=place.set(place < 0, None),
        )
    names = ("stratum", "probability", "place")
    return pairs.with_columns(typed(pairs, names))


def _save(made: LabelPool, target: Path, guidelines: str) -> None:
    """Write the database whole or not at all."""
    names = made.pairs.select("query", "question").unique(
        "query", keep="first", maintain_order=True
    )
    number = {query: at for at, query in enumerate(names["query"])}
    columns = [name for name in PAIR_COLUMNS if name != "question"]  # query first
    tables: dict[str, list[tuple[Any, ...]]] = {
        "setting": [(name, json.dumps(value)) for name, value in made.settings.items()],
        "query": [(number[query], query, question, None) for query, question in names.rows()],
        "run": list(enumerate(made.runs)),
        "pair": [
            (at, number[query], *rest)
            for at, (query, *rest) in enumerate(made.pairs.select(columns).iter_rows())
        ],
        "rank": made.ranks.select("pair", "run", "rank", "score").rows(),
        "guideline": [(1, time.time(), "", guidelines)] if guidelines else [],
    }
    try:
        make_folder(target)
        draft = target / f".findwell-{secrets.token_hex(8)}"
        with removed_at_the_end(draft):
            create_durable(
                draft, LABELS_DATABASE, TABLES, application=APPLICATION, layout=LAYOUT, rows=tables
            )
            _refuse_existing(target)
            draft.rename(target / FILE)
    except OSError as error:
        raise not_written("folder", target, error) from None
