"""Judges that labels have taught: probabilities and a threshold fitted to what people say.

Any judge that gives probabilities can be taught: `local`, a reranker, a language model that is
asked for single verdicts and reports how likely its words are. What the labels are worth is
measured on questions that did not teach: they are dealt into up to ten parts, and each part is
judged with what the others have taught. A gain counts only where the interval of that difference is
above 0, its test agrees, and the taught judge is better than chance. Otherwise the verdicts stay as
they were, and only the probabilities follow the labels.

A language model may also be shown examples: labels that it had most wrong. They stay if they bring
a gain on questions that they were not chosen from. Then neither a threshold nor probabilities are
fitted: what the model said of other labels was said after examples from the questions that would be
held out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from findwell.core.errors import (
    InputError,
    OptionError,
    SaveError,
    check_share,
    choose,
    takes_options,
)
from findwell.core.estimate import Estimate
from findwell.core.forks import refuse_after_fork
from findwell.io.storage.files import write_text
from findwell.judges.aspects import ASPECTS
from findwell.judges.cards.labels import LabelledPairs, LabelledSamples, load_labels, short_hash
from findwell.judges.client.protocol import parse_json
from findwell.judges.settings import Judge
from findwell.statistics.agreement import kappa, kappa_difference
from findwell.statistics.calibration import ScoreMap, best_threshold, deal_folds, isotonic, platt

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats
    from findwell.core.findings import Finding
    from findwell.core.progress import Report
    from findwell.judges.llm.single import Example
    from findwell.judges.verdicts import AspectVerdicts, Judged, Judgement, JudgeProtocol, Sample

LAYOUT = 1
LEAST_QUESTIONS = 5  # of the labels: fewer cannot show what they are worth
LEAST_GRADES = 20  # labels of a grade and above, and below it, from which the grade is learnt
EXAMPLE_TOKENS = 300  # of the text of an example, at most
MANY_LABELS = 1000  # from which any curve is fitted, not only a logistic one
CLIPPED = 1e-6  # from 0 and 1, so that log odds are finite
CITED = ("labels", "pairs", "questions", "aspect", "threshold", "curves", "before", "after", "gain")
ESTIMATES = ("before", "after", "gain", "example_gain")
NO_GAIN = "no gain was shown on questions that did not teach"


@dataclass(frozen=True, slots=True)
class Teaching:
    """What labels have taught a judge, and what that is worth on other questions."""

    judge: str  # the spec of the judge that was taught
    name: str  # what it calls itself
    endpoint: str  # its server; '' if it asks none
    ask: str  # the way in which a language model was asked
    aspect: str
    labels: str  # their name
    pairs: int
    questions: int
    rel: int
    curves: Mapping[int, ScoreMap]  # by grade: how probable this grade or a higher one is
    threshold: float | None  # of the probability of a yes; None: the judge's own verdicts stay
    before: Estimate  # κ of the judge as it was
    after: Estimate  # κ with a threshold, on questions that did not teach
    gain: Estimate  # of κ, on these
    brier_before: float
    brier_after: float  # on questions that did not teach
    asked: tuple[str, ...] = ()  # short hashes of the questions
    created: str = ""
    example_gain: Estimate | None = None  # of κ, held out, where examples were tried
    examples: tuple[tuple[str, str, bool], ...] = ()  # those that stay: question, chunk, label

    @property
    def helps(self) -> bool:
        """Whether a gain was shown on questions that did not teach."""
        return self.threshold is not None or bool(self.examples)

    def cite(self) -> str:
        """Return in one line what it is worth."""

        def told(found: Estimate) -> str:
            value = "undefined" if found.value is None else f"{found.value:.2f}"
            return value + ("" if found.low is None else f" ({found.low:.2f}…{found.high:.2f})")

        about = f"taught with {self.pairs} labels of {self.labels}"
        if not self.helps:
            return f"{about}: κ {told(self.before)}, {self.aspect}; {NO_GAIN}"
        before = told(self.before)
        return f"{about}: held-out κ {told(self.after)}, before {before}, {self.aspect}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, as the file has it."""
        found = asdict(self)
        for name in ESTIMATES:
            if (made := getattr(self, name)) is not None:
                found[name] = {key: getattr(made, key) for key in ("value", "low", "high", "level")}
        found["curves"] = {str(grade): asdict(each) for grade, each in self.curves.items()}
        return {"findwell": "taught-judge", "layout": LAYOUT, **found, "helps": self.helps}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file that `--judge FILE` takes."""
        target = Path(path)
        if target.suffix != ".json":
            raise SaveError(
                "a taught judge is a JSON file", where=str(target), fix="end its name in .json"
            )
        write_text(target, json.dumps(self.as_dict(), indent=1, ensure_ascii=False) + "\n")
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Teaching:
        """Read what was saved."""
        try:
            given = parse_json(Path(path).read_bytes())
            kind = (given.pop("findwell"), given.pop("layout"), given.pop("helps"))
            known = kind[:2] == ("taught-judge", LAYOUT) and not Judge(given["judge"]).is_taught
            given = given if known else {}
            for name in ESTIMATES:
                if each := given[name]:
                    given[name] = Estimate(**{"level": 0.95, **each}, method="", n=given["pairs"])
            given["curves"] = {
                int(grade): ScoreMap(each["method"], tuple(each["x"]), tuple(each["y"]))
                for grade, each in given["curves"].items()
            }
            given["examples"] = tuple(map(tuple, given["examples"]))
            return cls(**given | {"asked": tuple(given["asked"])})
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            raise InputError(
                f"this is not a taught judge of layout {LAYOUT}",
                where=str(path),
                fix="write it with findwell judge teach",
            ) from None


@takes_options()
def teach_judge(
    labels: object,
    *,
    judge: object,
    aspect: str = "relevance",
    rel: int = 1,
    level: float = 0.95,
    corpus: object = None,
    questions: object = None,
    examples: int = 0,
    progress: Report | None = None,
) -> Teaching:
    """Fit the probabilities and the threshold of a judge to labels, and say what that is worth.

    `labels` are those of `findwell.judges.card`, and so are the other arguments. `judge` is a name
    or a `findwell.Judge`. `Teaching.save("judge.json")` keeps it; `judge="judge.json"` uses it.
    `examples` is how many labels a language model is shown before it is asked; it then judges all
    labels twice.

    >>> labels = [
    ...     {"question": f"Where is {n}?", "chunk": f"{n} {word}.", "label": int(word == "here")}
    ...     for n in range(6)
    ...     for word in ("here", "gone")
    ... ]
    >>> taught = teach_judge(labels, judge="local:text")
    >>> taught.pairs, taught.helps
    (12, False)
    """
    from findwell.judges.find import find_judge  # noqa: PLC0415 - it imports this module

    refuse_after_fork()
    check_share("level", level)
    choose(
        "aspect with labels", aspect, [name for name, it in ASPECTS.items() if not it.judge_lists]
    )
    spec = judge.model if isinstance(judge, Judge) else judge
    if not isinstance(spec, str) or Judge(spec).is_taught:
        raise OptionError(
            f"{spec} cannot be taught: it has no name of its own to find it again",
            fix='name a judge: "local", "reranker:MODEL", or findwell.Judge(…)',
        )
    given = load_labels(labels, corpus=corpus, questions=questions)
    asked: Any = find_judge(judge)
    if examples:
        _require_single(asked, aspect)
    said = LabelledSamples.of(given, aspect).ask(asked, progress)
    kept = [(at, each) for at, each in enumerate(said) if each is not None and _is_sure(each)]
    if not kept:
        raise OptionError(
            f"the judge {asked.name} gives no probabilities, so that labels cannot teach it",
            fix="ask a language model for single verdicts (-J ask=single) on a server that reports "
            "logprobs, or teach local or a reranker",
        )
    grades = np.array([given.labels[at] for at, _ in kept])
    names = [given.queries[at] for at, _ in kept]
    scores = _log_odds(np.array([each.probability for _, each in kept], dtype=np.float64))
    own = np.array([bool(each.value) for _, each in kept])
    right = grades >= rel
    if len(set(names)) < LEAST_QUESTIONS or right.all() or not right.any():
        raise InputError(
            f"{len(set(names))} questions, {int(right.sum())} yes and {int((~right).sum())} no "
            "are too few to teach a judge",
            where=given.name,
            fix=f"label at least {LEAST_QUESTIONS} questions, with yes and no among them",
        )
    # with examples two things are tried, so each has to pass half of the level
    tested = 1 - (1 - level) / (2 if examples else 1)
    predicted, chances = _held_out(scores, right, names)
    before, brier = _kappa(own, right, names, tested), _brier(_chances(scores), right)
    curves: dict[int, ScoreMap] = {1: _fit(scores, right)} | _grade_curves(scores, grades, rel)
    (helps, gain, after), example_gain = _trial(predicted, own, right, names, tested), None
    stay: tuple[Example, ...] = ()
    if examples:
        pairs = _part(given, [at for at, _ in kept])
        choose_from = partial(_choose_examples, pairs, right, _chances(scores), examples)
        told, sure = _with_examples(asked, aspect, pairs, choose_from, right)
        shown, example_gain, agreed = _trial(told, own, right, names, tested)
        if shown:
            helps, gain, after, chances, curves = False, example_gain, agreed, sure, {}
            stay = choose_from(np.ones(len(right), dtype=bool))
    about = asked.about()
    return Teaching(
        judge=spec,
        name=asked.name,
        endpoint=str(about.get("endpoint", "")),
        ask=str(about.get("ask", "")),
        aspect=aspect,
        labels=given.name,
        pairs=len(kept),
        questions=len(set(names)),
        rel=rel,
        curves=curves,
        threshold=round(best_threshold(curves[1](scores), right), 6) if helps else None,
        before=before,
        after=after,
        gain=gain,
        brier_before=brier,
        brier_after=_brier(chances, right),
        asked=tuple(sorted({short_hash(given.questions[at]) for at, _ in kept})),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        example_gain=example_gain,
        examples=stay,
    )


def _is_sure(verdict: Judgement) -> bool:
    return verdict.value is not None and verdict.probability is not None


def _require_single(asked: Any, aspect: str) -> None:  # noqa: ANN401
    """Refuse judges that cannot be shown examples, before anything is asked."""
    way = asked.find_way(ask=True) if hasattr(asked, "examples") else ""
    prompt = asked.prompts.get(f"single-{aspect}") if way == "single" else None
    if prompt is None or prompt.answer:
        raise OptionError(
            f"the judge {asked.name} cannot be shown examples",
            fix="ask a language model for single verdicts, by yes and no: -J ask=single",
        )


def _part(given: LabelledPairs, rows: Sequence[int]) -> LabelledPairs:
    """Return some pairs of labels."""
    names = ("questions", "chunks", "labels", "queries")
    found: Any = {name: tuple(getattr(given, name)[at] for at in rows) for name in names}
    return replace(given, columns={}, **found)


def _choose_examples(
    given: LabelledPairs, right: Bools, chances: Floats, count: int, able: Bools
) -> tuple[Example, ...]:
    """Return pairs of different questions, yes and no in turn: what a judge had most wrong."""
    from findwell.judges.llm.prompts import cut_text  # noqa: PLC0415 - most judges ask no model
    from findwell.judges.llm.single import Example  # noqa: PLC0415

    order = np.argsort(-np.abs(chances - right), kind="stable")
    found: list[Example] = []
    for yes in [True, False] * ((count + 1) // 2):
        seen = {each.question for each in found}
        for at in order.tolist():
            if able[at] and right[at] == yes and given.questions[at] not in seen:
                chunk = cut_text(given.chunks[at], EXAMPLE_TOKENS)
                found.append(Example(given.questions[at], chunk, yes))
                break
    return tuple(found[:count])


def _with_examples(
    asked: Any,  # noqa: ANN401
    aspect: str,
    given: LabelledPairs,
    choose_from: Callable[[Bools], tuple[Example, ...]],
    right: Bools,
) -> tuple[Bools, Floats]:
    """Return verdict and probability of each pair by examples from other questions.

    A verdict that fails counts as wrong.
    """
    own, chances = ~right, np.where(right, 0.0, 1.0)
    for kept, out in deal_folds(given.queries):
        asked.examples = {aspect: choose_from(kept)}
        rows = np.flatnonzero(out).tolist()
        said = LabelledSamples.of(_part(given, rows), aspect).ask(asked)
        for at, each in zip(rows, said, strict=True):
            if each is not None and _is_sure(each):
                own[at], chances[at] = bool(each.value), each.probability
    asked.examples = {}
    return own, chances


def _trial(
    said: Bools, own: Bools, right: Bools, names: Sequence[str], level: float
) -> tuple[bool, Estimate, Estimate]:
    """Tell whether verdicts are shown to be better than the judge's own; the gain, and their κ.

    The gain has to be more than chance at the level, by its interval and by its test, and what it
    leads to, too.
    """
    gain = kappa_difference(said, own, right, clusters=names, level=level)
    after = _kappa(said, right, names, level)
    better = gain.low is not None and gain.low > 0 and (gain.p_value or 0.0) <= 1 - level
    return better and after.low is not None and after.low > 0, gain.estimate, after


def _brier(chances: Floats, right: Bools) -> float:
    return float(np.mean((chances - right) ** 2))


def _log_odds(chance: Floats) -> Floats:
    inside = np.clip(chance, CLIPPED, 1 - CLIPPED)
    return np.asarray(np.log(inside / (1 - inside)), dtype=np.float64)


def _chances(log_odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-log_odds)), dtype=np.float64)


def _fit(scores: Floats, right: Bools) -> ScoreMap:
    return (isotonic if len(right) >= MANY_LABELS else platt)(scores, right)


def _held_out(scores: Floats, right: Bools, names: Sequence[str]) -> tuple[Bools, Floats]:
    """Return verdict and probability of each pair by what the labels of other questions teach."""
    predicted, chances = np.zeros(len(right), dtype=bool), np.zeros(len(right))
    for kept, out in deal_folds(names):
        curve = _fit(scores[kept], right[kept])
        chances[out] = curve(scores[out])
        predicted[out] = chances[out] >= best_threshold(curve(scores[kept]), right[kept])
    return predicted, chances


def _kappa(said: Bools, right: Bools, names: Sequence[str], level: float) -> Estimate:
    yes, true = (each.astype(int).tolist() for each in (said, right))
    return kappa(yes, true, level=level, clusters=names).estimate


def _grade_curves(scores: Floats, grades: Any, rel: int) -> dict[int, ScoreMap]:  # noqa: ANN401
    """Return a curve for each grade above a yes, where labels are enough."""
    found = {}
    for grade in range(rel + 1, 4):
        above = grades >= grade
        if min(above.sum(), (~above).sum()) >= LEAST_GRADES:
            found[grade] = _fit(scores, above)
    return found


class TaughtJudge:
    """A judge whose probabilities and verdicts about one aspect follow labels."""

    def __init__(self, inner: JudgeProtocol, teaching: Teaching) -> None:
        if inner.name != teaching.name:
            raise OptionError(
                f"the labels taught {teaching.name}, and this is {inner.name}",
                fix="teach it again: findwell judge teach",
            )
        self.inner, self.teaching = inner, teaching
        if teaching.examples:
            from findwell.judges.llm.single import Example  # noqa: PLC0415

            examples = [*map(Example._make, teaching.examples)]
            cast("Any", inner).examples = {teaching.aspect: examples}
        self.name = f"taught({inner.name})"
        self.fitted_on = frozenset(teaching.asked)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Hand on what only some judges have: budget, settings, dry_run, way."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of the judge, those about its aspect as it was taught."""
        aspect = self.teaching.aspect
        judged = self.inner.judge(samples, aspects, progress)
        return [
            replace(each, verdicts={**each.verdicts, aspect: self._corrected(each[aspect])})
            if aspect in each.verdicts
            else each
            for each in judged
        ]

    def _corrected(self, verdicts: AspectVerdicts) -> AspectVerdicts:
        rows = tuple(tuple(map(self._corrected_one, row)) for row in verdicts.rows)
        return replace(verdicts, rows=rows)

    def _corrected_one(self, verdict: Judgement) -> Judgement:
        taught = self.teaching
        if verdict.value is None or verdict.probability is None or not taught.curves:
            return verdict
        score = _log_odds(np.array([verdict.probability]))
        chance = {grade: float(curve(score)[0]) for grade, curve in taught.curves.items()}
        yes = verdict.value > 0 if taught.threshold is None else chance[1] >= taught.threshold
        higher = [grade for grade in chance if grade > 1]
        learnt = 1 + sum(chance[each] >= 1 / 2 for each in higher)
        grade = learnt if higher else max(verdict.value, 1)  # not learnt: the judge's stay
        reason = f"{verdict.reason}; by labels {chance[1]:.2f}".removeprefix("; ")
        return replace(verdict, value=grade if yes else 0, probability=chance[1], reason=reason)

    def about(self) -> dict[str, Any]:
        """Return what the manifest says: the judge, and what it was taught."""
        taught = self.teaching
        described, held_out = taught.as_dict(), taught.after if taught.helps else taught.before
        kept = {name: described[name] for name in CITED}
        return {
            **self.inner.about(),
            "judge": self.name,
            "calibrated": bool(taught.curves),
            "taught": short_hash(json.dumps(described, sort_keys=True)),
            "recalibrated": {**kept, "kappa_held_out": held_out.value},
            "taught_by": taught.cite(),
        }

    def findings(self) -> tuple[Finding, ...]:
        """Return those of the judge, except that it is not calibrated."""
        found: Sequence[Finding] = getattr(self.inner, "findings", tuple)()
        return tuple(each for each in found if each.kind != "uncalibrated-judge")
