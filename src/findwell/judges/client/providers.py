"""The providers that people have: where they are, and how their calls differ (`providers.toml`).

All of them speak OpenAI's protocol, more or less. What is not known about one is found out by
asking (`findwell.judges.client.protocol`). A new provider is one more entry of the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import urlencode

from findwell.core.errors import OptionError

OUTPUT_MODES = ("json_schema", "json_object", "none")  # of structured output, the strictest first
BEARER = "Authorization"  # the header of a key, which then follows the word Bearer
DEPLOYMENT = re.compile(r"/openai/deployments/[^/]+")


class Address(NamedTuple):
    """Where the calls about a model go, and where files and batches are."""

    base: str
    files: str
    query: str = ""


@dataclass(frozen=True, slots=True)
class Provider:
    """One way to reach models: `NAME:MODEL`, as `ollama:llama3.2`."""

    name: str
    title: str
    url: str = ""  # the base URL; empty if every user has another
    key: str = ""  # the variable of the environment with the key that belongs to this address
    url_variable: str = ""  # the one that names another address
    domains: tuple[str, ...] = ()  # where the key may go while no address is named
    header: str = BEARER  # that carries the key
    modes: tuple[str, ...] = OUTPUT_MODES  # of structured output that are worth asking for
    schema_as_value: bool = False  # response_format is {"type": "json_object", "value": SCHEMA}
    left_out: frozenset[str] = frozenset()  # fields that it ignores or turns down
    renamed: Mapping[str, str] = field(default_factory=dict)
    extra_headers: Mapping[str, str] = field(default_factory=dict)  # by variable: name of a header
    embeddings: bool = True
    batch: str = ""  # the path of a call inside a batch file; empty if there are no batches
    concurrency: int | None = None  # calls at a time, where the usual number is too many
    timeout: float | None = None  # seconds, where answers take longer than usual
    model: str = "MODEL"  # what its models are called
    quirk: str = ""
    source: str = ""
    deployments: bool = False  # each model has an address of its own, as Azure's have

    @classmethod
    def read(cls, name: str, entry: Mapping[str, Any]) -> Provider:
        """Make a provider of an entry of the file."""
        sets = {"domains": tuple, "modes": tuple, "left_out": frozenset}
        made = {each: make(entry[each]) for each, make in sets.items() if each in entry}
        return cls(name=name, **{**entry, **made})

    @property
    def spelling(self) -> str:
        """How a judge of this provider is spelled."""
        return f"{self.name}:{self.model}"

    def address(self, base: str, query: str, model: str, version: str) -> Address:
        """Return where a model is, by a base URL without its query.

        A deployment is under `/openai/v1` or, where a version is named, under its own path.

        >>> azure, mine = PROVIDERS["azure"], "https://me.openai.azure.com"
        >>> azure.address(mine, "", "judge", "").base
        'https://me.openai.azure.com/openai/v1'
        >>> azure.address(mine, "", "judge", "2024-10-21").base
        'https://me.openai.azure.com/openai/deployments/judge'
        """
        if not self.deployments or base.endswith("/openai/v1"):
            return Address(base, base, query)
        resource = DEPLOYMENT.split(base)[0].removesuffix("/openai")
        if "api-version=" not in query and version:
            query = f"{query}&{urlencode({'api-version': version})}".lstrip("&")
        if "api-version=" not in query:
            return Address(f"{resource}/openai/v1", f"{resource}/openai/v1", query)
        return Address(f"{resource}/openai/deployments/{model}", f"{resource}/openai", query)


_FILE = files("findwell.judges.client") / "providers.toml"
PROVIDERS = {
    name: Provider.read(name, entry)
    for name, entry in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
ENTRIES = tuple(PROVIDERS.values())
OPENAI = PROVIDERS["openai"]
DEFAULT_URL = OPENAI.url
SPELLED = re.compile(rf"\b(?:{'|'.join(PROVIDERS)}):")


def split_spec(spec: str) -> tuple[Provider, str] | None:
    """Return provider and model of a spec; None if it names no provider.

    >>> split_spec("ollama:qwen2.5:1.5b")[1], split_spec("local:text")
    ('qwen2.5:1.5b', None)
    """
    name, colon, model = (part.strip() for part in spec.partition(":"))
    return (PROVIDERS[name], model) if colon and name in PROVIDERS else None


def requires_batches(provider: Provider) -> None:
    """Refuse batches of a provider that has none."""
    if not provider.batch:
        able = ", ".join(entry.spelling for entry in ENTRIES if entry.batch)
        raise OptionError(
            f"{provider.title} has no batches in OpenAI's protocol",
            fix=f"leave -J batch=yes out, or ask one of {able}",
        )
