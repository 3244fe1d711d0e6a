"""Who judges, and how a language model is asked: all settings of a judge in one object."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import TYPE_CHECKING

from findwell.core.errors import OptionError, choose, takes_options

if TYPE_CHECKING:
    from findwell.judges.client.budget import CallBudget, Prices
    from findwell.judges.client.cache import Cache
    from findwell.judges.client.client import RetryPolicy
    from findwell.judges.client.protocol import Json

CALL_TOKENS = 32_000
LANGUAGES = ("en", "de", "fr", "es", "zh", "ja")  # of the prompts
AUTO = "auto"  # each question's own, as far as there are prompts in it
WAYS = ("matrix", "single")  # to ask a language model, from the fewest calls to the most
KEPT_CHECK, NEW_CHECK = "kept", "auto"  # the way that a check recommends
RECORDED = {"recorded": True}  # settings that the manifest names
OWN_FIELDS = ("model", "messages", "stream", "response_format")  # of a call, set by findwell alone


@takes_options()
@dataclass(frozen=True, slots=True)
class Judge:
    """A judge by name, such as `openai:MODEL` or `ollama:MODEL`, and how it is asked.

    The server and its key come from the environment, unless they are given: FINDWELL_BASE_URL or
    OPENAI_BASE_URL, and FINDWELL_API_KEY or OPENAI_API_KEY. Other providers have variables of their
    own; the page "Judging without labels" lists them. The limits hold for all that one judge asks.
    `prices` are those of the model ("0.15, 0.6": prompts and answers, per million tokens), or a
    file with prices. `cache` is `use`, `refresh` or `off`. `headers` are sent with every call, and
    `extra_body` are fields of its body. `batch` sends the calls as batches, which take up to a day
    and cost half. `language` is that of the prompts: en, de, fr, es, zh, ja, or `auto`, that of
    each question.

    `ask` is how it is asked. `matrix` asks for all verdicts about a sample at once. `single` asks
    for one verdict by one word, with its probability if the server reports it. `kept` (the default)
    is what `findwell.judges.check` recommended for this model, and `matrix` if it was not checked.
    `auto` checks such a model first. `quotes` asks for a quote with every single verdict that is a
    yes; a matrix always has quotes. `max_failures` is the share of failed verdicts at which judging
    stops after the first samples; 1 never stops.

    `votes` asks every question this many times, and takes the majority, or the median of grades.
    `decompose` lets the model list claims and statements, instead of splitting into sentences.
    `separate_calls` asks about relevance, claims and entities in separate calls. `prompt` is a TOML
    file with prompts that replace the package's. `options` are fields of the call, such as
    temperature or max_tokens; None leaves one out. `attempts` limits how many times an id is asked
    about. `call_tokens` limits the tokens of chunks in one call: longer chunks are cut.

    >>> Judge("openai:some-model", votes=3).changed()
    ['votes']
    >>> Judge("openai:some-model", votes=0)
    Traceback (most recent call last):
    findwell.core.errors.OptionError: votes must be at least 1, not 0
    """

    model: str = "local"
    _: KW_ONLY
    base_url: str | None = field(default=None, repr=False)  # may hold a password
    key: str | None = field(default=None, repr=False)
    cache: str | Cache = "use"
    concurrency: int | None = None
    timeout: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    prices: str | os.PathLike[str] | Prices | None = None
    ask: str = KEPT_CHECK
    max_failures: float = 0.2
    quotes: bool = False
    votes: int = field(default=1, metadata=RECORDED)
    decompose: bool = field(default=False, metadata=RECORDED)
    separate_calls: bool = field(default=False, metadata=RECORDED)
    attempts: int = field(default=3, metadata=RECORDED)
    call_tokens: int = field(default=CALL_TOKENS, metadata=RECORDED)
    prompt: str | os.PathLike[str] | None = None
    options: Mapping[str, Json] | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    extra_body: Mapping[str, Json] | None = field(default=None, repr=False)  # may hold keys
    batch: bool = field(default=False, metadata=RECORDED)
    language: str = field(default="en", metadata=RECORDED)
    retry: RetryPolicy | None = None  # how patiently a server is asked; default: the client's
    budget: CallBudget | None = None  # one that others share, instead of the limits

    def __post_init__(self) -> None:
        """Check what can be checked without a server."""
        if not isinstance(self.model, str):
            raise OptionError(
                f"Judge needs the name of a judge, such as openai:MODEL, not a "
                f"{type(self.model).__name__}",
                fix="give functions, objects and lists of judges as they are: judge=function",
            )
        for name in ("votes", "attempts", "call_tokens"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} must be at least 1, not {getattr(self, name)}")
        choose("language of prompts", self.language, [*LANGUAGES, AUTO])
        for given in ("options", "extra_body"):
            for name in OWN_FIELDS:
                if name in (getattr(self, given) or {}):
                    raise OptionError(f"{given} has {name!r}, which findwell sets itself")
        choose("way to ask", self.ask, [*WAYS, KEPT_CHECK, NEW_CHECK])
        if not 0 < self.max_failures <= 1:
            raise OptionError(
                f"max_failures must be more than 0, at most 1, not {self.max_failures}"
            )

    @property
    def is_taught(self) -> bool:
        """Whether it is a file that `findwell judge teach` wrote."""
        spec = self.model.strip()
        return spec.endswith(".json") and ":" not in os.path.splitdrive(spec)[1]

    @property
    def underlying(self) -> Judge:
        """The judge that is asked: of a file that `findwell judge teach` wrote, the one inside.

        It is asked as it was asked when it was taught, unless that is given; where, its user says.
        """
        if not self.is_taught:
            return self
        from findwell.judges.taught import Teaching  # noqa: PLC0415 - few judges were taught

        taught = Teaching.load(self.model.strip())
        ask = taught.ask if self.ask == KEPT_CHECK and taught.ask else self.ask
        return replace(self, model=taught.judge, ask=ask)

    @property
    def asks_model(self) -> bool:
        """Whether a language model is asked."""
        model = self.underlying.model
        if ":" not in model:
            return False
        from findwell.judges.client.providers import split_spec  # noqa: PLC0415 - most judges ask no model

        return split_spec(model) is not None

    @property
    def asks_server(self) -> bool:
        """Whether texts go to a server: of a language model, or of a reranker."""
        if self.asks_model:
            return True
        model = self.underlying.model.strip()
        if not model.startswith("reranker:"):
            return False
        from findwell.judges.reranker import split_reranker  # noqa: PLC0415 - few judges are one

        return split_reranker(model) is not None

    def changed(self) -> list[str]:
        """Return the names of the settings that are not the defaults."""
        usual = {each.name: each.default for each in fields(self) if each.name != "model"}
        return [name for name, default in usual.items() if getattr(self, name) != default]

    def recorded(self) -> dict[str, object]:
        """Return the settings that the manifest names."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.metadata}
