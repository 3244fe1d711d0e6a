"""Options for judges: who judges, `-J NAME=VALUE` for the fields of `Judge`, and forecasts."""

from __future__ import annotations

import functools
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import envelope, options
from findwell.cli.command import Decorator, Settings, option, option_set
from findwell.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.progress import Report
    from findwell.judges.client.budget import Forecast
    from findwell.judges.settings import Judge
    from findwell.judges.verdicts import Judged, JudgeProtocol, Sample

SECRET_FIELD = re.compile(r"api_?key|secret|password|authorization", re.IGNORECASE)
JUDGES = (
    "local, local:text, openai:MODEL, ollama:MODEL, azure:DEPLOYMENT and other providers, "
    "reranker:MODEL, replay:FILE, FILE.json (see findwell judge teach)"
)


def _check_setting(name: str, value: object) -> object:
    """Refuse secrets that others could read, and replace references to secrets."""
    if name == "base_url" and re.match(r"[^/]*//[^/@]*:[^/]*@", str(value)):
        raise OptionError(
            "-J base_url: it has a password, which other users can read in the list of processes",
            fix="set FINDWELL_BASE_URL to the address instead",
        )
    if name == "headers" and isinstance(value, dict):
        from findwell.judges.client.endpoint import header_value  # noqa: PLC0415 - most calls have none

        return {key: header_value(key, str(each)).reveal() for key, each in value.items()}
    if isinstance(value, dict):
        return {key: _without_visible_secrets(key, each) for key, each in value.items()}
    return value


def _without_visible_secrets(name: str, value: Any) -> Any:  # noqa: ANN401
    """Return a field of a call; a key in it must be a reference, such as env:VARIABLE."""
    if isinstance(value, dict):
        return {key: _without_visible_secrets(key, each) for key, each in value.items()}
    if isinstance(value, str) and SECRET_FIELD.search(name):
        from findwell.judges.client.endpoint import referenced, visible_secret  # noqa: PLC0415

        found = referenced(value, f"field {name}")
        if found is None:
            raise visible_secret(f"the field {name}")
        return found.reveal()
    return value


def _defaults() -> dict[str, object]:
    """Return the defaults of the settings, as the library has them."""
    from dataclasses import fields  # noqa: PLC0415

    from findwell.judges.client.client import RetryPolicy  # noqa: PLC0415
    from findwell.judges.settings import Judge  # noqa: PLC0415

    usual = RetryPolicy()
    patience = {"concurrency": usual.concurrency, "timeout": f"{usual.timeout:g}"}
    return {each.name: each.default for each in fields(Judge)} | patience


def judge_settings(*, verdicts: bool = True) -> Decorator:
    """Add `-J NAME=VALUE`; some settings are only about verdicts."""
    return option(
        "-J",
        "How the judge is asked: votes, base_url, … May be repeated; --help-judge lists all.",
        name="judge_settings",
        cls=Settings,
        table="judge",
        topic="judge",
        main="model",
        sections=["verdicts", "judge"] if verdicts else ["judge"],
        check=_check_setting,
        defaults=_defaults,
    )


dry_run = option("--dry-run", "Only estimate calls, tokens and cost. No model is asked.")


def judged(
    default: str | None = None,
    about: str = f"Who judges context_recall and the like. One of: {JUDGES}.",
    *,
    verdicts: bool = True,
) -> Decorator:
    """Add the options of judges; the command gets them as one `judge`."""

    def make(judge: str | None, judge_settings: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
        return {"judge": JudgeChoice(judge, judge_settings, dry_run=dry_run)}

    named = option("--judge JUDGE", about, default=default)
    settings = judge_settings(verdicts=verdicts)
    return option_set(named, settings, dry_run, group="Judge", make=make)


@dataclass(frozen=True)
class JudgeChoice:
    """Who judges, with which settings; or only what that would take."""

    name: str | None
    settings: dict[str, Any]
    dry_run: bool = False

    @property
    def asked(self) -> str | Judge | None:
        """The judge as the library takes it: a name, or a name with settings; None: not named."""
        settings, name = dict(self.settings), self.name
        if name is None:
            return None
        from findwell.judges.settings import Judge  # noqa: PLC0415

        if _embeds_remotely() and not Judge(name).asks_server:  # it is the embedder's
            settings.pop("base_url", None)
        return Judge(name, **settings) if settings else name

    @functools.cached_property
    def options(self) -> dict[str, Any]:
        """What `Plan.of` takes: the judge, and the server of an embedder."""
        judge: object = self.asked
        remote = _embeds_remotely()
        if self.dry_run:
            if remote:
                raise click.UsageError("--dry-run asks no model, and so cannot embed with a server")
            from findwell.judges.find import find_judge  # noqa: PLC0415

            judge = DryRunJudge(find_judge(judge))
        return {"judge": judge, **({"base_url": self.settings.get("base_url")} if remote else {})}

    @functools.cached_property
    def shared_options(self) -> dict[str, Any]:
        """The same with one judge for all systems, so that a budget holds for all of them."""
        from findwell.judges.find import find_judge  # noqa: PLC0415

        found = {name: value for name, value in self.options.items() if value is not None}
        if "judge" not in found:  # a saved result needs none
            return found
        return found | {"judge": find_judge(found["judge"])}

    def forecast_systems(
        self,
        files: list[str],
        measures: list[str] | None,
        chosen: Mapping[str, Any],
        how: str,
        output: str | None,
    ) -> bool:
        """Measure systems without comparing them, if only a forecast was asked for; write it."""
        if not self.dry_run:
            return False
        from findwell.evaluation.comparison.systems import gather  # noqa: PLC0415
        from findwell.evaluation.plan import PlanOptions  # noqa: PLC0415

        options_of = PlanOptions.__optional_keys__ - {"rel"}
        known = {name: value for name, value in chosen.items() if name in options_of}
        gather(files, chosen["gold"], measures, rel=chosen.get("rel"), options=known)
        return self.write_forecast(how, output)

    def write_forecast(self, how: str, output: str | None) -> bool:
        """Write what the judge would have taken, if only that was asked for."""
        judge = self.options["judge"]
        if not isinstance(judge, DryRunJudge):
            return False
        write_forecast(judge.forecast(), how, output)
        return True


def several_judges(names: Sequence[str], settings: dict[str, Any]) -> list[Any]:
    """Return judges as the library takes them; settings are for those that ask a model."""
    from findwell.judges.settings import Judge  # noqa: PLC0415

    able = [name for name in names if Judge(name).asks_server] or names  # or all refuse them
    return [JudgeChoice(name, settings if name in able else {}).asked for name in names]


def _embeds_remotely() -> bool:
    """Return whether texts are embedded by a server: `embedder`, or the model of a relation."""
    chosen = click.get_current_context().params
    embedders = [(chosen.get(name) or {}).get("embedder") for name in ("read", "signals")]
    named = " ".join(map(str, (*embedders, chosen.get("by"), chosen.get("measures"))))
    if ":" not in named:
        return False
    from findwell.judges.client.providers import SPELLED  # noqa: PLC0415 - most scores need no server

    return bool(SPELLED.search(named))


def asks_no_model(name: str) -> click.UsageError:
    """Return the error about a forecast for a judge that costs nothing."""
    return click.UsageError(f"--dry-run only applies to judges that ask a model; {name} does not")


class DryRunJudge:
    """Replaces a judge: remembers what it is asked, gives no verdict, and costs nothing."""

    def __init__(self, judge: JudgeProtocol) -> None:
        if not hasattr(judge, "dry_run"):
            raise asks_no_model(judge.name)
        self._judge = judge
        self._asked: dict[frozenset[str], list[Sample]] = {}
        self.name = judge.name

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Fail every sample."""
        from findwell.judges.verdicts import Judged, JudgeFailure, JudgeReason  # noqa: PLC0415

        del progress
        self._asked.setdefault(aspects, []).extend(samples)
        failure = JudgeFailure(JudgeReason.DRY_RUN)
        return [Judged(failures=dict.fromkeys(aspects, failure))] * len(samples)

    def about(self) -> dict[str, Any]:
        """Return nothing: no model was asked."""
        return {}

    def forecast(self) -> Forecast:
        """Return what all that was asked would take."""
        from findwell.judges.llm.judge import total  # noqa: PLC0415

        seen: set[bytes] = set()
        parts: list[Forecast] = [
            self._judge.dry_run(samples, aspects, seen=seen)
            for aspects, samples in self._asked.items()
        ]
        return total(parts)


def write_forecast(estimate: Forecast, how: str, output: str | None) -> None:
    """Write an estimate as text or as JSON."""
    if how == "json":
        envelope.answer({"forecast": asdict(estimate)}, output)
        return
    cost = "unknown, give -J prices" if estimate.cost is None else f"{estimate.cost:.4f}"
    time = "" if estimate.seconds is None else f"time: about {_duration(estimate.seconds)}\n"
    text = (
        f"calls: {estimate.calls} ({estimate.stored} more are in the cache)\n"
        f"prompt tokens: about {estimate.prompt_tokens}\n"
        f"answer tokens: about {estimate.completion_tokens}\n"
        f"cost: {cost}\n"
        f"{time}nothing was asked\n"
    )
    options.write(text, output)


def _duration(seconds: float) -> str:
    """Return a time in words.

    >>> _duration(42), _duration(1500)
    ('42 seconds', '25 minutes')
    """
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:,.0f} minutes"
