"""`findwell.io.doctor`: what is installed, and whether run, gold and corpus fit each other."""

from __future__ import annotations

import re
import shlex
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from findwell.core import display
from findwell.core.data import Gold, Run, carried_facts
from findwell.core.errors import AlignError, FindwellError, InputError
from findwell.core.frames import pl
from findwell.core.measure import Budget
from findwell.core.spelling import counted
from findwell.evaluation.chunking import chunk_places, cut_in_lists, cut_labels, label_places
from findwell.evaluation.evaluate import assess
from findwell.evaluation.inputs import read_inputs
from findwell.evaluation.installation import DoctorLine, examine_installation, examine_judges
from findwell.evaluation.plan import EvaluationOptions, Plan, flat_options, takes_plan
from findwell.evaluation.project_files import Project, ProjectFile
from findwell.io.read import Kind, each_input, kind_of, path_of
from findwell.io.read.corpus import load_corpus
from findwell.io.storage.folders import MANIFEST
from findwell.measures import DEFAULTS
from findwell.relations.preflight import DOCUMENTS, hint, no_shared_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from findwell.core.data import RunStream
    from findwell.evaluation.inputs import Inputs
    from findwell.evaluation.results.result import Result
    from findwell.io.read import GoldLike
    from findwell.measures import Measure

SAMPLE_QUERIES = 100  # of the gold on which relations are tried
SAMPLE_ROWS = 10_000  # of the runs at most; ROUGE compares each of them with the gold
LEAST_QUERIES = 10  # of a sample, however long the lists are
SAMPLE_CHUNKS = 300  # that are looked for in the corpus
# of what the best relation covers: a plainer one that covers less does not fit. Looser relations
# also find texts that are merely alike, and equal ids are hardly chance
CLEAR_SHARES = {"ids": 0.5, "spans": 0.5}
CLEAR_SHARE = 0.75
FOUND_SHARE = 0.95  # of the chunks that must be in the corpus
FINE_DIFFERENCE = 0.1  # that the queries should be able to show
SAME_TIME = 2.0  # seconds between files that one command wrote
# relations that are tried, the plainest first
TRIED_RELATIONS = ("ids", "spans", "exact", "containment", "rouge")
# words in the name of a run that mean the state before a change, the clearest first
BASELINE_WORDS = (
    *("baseline", "main", "master", "prod", "current", "control", "reference", "before", "old"),
    *("base", "bm25", "v0", "v1"),
)


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis(display.Shown):
    """What was looked at, line by line, and what follows for an evaluation of the project."""

    installation: tuple[DoctorLine, ...] = ()
    project: tuple[DoctorLine, ...] = ()
    by: str = ""  # the relation that fits; empty where none was found
    ids: str = ""  # how ids must be normalised for it: `--read ids`
    why_by: str = ""
    baseline: str = ""  # the run to compare the others with
    why_baseline: str = ""
    baseline_file: str = ""

    @property
    def lines(self) -> tuple[DoctorLine, ...]:
        """All lines."""
        return self.installation + self.project

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


@takes_plan(EvaluationOptions)
def doctor(
    run: object = None,
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    *,
    ask: bool = False,
    **options: Unpack[EvaluationOptions],
) -> Diagnosis:
    """Say what is installed and which judges answer; with runs, whether these fit their gold.

    `run` is the folder of a project, whose files are found by their content, or whatever
    `findwell.evaluate` takes, with the `gold` and the other options of that. Relations are tried on
    a sample of the queries. Servers on this machine are asked for the list of their models; the
    server of a `judge` that is elsewhere is asked only with `ask=True`.

    >>> found = doctor({"q1": ["d1#1"], "q2": ["d2#7"]}, {"q1": ["d1"], "q2": ["d2"]})
    >>> found.by, found.ids
    ('ids', 'chunk-to-doc:#')
    """
    judge: Any = options.get("judge")
    installed = (*examine_installation(), *examine_judges(judge, ask=ask))
    if run is None:
        return Diagnosis(installed)
    return replace(examine(run, gold, measures, **options), installation=installed)


def examine(
    run: object,
    gold: object = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    **options: Unpack[EvaluationOptions],
) -> Diagnosis:
    """Look at runs and gold, or at the files of a project's folder."""
    given = flat_options(options)
    given.pop("progress", None)
    if kind_of(run) is Kind.LISTED and len(each_input(run)) == 1:
        run = each_input(run)[0][1]
    files = Files(run, gold, given.get("corpus"))
    if kind_of(run) is not Kind.PATH or not Path(str(run)).is_dir():
        return Patient.read(files, measures, given).diagnosed([])
    if (Path(str(run)) / MANIFEST).is_file():
        raise InputError(
            "this is a saved result",
            where=str(run),
            fix="name the files that it was made from, or the folder of the project",
        )
    return examine_project(Project.of(str(run)), files, measures, given)


def examine_project(
    project: Project,
    named: Files | None = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    options: Mapping[str, Any] | None = None,
) -> Diagnosis:
    """Look at the files of a project, or at what was `named` instead of them."""
    files = Files.of(project, named or Files(None))
    lines = [*_about_files(project, files)]
    if files.gold is None and not project.labelled:
        return Diagnosis(project=tuple(lines))
    return Patient.read(files, measures, options or {}).diagnosed(lines)


@dataclass(frozen=True, slots=True)
class Files:
    """What is looked at, and how it is named on a command line."""

    run: object
    gold: object = None
    corpus: object = None
    chunkings: tuple[str, ...] = ()

    @classmethod
    def of(cls, project: Project, given: Files) -> Files:
        """Take the files of a project, and what was named next to its folder instead."""
        gold: object = None if project.gold is None else str(project.gold.path)
        tables = {str(each.path): load_corpus(each.path) for each in project.corpora}
        chunkings = tuple(path for path, table in tables.items() if "source" in table.columns)
        documents = next((path for path in tables if path not in chunkings), None)
        return cls(
            [str(each.path) for each in project.runs],
            gold if given.gold is None else given.gold,
            documents if given.corpus is None else given.corpus,
            chunkings,
        )

    def command(self, verb: str, *more: str, texts: bool = True) -> str:
        """Return a command about these files; what is not a file is called RUN and GOLD."""
        words = ["findwell", verb, *(path_of(each, "RUN") for _, each in each_input(self.run))]
        words += [] if self.gold is None else ["--gold", path_of(self.gold, "GOLD")]
        if texts and self.corpus is not None:
            words += ["--corpus", path_of(self.corpus, "CORPUS")]
        return shlex.join([*words, *more])


def _about_files(project: Project, files: Files) -> Iterator[DoctorLine]:
    """Say which files were found, and what they were taken for."""
    kind = "records with their gold" if project.runs[0].role == "samples" else "runs"
    found = [f"{kind}: {_names(project.runs)}"]
    found += [] if project.gold is None else [f"gold: {project.gold.path.name}"]
    found += [f"texts: {_names(project.corpora)}"] if project.corpora else []
    yield DoctorLine("files", "ok", "; ".join(found))
    if project.other_golds:
        yield DoctorLine(
            "files",
            "look",
            f"{_names(project.other_golds)} could be the gold as well; "
            "the one that shares most queries was taken",
            files.command("check"),
        )
    if project.unknown:
        yield DoctorLine(
            "files",
            "look",
            f"neither a run nor gold labels could be read from {_names(project.unknown)}",
            f"findwell check {shlex.quote(str(project.unknown[0].path))}",
        )
    if not project.labelled:
        yield DoctorLine(
            "gold",
            "look",
            "no file says what should be found, so only a judge can score these runs",
            files.command(
                "score", "--judge", "local", "-m", "context_precision", "-m", "context_relevancy"
            ),
        )


@dataclass(frozen=True, slots=True)
class BaselineChoice:
    """The run that the others are compared with; without a name there is only one."""

    name: str = ""
    why: str = ""
    path: str = ""
    sure: bool = True

    @classmethod
    def of(cls, names: Sequence[str], paths: Mapping[str, str]) -> BaselineChoice:
        """Choose by the name of a run, else the oldest file, else the first.

        >>> BaselineChoice.of(["ada", "bm25", "old-bm25"], {}).name
        'old-bm25'
        >>> BaselineChoice.of(["gold-model", "reranked"], {}).why
        'it is the first, and nothing says which is older'
        """
        if len(names) < 2:
            return cls()
        words = {name: set(re.split(r"[^a-z0-9]+", name.casefold())) for name in names}
        for word in BASELINE_WORDS:
            found = [name for name in names if word in words[name]]
            if len(found) == 1:
                return cls(found[0], f"its name says {word}", paths.get(found[0], ""))
        written = {name: Path(path) for name, path in paths.items()}
        dates = sorted(
            (path.stat().st_mtime, name) for name, path in written.items() if path.is_file()
        )
        if len(dates) == len(names) and dates[1][0] - dates[0][0] > SAME_TIME:
            return cls(dates[0][1], "its file is the oldest", paths[dates[0][1]])
        why = "it is the first, and nothing says which is older"
        return cls(names[0], why, paths.get(names[0], ""), sure=False)


@dataclass(frozen=True, slots=True)
class Trial:
    """A relation that was tried: how much of the gold some run covers by it."""

    by: str
    ids: str
    share: float  # of the relevant items
    result: Result

    @property
    def name(self) -> str:
        """How a sentence calls it."""
        return f"{self.by} (with --read ids={self.ids})" if self.ids else self.by

    @property
    def reads_texts(self) -> bool:
        """Whether it needs the corpus."""
        return self.by != "ids"

    @property
    def flags(self) -> tuple[str, ...]:
        """What is typed for it; ids need nothing."""
        by = () if self.by == "ids" else ("--by", self.by)
        return (*by, *(("--read", f"ids={self.ids}") if self.ids else ()))


@dataclass(frozen=True, slots=True, eq=False)
class Patient:
    """Runs and gold as they were read: all that can be counted, and a sample of the queries."""

    files: Files
    data: Inputs
    plan: Plan  # with the measures that were asked for
    options: Mapping[str, Any]
    lengths: Mapping[str, pl.DataFrame]  # by run: query and how many documents its list has
    runs: Mapping[str, Run]  # only the sample
    gold: Gold  # only the sample
    labelled: int  # queries with a relevant item
    baseline: BaselineChoice

    @classmethod
    def read(
        cls, files: Files, measures: Iterable[str | Measure] | str, options: Mapping[str, Any]
    ) -> Patient:
        """Read everything once; of the lists only those of a sample of the queries are kept."""
        given = {**options, "missing": "zero", "corpus": files.corpus}
        asked = Plan.of(measures, **given)
        plain = Plan.of("recall", **{**given, "by": options.get("by") or "ids", "judge": None})
        plain = plain.with_choices(reading=plain.reading.with_texts())
        with ExitStack() as held:
            data = read_inputs(plain, files.run, files.gold, held)
            rows = data.gold.rows()
            relevant = rows.filter(pl.col("grade") > 0)["query"].unique(maintain_order=True)
            if not len(relevant):
                raise InputError("no query has a relevant item", where="gold")
            names = _spread_out(relevant, SAMPLE_QUERIES)
            kept = [_scanned(each, names) for each in data.runs]
            most = max((run.rows.height for run, _ in kept), default=0)
            if most > SAMPLE_ROWS:
                fewer = max(LEAST_QUERIES, len(names) * SAMPLE_ROWS // most)
                names = _spread_out(names, fewer)
        sampled = pl.col("query").is_in(names.implode())
        gold = Gold.build(rows.filter(sampled), queries=data.gold.queries.filter(sampled))
        gold = replace(gold, carries=data.gold.carries, named_by=data.gold.named_by)
        files_of = {
            run.name: source.path
            for (run, _), source in zip(kept, data.sources, strict=False)
            if source.path is not None
        }
        baseline = BaselineChoice.of([run.name for run, _ in kept], files_of)
        kept.sort(key=lambda each: each[0].name != baseline.name)
        runs = {run.name: replace(run, rows=run.rows.filter(sampled)) for run, _ in kept}
        lengths = {run.name: table for run, table in kept}
        labelled = len(relevant)
        return cls(files, data, asked, given, lengths, runs, gold, labelled, baseline)

    def diagnosed(self, lines: list[DoctorLine]) -> Diagnosis:
        """Look at everything, in the order in which problems hide others."""
        about_queries, answered = self._about_queries()
        lines += about_queries
        if not answered:
            return Diagnosis(project=tuple(lines))
        trials = self._trials()
        chosen, line = self._about_relation(trials)
        lines.append(line)
        lines += self._about_baseline(chosen)
        lines += self._about_corpus()
        lines += self._about_labels()
        if chosen is not None:
            lines += self._about_lists(chosen)
            lines += self._about_power(chosen)
            lines += self._about_findings(chosen)
        found = Diagnosis(
            project=tuple(lines),
            baseline=self.baseline.name,
            why_baseline=self.baseline.why,
            baseline_file=self.baseline.path,
        )
        if chosen is None:
            return found
        why = self._shares(trials, chosen)
        return replace(found, by=chosen.by, ids=chosen.ids, why_by=why)

    def _about_queries(self) -> tuple[list[DoctorLine], bool]:
        """Say whether the runs answer the queries of the gold."""
        lines = []
        asked, answered = self.data.gold.queries["query"], False
        for name, table in self.lengths.items():
            shared = int(asked.is_in(table["query"].implode()).sum())
            answered |= bool(shared)
            if not shared and table.height:
                error = no_shared_query(table["query"], asked, name)
                lines.append(self._broken("queries", error))
            elif shared < len(asked):
                some = f"{shared:,} of {counted(len(asked))} of the gold"
                sentence = f"{name} answers {some}; the others count as 0"
                lines.append(DoctorLine("queries", "look", sentence, self.files.command("check")))
        if not lines:
            every = f"every run answers all {counted(len(asked))} of the gold"
            lines.append(DoctorLine("queries", "ok", every))
        return lines, answered

    def _broken(self, about: str, error: FindwellError) -> DoctorLine:
        sentence = f"{error.what}; {error.fix}" if error.fix else error.what
        return DoctorLine(about, "broken", sentence, self.files.command("check"))

    def _trials(self) -> list[Trial]:
        """Try the relations that the data allow on the sample; best first where several fit."""
        carried = [
            self.data.gold.carries,
            *(carried_facts(each.rows) for each in self.runs.values()),
        ]
        texts = self.data.corpus is not None or all("texts" in each for each in carried)
        places = "places" in carried[0] or (self.data.corpus is not None and "texts" in carried[0])
        wanted: list[tuple[str, str]] = []
        chosen, normalised = self.options.get("by"), self.options.get("ids")
        for name in dict.fromkeys((*((str(chosen),) if chosen else ()), *TRIED_RELATIONS)):
            if name == "spans" and not places:
                continue
            if name in ("exact", "containment", "rouge") and not texts:
                continue
            wanted.append((name, ""))
            if name == "ids" and normalised is None and (found := self._normaliser()):
                wanted.append((name, found))
        trials = []
        for by, ids in wanted:
            measures = [each for each in self.plan.measures if each.relation is None] or "recall"
            given = {**self.options, "by": by, **({"ids": ids} if ids else {})}
            try:
                result = self._assessed(Plan.of(measures, **given))
            except FindwellError:  # such as a library that is not installed
                continue
            trials.append(Trial(by, ids, _covered(result), result))
        return trials

    def _normaliser(self) -> str:
        """Return how ids must be normalised so that run and gold share some."""
        ours = pl.concat([each.rows["doc"] for each in self.runs.values()])
        found = hint(ours, self.gold.member_doc, DOCUMENTS)
        return "" if found is None else found[0].ids

    def _assessed(self, plan: Plan) -> Result:
        """Draw the relations of a plan over the sample."""
        streams: list[RunStream] = [each.stream() for each in self.runs.values()]
        return assess(plan, streams, self.gold, corpus=self.data.corpus)

    def _about_relation(self, trials: Sequence[Trial]) -> tuple[Trial | None, DoctorLine]:
        """Choose the plainest relation that covers about as much of the gold as the best."""
        most = max((each.share for each in trials), default=0.0)
        if not most:
            return None, self._nothing_met(trials)
        gold = self.data.gold.carries
        places = "places" in gold and "chunks" not in gold  # an id is a whole document then
        usual = "spans" if places else "ids"
        order = sorted(trials, key=lambda each: each.by != usual)
        fitting = [
            each for each in order if each.share >= CLEAR_SHARES.get(each.by, CLEAR_SHARE) * most
        ]
        asked = self.options.get("by")
        named = [each for each in fitting if each.by == asked]
        chosen = (named or fitting)[0]
        default = next((each for each in trials if each.by == (asked or usual)), None)
        fits = default is not None and default.by == chosen.by and not chosen.ids
        nothing = default is not None and not default.share
        state: Any = "ok" if fits else "broken" if nothing else "look"
        sentence = self._shares(trials, chosen if default is None or fits else default)
        sentence += "" if fits else f": compare by {chosen.name}"
        command = self.files.command("score", *chosen.flags, texts=chosen.reads_texts)
        return chosen, DoctorLine("relation", state, sentence, command)

    def _shares(self, trials: Sequence[Trial], first: Trial) -> str:
        """Say how much of the gold each relation covers."""
        others = [f"{each.share:.0%} by {each.name}" for each in trials if each is not first]
        share = f"{first.share:.0%} of the gold items are in a list by {first.name}"
        tried = f" (tried on {self.gold.n} of {counted(self.labelled)})"
        return ", ".join([share, *others]) + ("" if self.gold.n == self.labelled else tried)

    def _nothing_met(self, trials: Sequence[Trial]) -> DoctorLine:
        """Say that nothing that was retrieved is in the gold, and why, as an evaluation would."""
        names = ", ".join(each.name for each in trials) or "ids"
        nothing = f"0% of the gold items are in a list by {names}"
        try:
            self._assessed(Plan.of("recall", **{**self.options, "by": None}))
        except AlignError as error:
            return replace(
                self._broken("relation", error), sentence=f"{nothing}: {error.what}; {error.fix}"
            )
        except FindwellError as error:
            return self._broken("relation", error)
        return DoctorLine("relation", "broken", nothing, self.files.command("check"))

    def _about_baseline(self, chosen: Trial | None) -> Iterator[DoctorLine]:
        """Say which run the others are compared with."""
        if self.baseline.name:
            state: Any = "ok" if self.baseline.sure else "look"
            sentence = f"compare the others with {self.baseline.name}: {self.baseline.why}"
            flags = ("--baseline", self.baseline.name, *(chosen.flags if chosen else ()))
            texts = chosen is not None and chosen.reads_texts
            command = self.files.command("compare", *flags, texts=texts)
            yield DoctorLine("baseline", state, sentence, command)

    def _about_corpus(self) -> Iterator[DoctorLine]:
        """Say whether the corpus has what was retrieved: by its ids, or its texts."""
        corpus = self.data.corpus
        if corpus is None:
            return
        fine = []
        for name, run in self.runs.items():
            rows = run.rows.drop_nulls("doc").unique("doc", maintain_order=True).head(SAMPLE_CHUNKS)
            if not rows.height:
                continue
            known = int(rows["doc"].is_in(corpus["doc"].implode()).sum())
            located = 0 if known == rows.height else _located(rows, corpus, name)
            if max(known, located) >= FOUND_SHARE * rows.height:
                how = "id" if known >= located else "text"
                fine.append(f"{max(known, located):,} of {rows.height:,} of {name} by {how}")
                continue
            state: Any = "look" if known or located else "broken"
            sentence = (
                f"of {rows.height:,} retrieved chunks of {name} the corpus has {known:,} by id and "
                f"{located:,} by text"
            )
            yield DoctorLine("corpus", state, sentence, self.files.command("check"))
        if fine:
            sentence = f"the corpus has the retrieved chunks: {', '.join(fine)}"
            yield DoctorLine("corpus", "ok", sentence)

    def _about_labels(self) -> Iterator[DoctorLine]:
        """Say how many labels each way of chunking cuts, where labels are places in documents."""
        corpus = self.data.corpus
        if corpus is None or "text" not in corpus.columns or "source" in corpus.columns:
            return
        documents = corpus.drop_nulls("text")
        labels = label_places(self.gold.rows(), documents)
        if not labels.height:
            return
        chunkings = {Path(path).name: load_corpus(path) for path in self.files.chunkings}
        for name, table in (chunkings or {n: run.rows for n, run in self.runs.items()}).items():
            held, _ = chunk_places(table, documents, name)
            if not held.height:
                continue
            cut = (cut_labels if chunkings else cut_in_lists)(labels, held, name)
            count = sum(each.count for each in cut)
            some = f"{count:,} of {counted(labels.height, 'label', 'labels')}"
            sentence = f"the chunks of {name} cut {some}: no single chunk holds them"
            if not count:
                sentence = f"the chunks of {name} cut none of {labels.height:,} labels"
            flags = [word for path in self.files.chunkings for word in ("--chunks", path)]
            command = self.files.command("check", *flags) if count else ""
            yield DoctorLine("labels", "look" if count else "ok", sentence, command)

    def _about_lists(self, chosen: Trial) -> Iterator[DoctorLine]:
        """Say whether lists are long enough for the cutoffs and budgets of the measures."""
        cutoffs = {str(each): each.k for each in self.plan.measures if isinstance(each.k, int)}
        deepest = max(cutoffs.values(), default=0)
        named = ", ".join(name for name, k in cutoffs.items() if k == deepest)
        short = []
        for name, table in self.lengths.items():
            few = int((table["len"] < deepest).sum())
            short += [f"{few:,} of {table.height:,} of {name}"] if few else []
        if short:
            sentence = (
                f"some lists have fewer than {deepest} documents ({', '.join(short)}); longer ones "
                f"may raise {named}"
            )
            yield DoctorLine("lists", "look", sentence, f"findwell run RETRIEVER -k {deepest}")
        budgets = [each for each in self.plan.measures if isinstance(each.k, Budget)]
        for each in chosen.result.findings:
            if each.kind == "short-list":
                short.append(each.run)
                sentence = f"{each.run}: {each.message}"
                yield DoctorLine("lists", "look", sentence, "findwell run RETRIEVER -k 50")
        if not short and (deepest or budgets):
            enough = ", ".join([*filter(None, [named]), *map(str, budgets)])
            yield DoctorLine("lists", "ok", f"all lists are long enough for {enough}")

    def _about_power(self, chosen: Trial) -> Iterator[DoctorLine]:
        """Say what these queries can show."""
        from findwell.evaluation.comparison.power import power  # noqa: PLC0415

        measure = next(
            (each for each in chosen.result.measures if each.aggregation == "mean"), None
        )
        if measure is None:
            return
        flags = (*chosen.flags, "-m", str(measure), "--difference", "0.02")
        command = self.files.command("power", *flags, texts=chosen.reads_texts)
        try:
            found = power(chosen.result, measures=[measure], queries=self.labelled)
        except FindwellError as error:  # such as a library that is not installed
            sentence = f"what these queries can show is not known: {error.what}"
            yield DoctorLine("power", "look", sentence, error.fix)
            return
        shown = [each.detectable.value for each in found.plans if each.detectable is not None]
        able = [each for each in shown if each]
        if not able:
            return
        worst, n = max(able), counted(self.labelled)
        sentence = f"{n} can show a difference of {worst:.2g} or more in {measure} (power 80%)"
        state: Any = "ok" if worst <= FINE_DIFFERENCE else "look"
        yield DoctorLine("power", state, sentence, command)

    def _about_findings(self, chosen: Trial) -> Iterator[DoctorLine]:
        """Say what else an evaluation would report."""
        others = [each for each in chosen.result.findings if each.kind != "short-list"]
        if others:
            kinds = ", ".join(dict.fromkeys(each.kind for each in others))
            sentence = (
                f"`findwell check` explains {counted(len(others), 'finding', 'findings')}: {kinds}"
            )
            command = self.files.command("check", *chosen.flags)
            yield DoctorLine("findings", "look", sentence, command)


def _names(files: tuple[ProjectFile, ...]) -> str:
    return ", ".join(each.path.name for each in files)


def _located(rows: pl.DataFrame, corpus: pl.DataFrame, name: str) -> int:
    """Count the chunks whose text stands in a document."""
    if "text" not in corpus.columns or "text" not in rows.columns:
        return 0
    held, _ = chunk_places(rows, corpus.drop_nulls("text"), name)
    return held["chunk"].n_unique()


def _spread_out(names: pl.Series, most: int) -> pl.Series:
    """Return some names, from the first to the last at equal distances.

    >>> _spread_out(pl.Series(["a", "b", "c", "d", "e", "f"]), 3).to_list()
    ['a', 'c', 'e']
    """
    if len(names) <= most:
        return names
    return names.gather(np.linspace(0, len(names), most, endpoint=False).astype(int))


def _scanned(stream: RunStream, names: pl.Series) -> tuple[Run, pl.DataFrame]:
    """Read a run to its end: keep the lists of some queries, and count those of all."""
    kept, counts = [], []
    for batch in stream.batches():
        kept.append(batch.filter(pl.col("query").is_in(names.implode())))
        counts.append(batch.drop_nulls("doc").group_by("query", maintain_order=True).len())
    if not kept:
        raise InputError("the run is empty", where=f"run {stream.name}")
    lengths = pl.concat(counts).group_by("query", maintain_order=True).agg(pl.col("len").sum())
    run = Run(stream.name, pl.concat(kept), stream.order, (*stream.findings, *stream.found()))
    return run, lengths


def _covered(result: Result) -> float:
    """Return the share of the relevant items that some run covers."""
    met: Any = None
    relevant = np.zeros(0, dtype=bool)
    for run in result.runs:
        relation = result.relation(run)
        relevant = relation.item_grade > 0
        met = np.zeros(len(relevant), dtype=bool) if met is None else met
        met[np.asarray(relation.edge_item, dtype=np.int64)] = True
    return float(met[relevant].mean()) if relevant.any() else 0.0
