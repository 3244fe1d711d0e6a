"""Which rules of the embedded judge earn their keep: each is switched off in turn.

`python -m benchmarks.local_ablation DATA` prints the tables of docs/local-judge-measured.md. DATA
is a folder with public labels (clapnq, noveleval, liveqa-med, wice) outside of the project.
MiniLM reads each text once and its vectors are kept, so only the rules run again. Both sides of a
comparison use the thresholds of the judge as it is shipped. Intervals are of a bootstrap over
questions, those of differences a paired one.
"""

from __future__ import annotations

import importlib
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import ROOT
from findwell.judges.local import LocalJudge, clauses, entities, judge, reading, signals, terms
from findwell.judges.local.calibration import logit
from findwell.judges.verdicts import Sample

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Row: TypeAlias = tuple[str, str, str, int]  # group, question or claim, chunk, label

DRAWS = 2000
ANSWERS = 10  # of each question of LiveQA-Med, at most
QUESTIONS = 120  # of ClapNQ, for claims and statements
FOLDS = 10
NEVER = re.compile(r"(?!)")
KINDS = ("local", "local:text")
PACKAGE = "findwell.judges.local"
FORGETFUL: tuple[Any, ...] = (
    terms.term_and_weight,
    terms._ranks,  # noqa: SLF001
    reading.root_of,
    reading.base_of,
    entities.plain_form,
    clauses.by_rules,
    clauses.by_parse,
)


@dataclass(frozen=True)
class Rule:
    """A rule, the aspects that it has a part in, and what stands in its place when it is off."""

    name: str
    aspects: str
    instead: Mapping[str, object] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)  # of the judge with the rule

    @contextmanager
    def off(self) -> Iterator[None]:
        """Switch the rule off."""
        with ExitStack() as stack:
            stack.callback(forget)
            for place, other in self.instead.items():
                stack.enter_context(patch(f"findwell.{place}", other))
            forget()
            yield


def forget() -> None:
    """Clear what functions remember of texts."""
    for function in FORGETFUL:
        function.cache_clear()


def equal_weights(word: str, language: str) -> tuple[str, int]:
    term, weight = terms.term_and_weight(word, language)
    return term, terms.RARE if weight else 0


def without_best_piece(*given: Any, **options: Any) -> signals.Signals:  # noqa: ANN401
    found = compare(*given, **options)
    return signals.Signals(found.overlap, found.similarity, found.similarity, found.chunks)


def facts_where(digits: bool) -> Callable[[str, str], list[str]]:
    return lambda claim, language: [
        fact for fact in facts(claim, language) if any(map(str.isdigit, fact)) is digits
    ]


compare, facts, often = signals.compare, judge._facts, signals.often  # noqa: SLF001
LOCAL = "judges.local"
ALL, TEXTS = "relevance statements claims", "relevance claims"
RULES = (
    Rule("endings of words are taken off", ALL, {f"{LOCAL}.terms._stem": lambda word: word}),
    Rule("common words weigh less", ALL, {f"{LOCAL}.reading.term_and_weight": equal_weights}),
    Rule("words of two or three letters weigh half", ALL, {f"{LOCAL}.terms.SHORT": terms.RARE}),
    Rule("function words weigh nothing", ALL, {f"{LOCAL}.terms.FUNCTION_WORDS": frozenset()}),
    Rule(
        "question words are left out",
        "relevance statements",
        {"core.texts.languages.Language.bare": lambda _, text: text},
    ),
    Rule(
        "words of one root count",
        TEXTS,
        {f"{LOCAL}.reading.root_of": lambda term: term, f"{LOCAL}.reading.base_of": lambda _: ""},
    ),
    Rule("prefixes of processes", TEXTS, {f"{LOCAL}.reading.base_of": lambda _: ""}),
    Rule(
        "repeated words count more",
        "relevance",
        {f"{LOCAL}.signals.often": lambda _, length: often(1, length)},
    ),
    Rule(
        "words of long chunks count less",
        "relevance",
        {f"{LOCAL}.signals.often": lambda count, _: often(count, signals.TYPICAL)},
    ),
    Rule(
        "long chunks are read in windows",
        TEXTS,
        {f"{LOCAL}.signals.windows": lambda chunk, pieces: [(chunk, 0, len(pieces))]},
    ),
    Rule(
        "the best sentence is read, too", "claims", {f"{LOCAL}.judge.compare": without_best_piece}
    ),
    Rule("names must be in the chunk", "claims", {f"{LOCAL}.judge._facts": facts_where(True)}),
    Rule(
        "numbers and dates must be in the chunk",
        "claims",
        {f"{LOCAL}.judge._facts": facts_where(False)},
    ),
    Rule("a negation on one side", "claims", {f"{LOCAL}.judge.negation": lambda *_: ""}),
    Rule("words like no and without deny", "claims", {f"{LOCAL}.judge.NEGATIVE": judge.NOT}),
    Rule("forms of dates", "claims", {f"{LOCAL}.entities.find_dates": lambda _: iter(())}),
    Rule("large numbers written out", "claims", {f"{LOCAL}.entities.SCALED": NEVER}),
    Rule("acronyms with dots", "claims", {f"{LOCAL}.entities._joined": lambda text: text}),
    Rule("particles in names", "claims", {f"{LOCAL}.entities.PARTICLES": frozenset()}),
    Rule(
        "a common word at the beginning is not a name",
        "claims",
        {f"{LOCAL}.entities.is_common": lambda _: False},
    ),
    Rule(
        "the entry of a list weighs half",
        "claims",
        {f"{LOCAL}.judge.entries_of": lambda claims: [""] * len(claims)},
    ),
    Rule("lists are cut", "claims", {f"{LOCAL}.clauses._listed": lambda _: []}),
    Rule(
        "doubtful lists stay whole",
        "claims",
        {f"{LOCAL}.clauses._is_doubtful": lambda *_: False},
    ),
    Rule(
        "commas of dates are not those of lists",
        "claims",
        {f"{LOCAL}.clauses._are_dates": lambda _: False},
    ),
    Rule("spaCy's parse", "claims", options={"decompose": "spacy"}),
)


# --- labels ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """Rows of one data set, and the aspect that they are about."""

    name: str
    aspect: str
    rows: list[Row]

    @property
    def yes(self) -> Bools:
        """What people said."""
        return np.array([label > 0 for *_, label in self.rows])

    @property
    def groups(self) -> list[int]:
        """The number of the question of each row."""
        numbers: dict[str, int] = {}
        return [numbers.setdefault(group, len(numbers)) for group, *_ in self.rows]


def sampled(rows: Sequence[Row], count: int) -> list[Row]:
    """Return the rows of some questions."""
    groups = sorted({group for group, *_ in rows})
    kept = set(random.Random(0).sample(groups, min(count, len(groups))))
    return [row for row in rows if row[0] in kept]


def labelled(folder: Path, script: Any) -> list[Labels]:  # noqa: ANN401
    """Read the data sets; `script` is the one that fitted the weights, which knows two of them."""
    script.DATA = folder
    answers: dict[str, list[Row]] = {}
    for record in script.records(folder / "liveqa-med" / "answers.jsonl"):
        row = record["query"], record["question"], record["text"], int(record["grade"] >= 2)
        answers.setdefault(record["query"], []).append(row)
    choice = random.Random(0)
    health = [row for own in answers.values() for row in choice.sample(own, min(ANSWERS, len(own)))]
    wikipedia = [
        (each["query"], each["claim"], each["evidence"], int(each["supported"] == "supported"))
        for each in script.records(folder / "wice" / "claims.jsonl")
    ]
    own, changed = script.claims()
    true = [row for row in own if row[3]]
    wrong = [*true, *(row for rows in changed.values() for row in rows)]
    return [
        Labels("ClapNQ", "relevance", list(script.clapnq())),
        Labels("NovelEval", "relevance", list(script.noveleval())),
        Labels("LiveQA-Med", "relevance", health),
        Labels(
            "ClapNQ sentences", "statements", sampled([*script.clapnq(statements=True)], QUESTIONS)
        ),
        Labels("ClapNQ answers", "claims", sampled(own, QUESTIONS)),
        Labels("ClapNQ answers, some made wrong", "claims", sampled(wrong, 2 * QUESTIONS)),
        Labels("WiCE", "claims", wikipedia),
    ]


# --- verdicts and what they are worth -------------------------------------------------------------


class Remembering:
    """An embedder that keeps all vectors in memory."""

    def __init__(self, embedder: Any) -> None:  # noqa: ANN401
        self.name = "minilm"
        self._embedder = embedder
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row per text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._embedder.embed(new), strict=True))
        return np.stack([self._vectors[text] for text in texts])


def judged(labels: Labels, by: LocalJudge) -> tuple[Bools, Floats]:
    """Return verdicts and scores; a claim of several parts is supported if each part is."""
    parts: list[tuple[str, ...]] = [(text,) for _, text, _, _ in labels.rows]
    if labels.aspect == "claims":
        parts = by.claims_of([[text] for _, text, _, _ in labels.rows])
    samples = [
        Sample(
            str(number),
            text,
            (chunk,),
            items={"claims": claims},
            parts={"statements": ((chunk,),)},
        )
        for number, ((_, text, chunk, _), claims) in enumerate(zip(labels.rows, parts, strict=True))
    ]
    found = by.judge(samples, frozenset({labels.aspect}))
    verdicts = [[verdict for row in each[labels.aspect].rows for verdict in row] for each in found]
    said = [all(verdict.value for verdict in own) for own in verdicts]
    scores = [min(verdict.probability or 0.0 for verdict in own) for own in verdicts]
    return np.array(said), np.array(scores)


def counts(said: Bools, labels: Labels) -> Floats:
    """Return for each question how many verdicts are right and wrong, of yes and of no."""
    found = np.zeros((max(labels.groups) + 1, 4))
    places = np.stack([np.array(labels.groups), 2 * said.astype(int) + labels.yes])
    np.add.at(found, tuple(places), 1)
    return found


def kappa(table: Floats) -> Floats:
    """Return Cohen's κ of tables (no/no, no/yes, yes/no, yes/yes)."""
    shares = table / table.sum(axis=-1, keepdims=True)
    said, true = shares[..., 2] + shares[..., 3], shares[..., 1] + shares[..., 3]
    chance = said * true + (1 - said) * (1 - true)
    return np.asarray((shares[..., 0] + shares[..., 3] - chance) / (1 - chance))


@cache
def drawn_questions(count: int) -> Floats:
    """Return how often each question is drawn; the same for all tables of a data set."""
    chances = np.full(count, 1 / count)
    return np.random.default_rng(0).multinomial(count, chances, size=DRAWS).astype(np.float64)


def area(scores: Floats, yes: Bools) -> float:
    """Return the area under the ROC curve: how often a yes has the higher score; ties half."""
    _, inverse, tied = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(tied) - (tied - 1) / 2)[inverse]
    positive = int(yes.sum())
    above = ranks[yes].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(yes) - positive)))


def spelled(value: float, draws: Floats, sign: str = "") -> str:
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return f"{value:{sign}.3f} ({low:{sign}.3f} to {high:{sign}.3f})"


def row(kind: str, rule: str, labels: Labels, found: Any, without: Any) -> str:  # noqa: ANN401
    tables = [counts(said, labels) for said, _ in (found, without)]
    values = [kappa(table.sum(axis=0)) for table in tables]
    draws = [kappa(drawn_questions(len(table)) @ table) for table in tables]
    areas = [area(scores, labels.yes) for _, scores in (found, without)]
    right = [np.mean(said == labels.yes) for said, _ in (found, without)]
    changed = int((found[0] != without[0]).sum())
    helps = np.nanquantile(draws[0] - draws[1], 0.025) > 0
    cells = [
        kind,
        rule,
        labels.name,
        f"{changed} of {len(labels.rows)}",
        spelled(float(values[0]), draws[0]),
        f"{values[1]:.3f}",
        spelled(float(values[0] - values[1]), draws[0] - draws[1], "+") + ("*" if helps else ""),
        f"{areas[0]:.3f}",
        f"{areas[1]:.3f}",
        f"{right[0]:.3f}",
        f"{right[1]:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


HEADER = (
    "judge", "rule", "labels", "other verdicts", "κ with", "κ without", "difference", "AUC with",
    "without", "accuracy with", "without",
)  # fmt: skip


# --- scores compared with those of a question's other candidates ----------------------------------


def chosen(scores: Floats, labels: Labels) -> Bools:
    """Return verdicts with thresholds from other questions."""
    groups = np.array(labels.groups)
    order = np.random.default_rng(0).permutation(max(groups) + 1) % FOLDS
    said = np.zeros(len(scores), dtype=bool)
    for fold in range(FOLDS):
        mine = order[groups] == fold
        rest, yes = scores[~mine], labels.yes[~mine]
        grid = np.quantile(rest, np.arange(0.02, 0.99, 0.01))
        tables = np.array(
            [np.bincount(2 * (rest >= least) + yes, minlength=4) for least in grid], dtype=float
        )
        said[mine] = scores[mine] >= grid[np.argmax(kappa(tables))]
    return said


def normalised(sums: Floats, labels: Labels, how: str) -> Floats:
    """Compare weighted sums with those of the same question."""
    found = sums.copy()
    groups = np.array(labels.groups)
    for group in range(max(groups) + 1):
        own = groups == group
        middle = sums[own].mean()
        found[own] -= middle / 2 if how == "half of the mean" else middle
        if how == "mean and spread":
            found[own] /= max(sums[own].std(), 0.1)
    return found


def normalisation(kind: str, labels: Labels, scores: Floats) -> Iterator[str]:
    """Say whether normalised scores agree better with people."""
    sums = np.array([logit(min(max(score, 1e-6), 1 - 1e-6)) for score in scores])
    plain = chosen(sums, labels), sums
    for how in ("mean", "half of the mean", "mean and spread"):
        other = normalised(sums, labels, how)
        yield row(kind, f"normalised by the {how}", labels, (chosen(other, labels), other), plain)


def main() -> None:
    """Print the tables."""
    sys.path.insert(0, str(ROOT / "examples" / "maintenance"))
    script = importlib.import_module("calibrate_local_judge")
    sets = labelled(Path(sys.argv[1]), script)
    remembering = Remembering(script.MINILM)
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}", flush=True)
    for kind in KINDS:
        embedder = remembering if kind == "local" else None
        usual: dict[str, Any] = {"entities": "rules", "decompose": "rules"}
        plain = LocalJudge(embedder, remember=False, **usual)
        whole = [judged(labels, plain) for labels in sets]
        for rule in RULES:
            for labels, found in zip(sets, whole, strict=True):
                if labels.aspect not in rule.aspects.split():
                    continue
                if rule.options:
                    other = judged(
                        labels, LocalJudge(embedder, remember=False, **usual | dict(rule.options))
                    )
                    print(row(kind, rule.name, labels, other, found), flush=True)
                    continue
                with rule.off():
                    print(row(kind, rule.name, labels, found, judged(labels, plain)), flush=True)
        for labels, (_, scores) in zip(sets, whole, strict=True):
            if labels.name in ("NovelEval", "LiveQA-Med"):
                print(*normalisation(kind, labels, scores), sep="\n", flush=True)


if __name__ == "__main__":
    main()
