"""`findwell monitor check`: are the signals of production as they were?

Every alert is a bet against "nothing has changed", for every slice that it names. What is bet on
are periods of time, an hour or more, not single calls, which depend on each other
(`findwell.loop.monitoring.detectors`). The evidence stays valid however often it is looked at, so
that a check may run every minute. All alerts and slices of a check are one family (e-BH). What is
promised of the whole family, while nothing changes and periods do not depend on those before them:

- by default, the probability of ever raising an alarm is at most α, from the time when watching
  began or the last alarm was resolved. Half of α is for the limits of a saved result, where one is
  the baseline; the baseline of calls is a part of the test;
- with `run_length` A, it takes A periods or more on average until an alarm is raised.

State is kept in the catalogue of the store. An alarm is raised once and stays open, whatever comes,
until bets on the calls after it show that the signal is back: closer to where it should be than to
where it was during the alarm. Then it is resolved, and watching starts again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import exp, isfinite, log
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from findwell.core.errors import InputError, OptionError, check_share, choose, takes_options
from findwell.core.estimate import Estimate
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.io.read.traces.schema import RETRIEVER
from findwell.loop.monitoring.alarm_report import (
    ALARM,
    QUIET,
    RAISED_STATES,
    RESOLVED,
    STATE,
    STILL_OPEN,
    UNDECIDED,
    AlarmVerdict,
    CheckReport,
    WatchedCall,
)
from findwell.loop.monitoring.alerts import Alert, Baseline, find_baseline, parse_alert
from findwell.loop.monitoring.call_values import CallQuery, CallValues, SignalOptions
from findwell.loop.monitoring.detectors import (
    ALL_TIMES,
    AT_THE_END,
    RUN_LENGTH,
    SEASONS,
    SINGLE_CALLS,
    Bound,
    BoundedSignal,
    against_calls,
    against_result,
    at_line,
    bound_of,
    period_in_words,
)
from findwell.loop.monitoring.store import TraceStore
from findwell.loop.monitoring.time_buckets import buckets
from findwell.loop.monitoring.times import (
    MICROSECOND,
    bucket_length,
    fitting_length,
    microseconds,
    parse_moment,
)
from findwell.statistics.sequential import (
    bernstein_sequence,
    change_evidence,
    change_point,
    e_bh,
    hedged_limits,
)
from findwell.statistics.verdicts import verdict_of_change

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.loop.monitoring.detectors import CutCalls
    from findwell.loop.monitoring.monitor import Monitor
    from findwell.loop.monitoring.webhook import Webhook

OUTBOX = "webhooks"  # the name of messages in the catalogue
SHOWN_CALLS = 5
CHEAP_LIMIT_PERIODS = 100_000  # periods from which on limits are those that cost little
MOST_SLICES = 50  # values of one column that are watched; those with most calls
FORGOTTEN_AFTER = timedelta(days=30)  # how long an alert is remembered that is not checked
SETTLE = timedelta(minutes=10)  # calls that arrive later than this after a period are late
RECOVERY = 0.05  # probability of calling an alarm over that still goes on
LOOKING_BACK = ("unseen",)  # signals that are higher, the fewer calls before are known
PAST_ALARMS = 20  # of one alert and slice that are remembered
DELETED_BASELINE = (
    "calls of the baseline were deleted, so old documents would look new: use --rebaseline"
)
NO_CALLS = "there are no calls to look at"
NO_VALUES = "no call has a value"
TOO_FEW = "too few periods: even the worst values could not raise it yet"


@takes_options(SignalOptions)
def check(
    monitor: Monitor | TraceStore,
    alerts: Iterable[str | Alert] | str,
    *,
    baseline: str | None = None,
    alpha: float = 0.05,
    run_length: int | None = None,
    rebaseline: bool = False,
    remember: bool = True,
    webhook: Webhook | None = None,
    period: str | None = None,
    season: str | None = None,
    settle: timedelta | str = SETTLE,
    **options: Unpack[SignalOptions],
) -> CheckReport:
    """Tell whether signals have changed, with alarms that you can check as often as you like.

    `alerts` are such as `"empty>2%"`, `"p95>800ms"` or `"context_relevancy drops by service"`.
    `baseline` is what those without a number compare with: `last-week`, `before:MARK`, a period, a
    number, or the folder of a saved result. It is found once and kept with the store. Calls are
    watched from its end on, or from `since`, up to `until` (now). `alpha` is the probability that
    an alarm is ever raised while nothing changes; with `run_length`, one comes after that many
    periods or more, on average. Calls of one `period` (such as `1h`) are one observation; by
    default the baseline shows how long it has to be, and `call` takes single calls for
    independent. `season` compares with the same hour of the `day` or the `week`. A period is
    looked at when it has been over for `settle`.

    State is kept in the store: an alarm is raised once and stays open until the signal is back;
    `rebaseline` forgets the baseline and open alarms, and without `remember` nothing is saved.
    Messages for `webhook` are saved in the same step; its `deliver(monitor.store)` sends them. The
    options are those of `Monitor.values`; alerts name their slices themselves.
    The page "Alarms" says what is promised.
    """
    refuse_after_fork()
    store = monitor if isinstance(monitor, TraceStore) else monitor.store
    query = CallQuery.of(store, (), options)
    if query.by:
        raise OptionError("an alert names its slices", fix='write "empty>2% by service"')
    check_share("error rate", alpha)
    if run_length is not None and run_length < 2:
        raise OptionError(
            f"the run length is {run_length}", fix="give a number of calls, from 2 up"
        )
    if webhook is not None and not remember:
        raise OptionError(
            "a webhook needs alarms that are remembered, and this check remembers nothing",
            fix="leave out remember=False, or the webhook",
        )
    asked = _alerts(alerts)
    now = query.until or datetime.now(UTC)
    saved: dict[str, Any] = {} if rebaseline else store.state(STATE) or {}
    found = _baseline(store, asked, baseline, now, saved)
    window = None if found is None else found.window
    begin = window[1] if query.since is None and window is not None else query.since
    if window is not None and begin is not None and begin < window[1]:
        raise InputError(
            f"the checked period begins at {begin.isoformat()}, inside the baseline",
            fix="begin after the baseline ends, or choose an earlier baseline",
        )
    if isinstance(settle, str):
        settle = timedelta() if settle == "0" else bucket_length(settle)
    if found is not None and found.number is not None:
        asked = [_of_number(each) for each in asked]
    length = None
    if period is not None:
        length = SINGLE_CALLS if period == "call" else bucket_length(period) // MICROSECOND
    watch = Watch(
        store,
        list({each.text: each for each in asked}.values()),
        found,
        replace(query, since=begin, until=now, progress=None),
        saved,
        alpha,
        length,
        "" if season is None else choose("season", season, SEASONS),
        microseconds(now - settle),
    )
    tests, notes = watch.slices()
    estimated = found is not None and found.result is not None
    promise = Promise(alpha / 2 if estimated else alpha, run_length, len(tests))
    decided = _with_questions(store, _decide(tests, promise, now))
    report = CheckReport(
        verdicts=tuple(decided),
        checked=now,
        since=begin,
        baseline=watch.compared_with,
        window=window,
        alpha=alpha,
        run_length=run_length,
        notes=tuple(notes),
    )
    if not remember:
        return report
    # one step: after a crash either both are there, the alarm and the message about it, or neither
    with store.changing_states(STATE, *([] if webhook is None else [OUTBOX])) as (state, *outbox):
        verdicts = watch.remember(state, tests, decided, fresh=rebaseline)
        report = replace(report, verdicts=tuple(verdicts))
        if webhook is not None:
            webhook.enqueue(outbox[0], report)
    return report


def _alerts(alerts: Iterable[str | Alert] | str) -> list[Alert]:
    listed = [alerts] if isinstance(alerts, str | Alert) else list(alerts)
    if not listed:
        raise OptionError("there is no alert to check", fix='add one, such as --alert "empty>2%"')
    return [each if isinstance(each, Alert) else parse_alert(each) for each in listed]


def _baseline(
    store: TraceStore,
    alerts: Iterable[Alert],
    text: str | None,
    now: datetime,
    saved: dict[str, Any],
) -> Baseline | None:
    """Return the baseline as it was found the first time."""
    if text is None:
        needing = [each.text for each in alerts if each.needs_baseline]
        if needing:
            raise OptionError(
                f"{needing[0]!r} needs a baseline", fix="add --baseline last-week (baseline=)"
            )
        return None
    kept = saved.get("baselines", {}).get(text.strip())
    if kept is not None:
        since, until = map(parse_moment, kept)
        return Baseline(text.strip(), window=(since, until))
    found = find_baseline(text, now, store.marks())
    if found.window is not None and found.window[1] > now:
        raise OptionError(
            f"the baseline {text!r} lasts until {found.window[1]:%Y-%m-%d %H:%M} UTC",
            fix="name a period that has ended; the calls after it are checked",
        )
    return found


def _of_number(alert: Alert) -> Alert:
    """Return an alert that compares with a number: nothing bounds the mean of some signals."""
    bounded = isfinite(alert.about.bounds[1])
    return alert if bounded or alert.quantile is not None else replace(alert, quantile=0.5)


@dataclass(frozen=True)
class Watch:
    """What is watched: alerts on the calls of a time, compared with a baseline."""

    store: TraceStore
    alerts: list[Alert]
    baseline: Baseline | None
    query: CallQuery  # which calls are watched
    saved: dict[str, Any]  # the states of earlier checks
    alpha: float
    length: int | None = None  # of a period, in microseconds; None: as the baseline shows
    season: str = ""
    until: int | None = None  # periods that end later may still get calls

    @property
    def compared_with(self) -> str:
        """The baseline as it was written; empty: none."""
        return "" if self.baseline is None else self.baseline.text

    def slices(self) -> tuple[list[WatchedSlice], list[str]]:
        """Return a test for each alert and slice, and what a user should know about them."""
        parts, notes = [], []
        for alert in self.alerts:
            for column in alert.by or ("",):
                chosen, left_out = self._slices_of(alert, column)
                parts += [(alert, column, value) for value in chosen]
                if left_out:
                    notes.append(
                        f"{alert.text}: {left_out} further values of {column} with fewer calls are "
                        f"not watched, only {MOST_SLICES}"
                    )
        window = None if self.baseline is None else self.baseline.window
        compared = any(reference.n for _, reference in self._values.values())
        if window is not None and not compared and any(each.needs_baseline for each in self.alerts):
            counts = self.store.counts()
            held = "is empty" if counts.first is None else f"has {counts.first:%Y-%m-%d %H:%M}"
            held += "" if counts.last is None else f" to {counts.last:%Y-%m-%d %H:%M}"
            notes.append(
                f"the store has no call in the baseline, {window[0]:%Y-%m-%d %H:%M} to "
                f"{window[1]:%Y-%m-%d %H:%M} UTC; it {held}"
            )
        error = self.alpha / 2 / max(len(parts), 1)
        return [self._slice(*part, error) for part in parts], notes

    @cached_property
    def _values(self) -> dict[tuple[str, str], tuple[CallValues, CallValues]]:
        """The calls that are watched, and those of the baseline, by signal and column to slice.

        All are read at once, except for signals that compare a call with earlier ones of its slice:
        the columns that other alerts are sliced by must make no difference to them.
        """
        wanted = [(each.about, column) for each in self.alerts for column in each.by or ("",)]
        together = dict.fromkeys(name for about, name in wanted if name and not about.history)
        groups: dict[tuple[bool, tuple[str, ...]], list[Any]] = {}
        for about, column in wanted:
            columns = tuple(filter(None, [column])) if about.history else tuple(together)
            groups.setdefault((about.history, columns), []).append((about, column))
        window = None if self.baseline is None else self.baseline.window
        found = {}
        for (_, columns), members in groups.items():
            names = list(dict.fromkeys(about.name for about, _ in members))
            query = replace(self.query, names=names, by=columns)
            watched = query.values(self.store)
            known = watched.only(np.zeros(watched.n, dtype=bool))
            if window is not None:
                known = replace(query, since=window[0], until=window[1]).values(self.store)
            for about, column in members:
                found[about.name, column] = watched.alone(about), known.alone(about)
        return found

    def _key(self, alert: Alert, name: str) -> str:
        """Return what a state is kept under; the lists of rerankers are watched by themselves."""
        key = f"{alert.text} | {name} | {self.compared_with}"
        return key if self.query.kind == RETRIEVER else f"{self.query.kind}: {key}"

    def _slices_of(self, alert: Alert, column: str) -> tuple[list[str | None], int]:
        """Return the values of a column that are watched, None for all, and how many are not.

        An alarm that is open stays among them, however few calls there are now.
        """
        if not column:
            return [None], 0
        tests = self.saved.get("tests", {})
        sliced = {each["last"]["slice"] for each in tests.values() if "open" in each}
        opened = {
            name.removeprefix(f"{column}=")
            for name in sliced
            if name.startswith(f"{column}=") and "open" in tests.get(self._key(alert, name), {})
        }
        both = [each.queries.select(column) for each in self._values[alert.signal, column]]
        counts = pl.concat(both).group_by(column).len("\0n")
        names = counts.sort(["\0n", column], descending=[True, False])[column].to_list()
        chosen = opened.union(names[:MOST_SLICES])
        return sorted(chosen) or [None], len(set(names) - chosen)

    def _slice(self, alert: Alert, column: str, value: str | None, error: float) -> WatchedSlice:
        calls, known = (each.sliced(column, value) for each in self._values[alert.signal, column])
        name = "" if value is None else f"{column}={value}"
        key = self._key(alert, name)
        state = self.saved.get("tests", {}).get(key, {})
        bets, before, reason = self._bets(alert, known.defined, error, state)
        sample = self.query.sample if alert.about.needs == "judge" else None
        judge = "" if sample is None else "; ".join(sample.worth())
        return WatchedSlice(
            key, alert, name, known, calls, bets, before, reason, state, self.until, judge
        )

    def _bets(
        self, alert: Alert, known: CallValues, error: float, state: dict[str, Any]
    ) -> tuple[BoundedSignal | None, float | None, str]:
        """Return how an alert is bet on, the value that it is compared with, or why neither is."""
        baseline = self.baseline
        if alert.line is not None:
            return at_line(alert, alert.line, self.length), alert.line, ""
        if baseline is not None and baseline.number is not None:
            alert.about.refuse_outside(baseline.number, f"the baseline is {baseline.number:g}")
            return at_line(alert, baseline.number, self.length), baseline.number, ""
        if baseline is not None and baseline.result is not None:
            values = baseline.values(alert.about)
            bets, before = against_result(alert, values, error, self.length), alert.of(values)
            return (None, before, bets) if isinstance(bets, str) else (bets, before, "")
        kept = state.get("baseline")
        # its calls were deleted since, or maybe those before it, which some signals look back at
        looks_back = alert.signal in LOOKING_BACK
        if kept and (kept["n"] > known.n or (looks_back and kept["n"] == known.n)):
            gone = looks_back and kept["n"] > known.n and "open" not in state
            saved = None if gone else BoundedSignal.from_dict(kept["bets"])
            return saved, kept["value"], DELETED_BASELINE if gone else ""
        bets = against_calls(alert, known.times, known.series, self.length, self.season)
        before = alert.of(known.series)
        if isinstance(bets, str):
            return None, before, bets
        state["baseline"] = {"n": known.n, "value": before, "bets": asdict(bets)}
        return bets, before, ""

    def remember(
        self,
        saved: dict[str, Any],
        tests: list[WatchedSlice],
        verdicts: list[AlarmVerdict],
        *,
        fresh: bool,
    ) -> list[AlarmVerdict]:
        """Change the states; what another check has changed meanwhile is not news here."""
        found = []
        every = saved.setdefault("tests", {})
        baselines = saved.setdefault("baselines", {})
        if fresh:
            for key in [key for key in every if key.endswith(f" | {self.compared_with}")]:
                del every[key]
            baselines.pop(self.compared_with, None)
        used = any(each.alert.needs_baseline and each.before is not None for each in tests)
        if self.baseline is not None and self.baseline.window is not None and used:
            baselines[self.compared_with] = [each.isoformat() for each in self.baseline.window]
        looked = datetime.now(UTC)  # whatever moment the check was about
        asked: Any = self.query.until
        last = {"checked": asked.isoformat(), "looked": looked.isoformat()}
        last |= {"baseline": self.compared_with, "kind": self.query.kind}
        for test, verdict in zip(tests, verdicts, strict=True):
            was_open = verdict.outcome in (STILL_OPEN, RESOLVED)
            if was_open != (every.get(test.key, {}).get("open") is not None):
                found.append(_of_another(verdict))  # and what the other has saved stays
                continue
            test.note_seen()
            about = verdict.as_dict()
            test.state.pop("history", None)
            if verdict.outcome in RAISED_STATES or test.alert.about.needs:
                test.state["history"] = test.history() | {"judge": [*filter(None, [verdict.judge])]}
            every[test.key] = {
                **test.state,
                "last": last | {name: about[name] for name in REMEMBERED_FIELDS},
            }
            found.append(verdict)
        old = (looked - FORGOTTEN_AFTER).isoformat()
        for key in [key for key, each in every.items() if each["last"]["looked"] < old]:
            del every[key]
        for name in [
            name for name in baselines if not any(k.endswith(f" | {name}") for k in every)
        ]:
            del baselines[name]  # not compared with for long: it is found again
        return found


HISTORY = ("time", "value", "low", "high", "n")  # columns of what the state keeps of a signal
# what the state keeps of a verdict
REMEMBERED_FIELDS = (
    *("alert", "signal", "slice", "outcome", "now", "before", "n"),
    *("log_evidence", "log_needed"),
)


def _of_another(verdict: AlarmVerdict) -> AlarmVerdict:
    """Return a verdict on what another check has raised or resolved meanwhile: it is not news."""
    if verdict.outcome == RESOLVED:
        quiet = replace(verdict, outcome=QUIET, calls=())
        return replace(quiet, since=None, opened=None, resolved=None)
    return replace(verdict, outcome=STILL_OPEN) if verdict.outcome == ALARM else verdict


@dataclass(frozen=True, slots=True, eq=False)
class WatchedSlice:
    """One alert for one slice: the calls, and how they are bet on."""

    key: str
    alert: Alert
    slice: str
    known: CallValues  # of the baseline
    calls: CallValues  # of the signal alone, in the order of time
    bets: BoundedSignal | None
    before: float | None
    reason: str
    state: dict[str, Any]
    until: int | None = None  # periods that end later are not looked at yet
    judge: str = ""  # of the values, and what that is worth

    def cut(self, calls: CallValues | None = None) -> CutCalls:
        """Return calls, by default all that are watched, cut into periods that are over."""
        assert self.bets is not None  # noqa: S101 - the caller has looked
        calls = self.watched if calls is None else calls
        return self.bets.cut(calls.times, calls.series, self.until)

    @property
    def watched(self) -> CallValues:
        """The calls with a value since watching began, or was begun again."""
        since = self.state.get("since")
        return self.calls.defined.since(None if since is None else parse_moment(since))

    @property
    def earlier(self) -> int:
        """How many periods a check has seen that are not among those watched any longer.

        Their days were deleted, or a later beginning was asked for. What was bet on them is lost:
        otherwise every day that goes would be a new chance to be wrong.
        """
        seen, cut = self._seen, self.cut()
        if seen is None:
            return 0
        before = int(seen["n"])
        if len(cut) and cut.last_time >= seen["until"]:
            before = int((cut.times[cut.ends - 1] <= seen["until"]).sum())
        return int(max(seen["earlier"], seen["n"] - before))

    @property
    def _seen(self) -> dict[str, Any] | None:
        """What was seen in periods of this length; of another one nothing is known."""
        seen: dict[str, Any] | None = self.state.get("seen")
        same = seen is not None and self.bets is not None and seen["length"] == self.bets.length
        return seen if same else None

    def history(self) -> dict[str, Any]:
        """Return the signal over time, for the charts of pages, which ask no judge."""
        both = CallValues.concat([self.known, self.calls]).defined
        times = both.queries["time"]
        first, last = times.min(), times.max()
        if not isinstance(first, datetime) or not isinstance(last, datetime):
            return {"every": "1h", "rows": []}
        every = fitting_length(last - first)
        table = buckets(both, every).with_columns(pl.col("time").dt.to_string("iso:strict"))
        return {"every": every, "rows": table.select(HISTORY).rows()}

    def note_seen(self) -> None:
        """Remember how many periods there were; a look at the past says nothing new."""
        if self.bets is None:
            return
        cut, seen = self.cut(), self._seen
        if not len(cut) or (seen and cut.last_time < seen["until"]):
            return
        known = {"earlier": self.earlier, "until": cut.last_time, "length": self.bets.length}
        self.state["seen"] = known | {"n": known["earlier"] + len(cut)}


@dataclass(frozen=True, slots=True)
class Promise:
    """What holds of the family while nothing changes."""

    alpha: float  # of the evidence
    run_length: int | None
    tests: int
    together: int = 1  # alarms that are raised at once, by e-BH

    @property
    def rate(self) -> float:
        """The error rate: of all time, or of a period."""
        return self.alpha if self.run_length is None else 1 / self.run_length

    @property
    def log_needed(self) -> float:
        """What each alarm takes: the less, the more there are."""
        return log(max(self.tests, 1) / self.rate / self.together)

    @property
    def detector(self) -> str:
        """What keeps the promise."""
        return ALL_TIMES if self.run_length is None else RUN_LENGTH

    def p(self, evidence: float) -> float | None:
        """Return the p-value of evidence, corrected for the family; None of a run length."""
        if self.run_length is not None:
            return None
        return exp(min(self.log_needed + log(self.rate) - evidence, 0.0))


def _decide(tests: list[WatchedSlice], promise: Promise, now: datetime) -> list[AlarmVerdict]:
    """Return the verdicts; open alarms keep the evidence that raised them."""
    evidence = []
    for test in tests:
        opened = test.state.get("open")
        if opened is not None:
            evidence.append(float(opened["log_evidence"]))
        elif test.bets is None:
            evidence.append(-np.inf)
        else:
            evidence.append(test.bets.evidence(test.cut(), promise.detector, test.earlier))
    rejected = e_bh(evidence, promise.rate)
    raised, one_more = (replace(promise, together=sum(rejected) + more) for more in (0, 1))
    found = []
    for test, each, rejects in zip(tests, evidence, rejected, strict=True):
        decision = Decision(test, each, raised if rejects else one_more, now)
        if test.bets is None:
            found.append(decision.verdict(UNDECIDED, test.watched, reason=test.reason))
        elif test.state.get("open") is not None:
            found.append(decision.of_open(test.bets))
        else:
            found.append(decision.raised(test.bets) if rejects else decision.quiet(test.bets))
    return found


@dataclass(frozen=True, slots=True)
class Decision:
    """What the evidence says about one alert and slice."""

    test: WatchedSlice
    evidence: float
    promise: Promise
    now: datetime

    def verdict(
        self,
        outcome: str,
        about: CallValues,
        bound: Bound | None = None,
        **more: Any,  # noqa: ANN401
    ) -> AlarmVerdict:
        """Return the verdict about some calls."""
        test, promise = self.test, self.promise
        stream, line, periods, upward = np.empty(0), None, 0, None
        if test.bets is not None:
            cut, bound = test.cut(about), bound or test.bets.bounds[0]
            stream, line, periods = test.bets.level_stream(bound, cut), bound.mean, len(cut)
            upward = bound.is_upward if outcome in RAISED_STATES else None
        value = test.alert.of(about.series)
        moved = None if value is None or test.before is None else value - test.before
        return AlarmVerdict(
            alert=test.alert.text,
            signal=test.alert.signal,
            slice=test.slice,
            outcome=outcome,
            unit=test.alert.about.unit,
            judge=test.judge,
            before=test.before,
            now=value,
            n=about.n,
            period="" if test.bets is None else period_in_words(test.bets.length),
            periods=periods,
            watched="" if test.bets is None else test.bets.transform,
            mean=_at_all_times(stream, promise.alpha),
            line=line,
            log_evidence=self.evidence,
            log_needed=promise.log_needed,
            verdict=verdict_of_change(
                Estimate(moved, None, None, 1 - promise.alpha, "", about.n),
                upward=upward,
                higher_is_better=test.alert.about.higher_is_better,
                p=None if outcome == RESOLVED else promise.p(self.evidence),
                correction="e-bh",
                test=promise.detector,
                reason=more.get("reason", ""),
            ),
            **more,
        )

    def quiet(self, bets: BoundedSignal) -> AlarmVerdict:
        """Return the verdict where nothing is raised: quiet, unless nothing could have been."""
        test, detector, needed = self.test, self.promise.detector, self.promise.log_needed
        calls, earlier = test.watched, test.earlier
        if bets.most_evidence(len(test.cut()), detector, earlier) >= needed:
            return self.verdict(QUIET, calls)
        reason = TOO_FEW if calls.n else NO_VALUES if test.calls.n else NO_CALLS
        if bets.most_evidence(CHEAP_LIMIT_PERIODS, detector, earlier) < needed:
            reason = AT_THE_END
        return self.verdict(UNDECIDED, calls, reason=reason)

    def raised(self, bets: BoundedSignal) -> AlarmVerdict:
        """Return a new alarm: since when, how large, which calls; and note it in the state."""
        test, every = self.test, self.test.watched
        cut = test.cut(every)
        bound, found = bets.change(cut)
        after = _from(every, cut.starts[found.start])
        since, last = after.queries["time"][0], every.queries["time"][int(cut.ends[-1]) - 1]
        calls = _worst(after, bound)
        test.state["open"] = {
            "opened": self.now.isoformat(),
            "since": since.isoformat(),
            "until": (last + MICROSECOND).isoformat(),
            "log_evidence": self.evidence,
            "bound": asdict(bound),
            "back": (bound.usual + float(np.nanmean(bets.levels(bound, test.cut(after))))) / 2,
            "calls": [each.as_saved() for each in calls],
        }
        return self.verdict(ALARM, after, bound, since=since, opened=self.now, calls=calls)

    def of_open(self, bets: BoundedSignal) -> AlarmVerdict:
        """Return an alarm that is open, or resolved by the calls after it was raised."""
        test, state = self.test, self.test.state
        opened, every = state["open"], test.watched
        bound = bound_of(opened["bound"])
        since = parse_moment(opened["since"])
        known: dict[str, Any] = {"since": since, "opened": parse_moment(opened["opened"])}
        known["calls"] = WatchedCall.from_saved(opened["calls"])
        after = every.since(parse_moment(opened["until"]))
        cut = test.cut(after)
        if len(cut):
            # while it goes on, at most half of the periods are closer to where they should be
            levels, back = bets.levels(bound, cut), float(opened["back"])
            good = np.where(levels > back if bound.side == "below" else levels < back, 1.0, 0.0)
            good = np.where(np.isnan(levels), np.nan, good)
            if change_evidence(good, 0.5, side="above")[-1] >= log(1 / RECOVERY):
                last = after.queries["time"][int(cut.ends[-1]) - 1]
                # the calls since it is back, without those of the alarm before them
                found = change_point(good, 0.5, side="above")
                after = after if found is None else _from(after, cut.starts[found.start])
                past = {name: opened[name] for name in ("since", "opened")}
                past["resolved"] = self.now.isoformat()
                state["past"] = [*state.get("past", []), past][-PAST_ALARMS:]
                state["since"] = (last + MICROSECOND).isoformat()
                del state["open"]
                state.pop("seen", None)
                return self.verdict(RESOLVED, after, bound, resolved=self.now, **known)
        return self.verdict(STILL_OPEN, every.since(since), bound, **known)


def _from(calls: CallValues, first: int) -> CallValues:
    return calls.only(np.arange(calls.n) >= first)


def _at_all_times(stream: Floats, alpha: float) -> Estimate:
    """Return a mean with limits at all times: the tighter ones, or of very many periods the cheap.

    They are limits of one mean: where there was more than one, it may lie outside, and has none.
    """
    stream = stream[~np.isnan(stream)]
    if not len(stream):
        return Estimate(None, None, None, 1 - alpha, "", 0)
    mean = float(stream.mean())
    if len(stream) <= CHEAP_LIMIT_PERIODS:
        low, high = hedged_limits(stream, alpha=alpha)
    else:
        low, high = (float(each[-1]) for each in bernstein_sequence(stream, alpha=alpha))
    if low <= mean <= high:
        return Estimate(mean, low, high, 1 - alpha, "confidence-sequence", len(stream))
    return Estimate(mean, None, None, 1 - alpha, "", len(stream))


def _worst(calls: CallValues, bound: Bound) -> tuple[WatchedCall, ...]:
    """Return the calls to look at: the worst values, of equal ones the latest."""
    bad = calls.series * (-1 if bound.is_upward else 1)
    order = np.lexsort((-np.arange(len(bad)), bad))[:SHOWN_CALLS]
    rows = calls.queries.select("trace", "span", "time")[order].rows()
    return tuple(
        WatchedCall(trace, span, time, float(calls.series[at]))
        for at, (trace, span, time) in zip(order, rows, strict=True)
    )


def _with_questions(store: TraceStore, verdicts: list[AlarmVerdict]) -> list[AlarmVerdict]:
    """Add the questions of the calls to look at, where the store has them."""
    wanted = [(call.time, call.trace, call.span) for each in verdicts for call in each.calls]
    if not wanted:
        return verdicts
    keys = pl.DataFrame(wanted, schema=["time", "trace", "span"], orient="row").unique()
    found = store.calls(keys).select("trace", "span", "question").rows()
    texts = {(trace, span): question for trace, span, question in found}
    return [
        replace(
            verdict,
            calls=tuple(
                replace(call, question=texts.get((call.trace, call.span))) for call in verdict.calls
            ),
        )
        for verdict in verdicts
    ]
