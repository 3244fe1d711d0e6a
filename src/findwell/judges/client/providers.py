"""The providers that people have, one entry each: where they are, and how their calls differ.

All of them speak OpenAI's protocol, more or less. An entry says what is known of the difference and
where that was read; what is not known here is found out by asking
(`findwell.judges.client.requests`). A new provider is one more entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlencode

from findwell.core.errors import OptionError

OUTPUT_MODES = ("json_schema", "json_object", "none")  # of structured output, the strictest first
BEARER = "Authorization"  # the header of a key, which then follows the word Bearer
PROBABILITIES = frozenset({"logprobs", "top_logprobs"})
DEFAULT_URL = "https://api.openai.com/v1"
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
    url: str  # the base URL; empty if every user has another
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
    locate: Callable[[str, str, str, str], Address] | None = None

    @property
    def spelling(self) -> str:
        """How a judge of this provider is spelled."""
        return f"{self.name}:{self.model}"

    def address(self, base: str, query: str, model: str, version: str) -> Address:
        """Return where a model is, by a base URL without its query."""
        if self.locate is None:
            return Address(base, base, query)
        return self.locate(base, query, model, version)


def _azure(base: str, query: str, model: str, version: str) -> Address:
    """Find a deployment: under `/openai/v1`, or, where a version is named, under its own path.

    >>> _azure("https://me.openai.azure.com", "", "judge", "").base
    'https://me.openai.azure.com/openai/v1'
    >>> _azure("https://me.openai.azure.com", "", "judge", "2024-10-21").base
    'https://me.openai.azure.com/openai/deployments/judge'
    """
    if base.endswith("/openai/v1"):
        return Address(base, base, query)
    resource = DEPLOYMENT.split(base)[0].removesuffix("/openai")
    if "api-version=" not in query and version:
        query = f"{query}&{urlencode({'api-version': version})}".lstrip("&")
    if "api-version=" not in query:
        return Address(f"{resource}/openai/v1", f"{resource}/openai/v1", query)
    return Address(f"{resource}/openai/deployments/{model}", f"{resource}/openai", query)


OPENAI = Provider(
    "openai",
    "OpenAI",
    DEFAULT_URL,
    key="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    extra_headers={"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"},
    batch="/v1/chat/completions",
    quirk="reasoning models take neither temperature nor max_tokens: found out and left out",
    source="platform.openai.com/docs/api-reference",
)
SLOW = 600.0  # seconds: a small machine reads a long prompt slowly, and calls wait in a line
FEW = 4  # calls at a time on a machine that answers one or two at once
ENTRIES = (
    OPENAI,
    Provider(
        "azure",
        "Azure OpenAI",
        "",
        key="AZURE_OPENAI_API_KEY",
        url_variable="AZURE_OPENAI_ENDPOINT",
        domains=("azure.com", "azure.us", "azure.cn"),
        header="api-key",
        batch="/chat/completions",
        model="DEPLOYMENT",
        quirk="with OPENAI_API_VERSION, or api-version in the base URL, the deployment is in the "
        "path; otherwise /openai/v1 is asked",
        source="learn.microsoft.com/azure/foundry/openai/api-version-lifecycle, …/how-to/batch",
        locate=_azure,
    ),
    Provider(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com/v1",
        key="ANTHROPIC_API_KEY",
        modes=("none",),
        left_out=frozenset({"seed"}) | PROBABILITIES,
        embeddings=False,
        quirk="its OpenAI-compatible endpoint ignores response_format, seed and logprobs",
        source="platform.claude.com/docs/en/api/openai-sdk",
    ),
    Provider(
        "gemini",
        "Google Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        key="GEMINI_API_KEY",
        left_out=frozenset({"seed"}),
        quirk="seed is answered with 400: Unknown name; batch files go through another protocol",
        source="ai.google.dev/gemini-api/docs/openai; github.com/Vali-98/ChatterUI/issues/227",
    ),
    Provider(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        key="OPENROUTER_API_KEY",
        quirk='what a model cannot do is ignored, unless --extra-body \'{"provider": '
        '{"require_parameters": true}}\' asks for those who can',
        source="openrouter.ai/docs/api_reference/overview",
    ),
    Provider(
        "ollama",
        "Ollama",
        "http://localhost:11434/v1",
        url_variable="OLLAMA_HOST",
        concurrency=FEW,
        timeout=SLOW,
        quirk="cuts prompts at its context length without a word: set OLLAMA_CONTEXT_LENGTH",
        source="docs.ollama.com/api/openai-compatibility, docs.ollama.com/context-length",
    ),
    Provider(
        "vllm",
        "vLLM",
        "http://localhost:8000/v1",
        key="VLLM_API_KEY",
        quirk="its own fields, such as top_k, go into --extra-body",
        source="docs.vllm.ai/en/stable/serving/openai_compatible_server",
    ),
    Provider(
        "tgi",
        "Text Generation Inference",
        "http://localhost:8080/v1",
        modes=("json_schema", "none"),
        schema_as_value=True,
        embeddings=False,
        quirk="the schema is the value of response_format; the model may be called tgi",
        source="huggingface.co/docs/text-generation-inference/messages_api, …/using_guidance",
    ),
    Provider(
        "lmstudio",
        "LM Studio",
        "http://localhost:1234/v1",
        modes=("json_schema", "none"),
        concurrency=FEW,
        timeout=SLOW,
        quirk="knows json_schema, but not json_object",
        source="lmstudio.ai/docs/developer/openai-compat, …/advanced/structured-output",
    ),
    Provider(
        "llamacpp",
        "llama.cpp",
        "http://localhost:8080/v1",
        key="LLAMA_API_KEY",
        concurrency=FEW,
        timeout=SLOW,
        quirk="a prompt longer than its slot is an error: start it with -c and -np",
        source="github.com/ggml-org/llama.cpp/tree/master/tools/server",
    ),
    Provider(
        "litellm",
        "a LiteLLM proxy",
        "http://localhost:4000/v1",
        key="LITELLM_PROXY_API_KEY",
        url_variable="LITELLM_PROXY_API_BASE",
        batch="/v1/chat/completions",
        quirk="fields that the model behind it does not know are errors, unless drop_params is set",
        source="docs.litellm.ai/docs/providers/bedrock, docs.litellm.ai/docs/batches",
    ),
    Provider(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        key="MISTRAL_API_KEY",
        left_out=PROBABILITIES,
        renamed={"seed": "random_seed"},
        quirk="seed is called random_seed; its batches have another protocol",
        source="docs.mistral.ai/api",
    ),
    Provider(
        "groq",
        "Groq",
        "https://api.groq.com/openai/v1",
        key="GROQ_API_KEY",
        left_out=PROBABILITIES,
        embeddings=False,
        batch="/v1/chat/completions",
        quirk="logprobs is answered with 400; not every model knows json_schema",
        source="console.groq.com/docs/openai, console.groq.com/docs/batch",
    ),
    Provider(
        "together",
        "Together AI",
        "https://api.together.ai/v1",
        key="TOGETHER_API_KEY",
        left_out=PROBABILITIES,
        quirk="logprobs is a number there; its batches have another protocol",
        source="docs.together.ai/docs/inference/openai-compatibility",
    ),
    Provider(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com/v1",
        key="DEEPSEEK_API_KEY",
        modes=("json_object", "none"),
        embeddings=False,
        quirk="knows json_object, but not json_schema",
        source="api-docs.deepseek.com/guides/json_mode",
    ),
)
PROVIDERS = {entry.name: entry for entry in ENTRIES}
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
            fix=f"leave --batch out, or ask one of {able}",
        )
