"""How a model is asked best, found out with findwell's own labelled cases.

The cases are judged as a matrix and by single verdicts. The matrix, which takes fewer calls, is
recommended if it hardly ever fails and is not clearly worse. A way that agrees with the labels no
better than chance is never recommended. The result is kept next to the cache of answers, by server,
model and prompts.
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
from typing import TYPE_CHECKING, Any

from findwell.core.errors import JudgeError, OptionError, SaveError, choose
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

if TYPE_CHECKING:
    from findwell.core.progress import Report
    from findwell.judges.client.budget import Forecast

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

    def pairs(self, judged: Judged) -> list[tuple[int | None, int]]:
        """Return what a judge said and what is right, as yes and no; None where it said nothing."""
        labels = {"relevance": (self.relevance,), "claims": self.claims}
        found: list[tuple[int | None, int]] = []
        for aspect, rows in labels.items():
            given = judged[aspect].rows
            for number, row in enumerate(rows):
                said = given[number] if number < len(given) else ()
                values = [verdict.value for verdict in said] or [None] * len(row)
                found += [
                    (None if value is None else int(value > 0), int(right > 0))
                    for value, right in zip(values, row, strict=True)
                ]
        return found


@functools.cache
def load_cases() -> tuple[Sequence[LabelledCase], str]:
    """Return the cases, and the hash of their file."""
    content = (files("findwell.judges.llm") / CASES_FILE).read_bytes()
    given = tomllib.loads(content.decode())["case"]
    cases = []
    for case in given:
        chunks = tuple(case["chunks"])
        sample = Sample(
            case["name"],
            case["question"],
            chunks,
            " ".join(case["claims"]),
            {"claims": tuple(case["claims"])},
        )
        support = tuple(
            tuple(int(number in found) for number in range(1, len(chunks) + 1))
            for found in case["claims"].values()
        )
        cases.append(LabelledCase(sample, tuple(case["relevance"]), support))
    return cases, hashlib.sha256(content).hexdigest()


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
        """Whether the verdicts agree with the labels no better than chance may."""
        return self.kappa is not None and (self.kappa_low is None or self.kappa_low <= 0)


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

    def in_words(self) -> str:
        """Say in one line what is recommended, and why."""
        why = "; ".join(
            f"{each.way}: {each.right_share:.0%} right, {each.failed_share:.0%} failed"
            for each in self.ways
        )
        return f"{f'-J ask={self.recommended}' if self.recommended else CHANCE} ({why})"


def judge_check(
    judge: str | Judge, *, ways: Sequence[str] | None = None, progress: Report | None = None
) -> JudgeCheck:
    """Find out with labelled cases how a model is asked best: as a matrix or by single verdicts.

    What was found is kept by server and model, and judges go by it unless `ask` names a way; a
    judge with `cache="refresh"` is checked again. `ways` are those to try; by default both.
    """
    refuse_after_fork()
    asked = LLMJudge(_settings_of(judge, ways))
    if ways:
        return run_check(asked, ways, progress)
    known = None if asked.settings.cache == "refresh" else load_check(asked)
    if known is None:
        known = run_check(asked, WAYS, progress)
        save_check(asked, known)
    return known


def _settings_of(judge: str | Judge, ways: Sequence[str] | None) -> Judge:
    if not isinstance(judge, str | Judge):
        raise OptionError(f"{type(judge).__name__} is not a judge", fix="name one: openai:MODEL")
    settings = Judge(judge) if isinstance(judge, str) else judge
    if not settings.asks_model:
        raise OptionError(f"the judge {settings.model} asks no model", fix="name openai:MODEL")
    for way in ways or ():
        choose("way to ask", way, WAYS)
    return replace(settings, batch=False)  # which would take a day


def forecast_check(judge: str | Judge, ways: Sequence[str] | None = None) -> Forecast:
    """Estimate what a check would take, without asking; what is in the cache is free."""
    settings = _settings_of(judge, ways)
    samples = [case.sample for case in load_cases()[0]]
    tried = [LLMJudge(replace(settings, ask=way)) for way in ways or WAYS]
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
    given_up = all(
        said is None
        for case, one in zip(cases, judged, strict=False)
        for said, _ in case.pairs(one)
    )
    if given_up:
        judged += [Judged()] * (len(cases) - len(judged))
    else:
        judged += ask(FIRST_CASES, None)
    seconds = time.monotonic() - start
    reasons = judge.stats.failed
    if OTHER_REASONS & reasons.keys():
        return None
    pairs = [pair for case, one in zip(cases, judged, strict=True) for pair in case.pairs(one)]
    said, right = [one for one, _ in pairs], [other for _, other in pairs]
    names = [case.sample.query for case in cases for _ in case.pairs(Judged())]
    agreed = kappa(said, right, level=LEVEL, clusters=names)
    now = judge.budget.spent
    return WayCheck(
        way=judge.way,
        verdicts=len(pairs),
        failed=said.count(None),
        right=sum(one == other for one, other in pairs),
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
    )


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
        known["ways"] = tuple(WayCheck(**way) for way in given["ways"])
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
