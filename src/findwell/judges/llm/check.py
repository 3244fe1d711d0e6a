"""How a model is asked best, found out with findwell's own labelled cases.

The cases are judged as a matrix and by single verdicts. The matrix, which takes fewer calls, is
recommended if it hardly ever fails and is not clearly worse. A way that agrees with the labels no
better than chance is never recommended. Where a model gives probabilities, the cases also say from
which one on a yes is a yes, if that holds on cases that did not choose it. The embedded judge is
given the same cases, so that it is known which aspects are better left to it. The result is kept
next to the cache of answers, by server, model and prompts.
"""

from __future__ import annotations

import functools
import hashlib
import json
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from findwell.core.errors import JudgeError, OptionError, SaveError, choose, takes_options
from findwell.core.forks import refuse_after_fork
from findwell.core.progress import Progress
from findwell.io.storage.database import cache_folder
from findwell.io.storage.files import make_folder, write_text
from findwell.judges.client.protocol import Reason, parse_json
from findwell.judges.client.providers import OUTPUT_MODES
from findwell.judges.limits import CHANCE
from findwell.judges.llm.judge import LLMJudge, total
from findwell.judges.settings import WAYS, Judge
from findwell.judges.verdicts import Judged, Sample
from findwell.statistics.agreement import kappa
from findwell.statistics.calibration import best_threshold, deal_folds

if TYPE_CHECKING:
    from findwell.core.progress import Report
    from findwell.judges.client.budget import Forecast
    from findwell.judges.verdicts import Judgement
    from findwell.statistics.agreement import Kappa

LAYOUT = 1
FOLDER = "judge-checks"
TOLERATED_FAILURES = 0.05  # of the verdicts may fail
TOLERATED_LOSS = 0.05  # by which the share of right verdicts may be below the best
LEVEL = 0.95  # of the interval of κ
CHECK_ATTEMPTS = 2  # at a call or a verdict: what fails more often fails
FIRST_CASES = 3  # cases: a way that fails in all of them is given up
# failures that say nothing about the model
OTHER_REASONS = frozenset(
    {
        *(Reason.BUDGET, Reason.STOPPED, Reason.UNREACHABLE),
        *(Reason.CONNECTION, Reason.SERVER, Reason.BUSY),
    }
)
CASES_FILE = "cases.toml"
CHECKED_ASPECTS = frozenset({"relevance", "claims"})  # the aspects that the cases are about


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """A sample, and what is right about it: grades of chunks, and claims that chunks support."""

    sample: Sample
    relevance: tuple[int, ...]
    claims: tuple[tuple[int, ...], ...]

    def labelled(self, judged: Judged) -> Iterator[LabelledVerdict]:
        """Yield each verdict with what is right, as yes and no; a verdict may be missing."""
        labels = {"relevance": (self.relevance,), "claims": self.claims}
        for aspect, rows in labels.items():
            given = judged[aspect].rows
            for number, row in enumerate(rows):
                said = given[number] if number < len(given) else ()
                for verdict, right in zip(said or [None] * len(row), row, strict=True):
                    yield LabelledVerdict(self.sample.query, aspect, verdict, int(right > 0))


class LabelledVerdict(NamedTuple):
    """A verdict about a case, None if it is missing, and what is right."""

    case: str
    aspect: str
    verdict: Judgement | None
    right: int

    @property
    def said(self) -> int | None:
        """Yes or no; None if the verdict failed."""
        value = None if self.verdict is None else self.verdict.value
        return None if value is None else int(value > 0)


@functools.cache
def load_cases() -> tuple[Sequence[LabelledCase], str]:
    """Return the cases, and the hash of their file."""
    content = (files("findwell.judges.llm") / CASES_FILE).read_bytes()
    given = tomllib.loads(content.decode())["case"]
    cases = []
    for case in given:
        chunks, items = tuple(case["chunks"]), {"claims": tuple(case["claims"])}
        reference = " ".join(case["claims"])
        sample = Sample(case["name"], case["question"], chunks, reference, items)
        support = tuple(
            tuple(int(number in found) for number in range(1, len(chunks) + 1))
            for found in case["claims"].values()
        )
        cases.append(LabelledCase(sample, tuple(case["relevance"]), support))
    return cases, hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class AspectCheck:
    """How far the verdicts about one aspect agree with the labels."""

    aspect: str
    verdicts: int
    failed: int
    kappa: float | None
    kappa_low: float | None = None
    kappa_high: float | None = None
    cutoff: float | None = None  # of the probability of a yes, where another than 0.5 is better
    kappa_held_out: float | None = None  # of each case with the cutoff that the others choose
    kappa_local: float | None = None  # of the embedded judge, on the same cases

    @property
    def is_worth_asking(self) -> bool:
        """Whether the model is better than chance, and not worse than the embedded judge."""
        best = max(
            (each for each in (self.kappa, self.kappa_held_out) if each is not None), default=0
        )
        chance = self.kappa_held_out is None and (self.kappa_low or 0.0) <= 0
        return not chance and best >= (self.kappa_local or 0.0)


@dataclass(frozen=True, slots=True)
class WayCheck:
    """How one way of asking went."""

    way: str
    verdicts: int  # that were asked for, each with a label
    failed: int
    right: int
    kappa: float | None  # of the verdicts that were given; None if it is undefined
    reasons: Mapping[str, int]  # of the failures
    calls: int  # that were sent now; those answered before are in the cache
    asked_again: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float  # in all
    given_up: bool = False  # after the first cases, in which nothing succeeded
    kappa_low: float | None = None  # 95% interval of κ; None where all verdicts are the same
    kappa_high: float | None = None
    aspects: tuple[AspectCheck, ...] = ()

    @property
    def cutoffs(self) -> dict[str, float]:
        """The probability from which a yes is a yes, by aspect, where it is not one half."""
        return {each.aspect: each.cutoff for each in self.aspects if each.cutoff is not None}

    @property
    def seconds_a_call(self) -> float | None:
        """How long one call took, with as many at a time as were sent; None if none was sent."""
        return self.seconds / self.calls if self.calls else None

    @property
    def failed_share(self) -> float:
        """The share of verdicts that failed."""
        return self.failed / self.verdicts

    @property
    def right_share(self) -> float:
        """The share of all verdicts that are right; one that failed is not."""
        return self.right / self.verdicts

    @property
    def is_chance(self) -> bool:
        """Whether the verdicts agree with the labels no better than chance may, as cut."""
        by_chance = self.kappa is not None and (self.kappa_low is None or self.kappa_low <= 0)
        return by_chance and not self.cutoffs


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """What a server and its model can do, and how the model is asked best."""

    judge: str
    endpoint: str
    recommended: str  # '' if every way is chance
    ways: tuple[WayCheck, ...]
    output: str  # the structured output that the server accepts: json_schema, json_object or none
    logprobs: bool  # whether the server reports how likely each word was
    longest: int  # tokens of the longest complete answer
    left_out: tuple[str, ...]  # fields of calls that the server does not accept
    cases: str  # the hash of the cases
    created: str = ""
    stored: bool = False  # it was made before

    def __iter__(self) -> Iterator[WayCheck]:
        """Go through the ways of asking that were tried."""
        return iter(self.ways)

    def __getitem__(self, way: str) -> WayCheck:
        """Return how one way of asking went."""
        found = {each.way: each for each in self.ways}
        return found[choose("way to ask", way, found)]

    def as_dict(self) -> dict[str, Any]:
        """Return the check as plain data, as the JSON output prints it."""
        shown = {"findwell": "judge-check", "layout": LAYOUT, **asdict(self)}
        return {name: value for name, value in shown.items() if name != "stored"}

    @property
    def left_to_local(self) -> tuple[str, ...]:
        """The aspects that the embedded judge decides at least as well as the model."""
        if not self.recommended:
            return ()
        return tuple(
            each.aspect for each in self[self.recommended].aspects if not each.is_worth_asking
        )

    def in_words(self) -> str:
        """Say in one line what is recommended, and why."""
        why = "; ".join(
            f"{each.way}: {each.right_share:.0%} right, {each.failed_share:.0%} failed"
            for each in self.ways
        )
        left = f"; leave {' and '.join(self.left_to_local)} to local" if self.left_to_local else ""
        return f"{f'-J ask={self.recommended}' if self.recommended else CHANCE} ({why}){left}"


@takes_options()
def judge_check(judge: str | Judge, *, progress: Report | None = None) -> JudgeCheck:
    """Find out with labelled cases how a model is asked best: as a matrix or by single verdicts.

    What was found is kept by server and model, and judges go by it unless `ask` names a way; a
    judge with `cache="refresh"` is checked again. One whose `ask` names a way is only tried in this
    way, and nothing is kept.
    """
    refuse_after_fork()
    asked = LLMJudge(_settings_of(judge))
    if asked.settings.ask in WAYS:
        return run_check(asked, [asked.settings.ask], progress)
    known = None if asked.settings.cache == "refresh" else load_check(asked)
    if known is None:
        known = run_check(asked, WAYS, progress)
        save_check(asked, known)
    return known


def _settings_of(judge: str | Judge) -> Judge:
    if not isinstance(judge, str | Judge):
        raise OptionError(f"{type(judge).__name__} is not a judge", fix="name one: openai:MODEL")
    settings = Judge(judge) if isinstance(judge, str) else judge
    if not settings.asks_model:
        what = f"the judge {settings.model} asks no model"
        raise OptionError(what, fix="name one that does, such as openai:MODEL")
    return replace(settings, batch=False)  # which would take a day


def forecast_check(judge: str | Judge) -> Forecast:
    """Estimate what a check would take, without asking; what is in the cache is free."""
    settings = _settings_of(judge)
    samples = [case.sample for case in load_cases()[0]]
    ways = [settings.ask] if settings.ask in WAYS else WAYS
    tried = [LLMJudge(replace(settings, ask=way)) for way in ways]
    seen: set[bytes] = set()
    return total([each.dry_run(samples, CHECKED_ASPECTS, seen=seen) for each in tried])


def find_check(judge: LLMJudge, *, ask: bool) -> JudgeCheck | None:
    """Return the check of a judge, a new one if there is none and the model may be asked."""
    found = None if ask and judge.settings.cache == "refresh" else load_check(judge)
    if found is None and ask:
        before, budget = judge.budget.cost or 0.0, judge.budget
        found = run_check(judge)
        if judge.settings.batch and budget.cost is not None:  # at the price of single calls
            budget.surcharge += budget.cost - before
        save_check(judge, found)
    return found


def kept_way(settings: Judge) -> str:
    """Return the way in which a model is asked with these settings, without checking it now."""
    return LLMJudge(settings).find_way(ask=False)


def run_check(
    judge: LLMJudge, ways: Sequence[str] = WAYS, progress: Report | None = None
) -> JudgeCheck:
    """Let a model judge the cases in several ways."""
    cases, sha256 = load_cases()
    retry = judge.retry
    settings = replace(
        judge.settings,
        cache=judge.cache,
        budget=judge.budget,
        retry=replace(retry, attempts=min(retry.attempts, CHECK_ATTEMPTS)),
        attempts=min(judge.settings.attempts, CHECK_ATTEMPTS),
        max_failures=1.0,
        decompose=False,
        batch=False,
    )
    done: list[WayCheck] = []
    longest, logprobs = 0, False
    for way in ways:
        asked = LLMJudge(replace(settings, ask=way), endpoint=judge.endpoint, probe=True)
        checked = _check_way(asked, cases, progress or (lambda _: None), len(done), len(ways))
        if checked is None:
            raise JudgeError(
                "the check did not finish: a limit was reached, or the server is gone",
                where=judge.endpoint.identity,
                fix="allow more calls, or start the server again; what was answered is in the "
                "cache. Or name a way to ask: -J ask=matrix or -J ask=single",
            )
        done.append(checked)
        longest = max(longest, asked.stats.longest)
        logprobs = logprobs or bool(asked.stats.single[True])
    support = judge.endpoint.support
    return JudgeCheck(
        judge=judge.name,
        endpoint=judge.endpoint.identity,
        recommended=recommend(done),
        ways=tuple(sorted(done, key=lambda each: WAYS.index(each.way))),
        output=next((mode for mode in OUTPUT_MODES if mode in support.modes), "none"),
        logprobs=logprobs,
        longest=longest,
        left_out=tuple(sorted(support.format.left_out)),
        cases=sha256,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _check_way(
    judge: LLMJudge, cases: Sequence[LabelledCase], progress: Report, before: int, ways: int
) -> WayCheck | None:
    """Judge the cases in the way that a judge is asked; None if it did not finish.

    `before` is the number of ways that were tried before, of all `ways`.
    """

    def ask(first: int, last: int | None) -> list[Judged]:
        def report(step: Progress) -> None:
            done, total = before * len(cases) + first + step.done, ways * len(cases)
            progress(Progress(done, total, f"{judge.way} {step.note}".strip()))

        return judge.judge([case.sample for case in cases[first:last]], CHECKED_ASPECTS, report)

    calls, spent, start = judge.budget.calls, judge.budget.spent, time.monotonic()
    judged = ask(0, FIRST_CASES)
    given_up = all(each.said is None for each in _pairs(cases[:FIRST_CASES], judged))
    left = len(cases) - len(judged)
    judged += [Judged()] * left if given_up else ask(FIRST_CASES, None)
    seconds = time.monotonic() - start
    reasons = judge.stats.failed
    if OTHER_REASONS & reasons.keys():
        return None
    pairs = _pairs(cases, judged)
    agreed = _agreement(pairs)
    now = judge.budget.spent
    return WayCheck(
        way=judge.way,
        verdicts=len(pairs),
        failed=sum(each.said is None for each in pairs),
        right=sum(each.said == each.right for each in pairs),
        kappa=agreed.value,
        reasons=dict(sorted(reasons.items())),
        calls=judge.budget.calls - calls,
        asked_again=judge.stats.asked_again,
        prompt_tokens=now.prompt - spent.prompt,
        completion_tokens=now.completion - spent.completion,
        seconds=round(seconds, 2),
        given_up=given_up,
        kappa_low=agreed.low,
        kappa_high=agreed.high,
        aspects=tuple(
            _check_aspect([each for each in pairs if each.aspect == aspect])
            for aspect in dict.fromkeys(each.aspect for each in pairs)
        ),
    )


def _pairs(cases: Sequence[LabelledCase], judged: Sequence[Judged]) -> list[LabelledVerdict]:
    found = zip(cases, judged, strict=True)
    return [each for case, one in found for each in case.labelled(one)]


def _agreement(pairs: Sequence[LabelledVerdict]) -> Kappa:
    said, right = [each.said for each in pairs], [each.right for each in pairs]
    return kappa(said, right, level=LEVEL, clusters=[each.case for each in pairs])


def _check_aspect(pairs: Sequence[LabelledVerdict]) -> AspectCheck:
    """Measure one aspect, and find the cutoff of its probabilities, case by case held out."""
    agreed, aspect = _agreement(pairs), pairs[0].aspect
    counts = len(pairs), sum(each.said is None for each in pairs)
    local = _local_kappas().get(aspect)
    limits = agreed.low, agreed.high
    made = AspectCheck(aspect, *counts, agreed.value, *limits, kappa_local=local)
    known = [each for each in pairs if each.verdict and each.verdict.probability is not None]
    if len(known) < len(pairs):
        return made
    chance = np.array([each.verdict.probability for each in known if each.verdict])
    right = np.array([each.right for each in known])
    cases = [each.case for each in known]
    held_out = np.zeros(len(known), dtype=bool)
    for kept, out in deal_folds(cases, folds=len(set(cases))):
        held_out[out] = chance[out] >= best_threshold(chance[kept], right[kept])
    found = kappa(held_out.astype(int).tolist(), right.tolist()).value
    if found is None or found <= (agreed.value or 0.0):
        return made
    return replace(made, cutoff=round(best_threshold(chance, right), 3), kappa_held_out=found)


@functools.cache
def _local_kappas() -> Mapping[str, float | None]:
    """Return κ of the embedded judge on the cases, by aspect; none where it is not installed."""
    from findwell.judges.find import find_judge  # noqa: PLC0415 - it may import this module

    cases, _ = load_cases()
    try:
        judged = find_judge("local").judge([case.sample for case in cases], CHECKED_ASPECTS)
    except OptionError:
        return {}
    pairs = _pairs(cases, judged)
    return {
        aspect: _agreement([each for each in pairs if each.aspect == aspect]).value
        for aspect in CHECKED_ASPECTS
    }


def recommend(ways: Sequence[WayCheck]) -> str:
    """Choose the way: the one with the fewest calls that hardly fails and is about as right.

    '' if every way is chance, or fails always.

    >>> def made(way, failed, right):
    ...     return WayCheck(way, 100, failed, right, None, {}, 0, 0, 0, 0, 0.0)
    >>> recommend([made("matrix", 1, 85), made("single", 0, 88)])
    'matrix'
    >>> recommend([made("matrix", 34, 50), made("single", 0, 80)])
    'single'
    """
    able = (each for each in ways if each.failed < each.verdicts and not each.is_chance)
    ordered = sorted(able, key=lambda each: WAYS.index(each.way))
    if not ordered:
        return ""
    sound = [each for each in ordered if each.failed_share <= TOLERATED_FAILURES]
    if not sound:
        return min(ordered, key=lambda each: (each.failed, -each.right)).way
    best = max(each.right_share for each in sound)
    return next(each.way for each in sound if each.right_share >= best - TOLERATED_LOSS)


def _place(judge: LLMJudge) -> Path | None:
    """Return where the check of a judge is kept; None if its cache is in memory only."""
    cache = judge.settings.cache
    if isinstance(cache, str):
        folder = cache_folder()
    elif cache.path is None:
        return None
    else:
        folder = cache.path.parent
    parts = [
        LAYOUT,
        judge.endpoint.identity,
        judge.endpoint.model,
        load_cases()[1],
        sorted((name, prompt.sha256) for name, prompt in judge.prompts.items()),
        sorted({**(judge.settings.extra_body or {}), **(judge.settings.options or {})}.items()),
    ]
    hashed = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return folder / FOLDER / f"{hashed[:24]}.json"


def load_check(judge: LLMJudge) -> JudgeCheck | None:
    """Return the check that was kept; one that cannot be read is made again."""
    place = _place(judge)
    if place is None:
        return None
    try:
        given = parse_json(place.read_bytes())
        known = {each.name: given[each.name] for each in fields(JudgeCheck) if each.name in given}
        known["ways"] = tuple(
            WayCheck(**{**way, "aspects": tuple(AspectCheck(**each) for each in way["aspects"])})
            for way in given["ways"]
        )
        found = JudgeCheck(**known | {"left_out": tuple(given["left_out"]), "stored": True})
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return found if found.recommended in (*WAYS, "") else None


def save_check(judge: LLMJudge, check: JudgeCheck) -> None:
    """Keep a check, if possible: it can be made again."""
    place = _place(judge)
    if place is None or judge.settings.cache == "off":
        return
    try:
        make_folder(place.parent)
        write_text(place, json.dumps(check.as_dict(), indent=1) + "\n", private=True)
    except (OSError, SaveError) as error:
        judge.stats.note("unsaved-answer", str(error))
