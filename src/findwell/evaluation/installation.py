"""What is installed and works, and which models answer."""

from __future__ import annotations

import asyncio
import importlib
import json
import platform
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from findwell.core.errors import FindwellError, how_to_install
from findwell.core.findings import shorten
from findwell.io.native import described, kernel
from findwell.judges.client.client import Transport
from findwell.judges.client.endpoint import Endpoint, Reach, reach
from findwell.judges.client.protocol import Failure
from findwell.judges.client.providers import OPENAI, PROVIDERS, Provider, split_spec
from findwell.judges.settings import Judge

if TYPE_CHECKING:
    from collections.abc import Iterator

State = Literal["ok", "look", "broken"]
ANSWER_SECONDS = 3.0  # in which a server lists its models
LISTED_MODELS = 5  # that a line names
ANY_MODEL = "MODEL"  # where a server is named without one


@dataclass(frozen=True, slots=True)
class DoctorLine:
    """What was looked at: its state, one sentence, and the command that goes on from there."""

    about: str
    state: State
    sentence: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Extra:
    """What an extra of findwell is for, and which of its modules are imported to see if they work.

    Those that take seconds to import are left out.
    """

    purpose: str
    modules: str


EXTRAS = {
    "text": Extra("matching by text and the built-in judge", "rapidfuzz sentencex"),
    "stats": Extra("power analyses and some intervals", "scipy"),
    "judge": Extra("language models as judges and embedders", "httpx sniffio"),
    "onnx": Extra("embedding models from ONNX files", "onnxruntime tokenizers"),
    "semantic": Extra("the embedding model MiniLM (--by semantic, --judge local)", ""),
    "entities": Extra("names that spaCy finds in texts", ""),
    "report": Extra("charts as PNG files", "resvg_py"),
    "web": Extra("the pages of `findwell view` and `findwell labels serve`", "starlette uvicorn"),
    "monitor": Extra("traces over HTTP", "opentelemetry.proto"),
    "tune": Extra("tuning of many settings", ""),
    "pandas": Extra("data frames of pandas", "pyarrow"),
    "excel": Extra("files of Excel", "fastexcel"),
    "zstd": Extra("files packed by zstd, on Python before 3.14", "backports.zstd"),
    "spark": Extra("evaluations on Apache Spark", ""),
}


def examine_installation() -> Iterator[DoctorLine]:
    """Say what is installed and works, and what to install for what."""
    from findwell import __version__  # noqa: PLC0415 - the package is complete by now

    here = f"findwell {__version__} on Python {platform.python_version()}, {described()}"
    if kernel() is None:
        slow = "; TREC files are read more slowly without it"
        yield DoctorLine("findwell", "look", f"{here}{slow}", "pip install --no-cache-dir .")
    else:
        yield DoctorLine("findwell", "ok", here)
    packages = _packages()
    present: list[str] = []
    named: set[str] = set()  # extras share packages
    absent: list[DoctorLine] = []
    for extra, about in EXTRAS.items():
        versions = {name: _version(name) for name in packages.get(extra, ())}
        lacking = [name for name, version in versions.items() if version is None]
        if lacking or not versions:
            sentence = f"not installed; it is for {about.purpose}"
            absent.append(DoctorLine(extra, "ok", sentence, how_to_install(extra)))
        elif reason := _import_failure(about.modules):
            sentence = f"installed, but cannot be used: {reason}"
            yield DoctorLine(extra, "broken", sentence, how_to_install(extra))
        else:
            news = [f"{name} {version}" for name, version in versions.items() if name not in named]
            named |= versions.keys()
            present.append(f"{extra} ({', '.join(news)})" if news else extra)
    if present:
        yield DoctorLine("extras", "ok", f"installed are {'; '.join(present)}")
    yield from absent


def _packages() -> dict[str, list[str]]:
    """Return the packages of each extra, those of the extras that it takes in included."""
    try:
        requirements = metadata.requires("findwell") or []
    except metadata.PackageNotFoundError:  # run from its sources
        return {}
    own: dict[str, list[str]] = {}
    for each in requirements:
        wanted, _, condition = each.partition(";")
        if (extra := re.search(r"extra\s*==\s*['\"]([\w-]+)", condition)) is not None:
            own.setdefault(extra[1], []).append(wanted)
    return {extra: [*dict.fromkeys(_flat(extra, own))] for extra in own}


def _flat(extra: str, own: dict[str, list[str]]) -> Iterator[str]:
    for wanted in own.get(extra, ()):
        name, _, inner = re.split(r"[<>=!~ (]", wanted.strip())[0].partition("[")
        if name != "findwell":
            yield name
        for each in filter(None, inner.rstrip("]").split(",")):
            yield from _flat(each, own)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _import_failure(modules: str) -> str:
    """Return why one of these modules cannot be imported; empty if all of them can."""
    for name in modules.split():
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - whatever a broken library raises
            return f"{name}: {shorten(' '.join(str(error).split()) or type(error).__name__, 120)}"
    return ""


def examine_judges(judge: str | Judge | None, *, ask: bool) -> Iterator[DoctorLine]:
    """Say which judges can be used, and which models answer.

    Servers on this machine are asked for the list of their models. A server elsewhere is asked
    only where `ask` says so.
    """
    if _import_failure(EXTRAS["judge"].modules):
        return  # said with the extras
    if judge is not None:
        yield from _named_judge(Judge(judge) if isinstance(judge, str) else judge, ask=ask)
        return
    server = _endpoint(OPENAI, ANY_MODEL)
    if isinstance(server, Endpoint) and server.identity != OPENAI.url:
        yield _server(server, ANY_MODEL, ask=ask)  # which the environment names
    found = 0
    for address, provider in {each.url: each for each in reversed(PROVIDERS.values())}.items():
        if not address or reach(urlsplit(address).hostname or "") is not Reach.THIS_MACHINE:
            continue
        local = _endpoint(provider, ANY_MODEL, base_url=address, key="")
        models = _models(local) if isinstance(local, Endpoint) else str(local)
        if isinstance(models, list):
            found += 1
            yield DoctorLine(
                "judges",
                "ok",
                f"{address} answers and has {_some(models)}",
                f"findwell judge check {provider.name}:{(models or [ANY_MODEL])[0]}",
            )
    if not found:
        yield DoctorLine(
            "judges",
            "ok",
            "no model server answers on this machine; the built-in judge needs none (--judge "
            "local:text)",
        )


def _named_judge(judge: Judge, *, ask: bool) -> Iterator[DoctorLine]:
    """Look at the judge that the project names."""
    from findwell.judges.find import find_judge  # noqa: PLC0415

    try:
        find_judge(judge)
    except FindwellError as error:
        yield DoctorLine("judge", "broken", f"{judge.model} cannot be used: {_said(error)}")
        return
    spec = split_spec(judge.model)
    if spec is None:
        yield DoctorLine("judge", "ok", f"{judge.model} can be used, and asks no server")
        return
    provider, model = spec
    server = _endpoint(provider, model, base_url=judge.base_url, headers=judge.headers)
    if isinstance(server, Endpoint):
        yield _server(server, model, ask=ask)
    else:
        yield DoctorLine("judge", "broken", f"{judge.model} cannot be asked: {_said(server)}")


def _server(server: Endpoint, model: str, *, ask: bool) -> DoctorLine:
    """Say whether a server answers and has the model; nothing leaves the machine unasked."""
    near = reach(urlsplit(server.identity).hostname or "") is Reach.THIS_MACHINE
    if not near and not ask:
        sentence = f"{server.identity} is set as the server of the judge, but was not asked"
        return DoctorLine("judge", "look", sentence, "findwell doctor --ask")
    models = _models(server)
    if isinstance(models, str):
        return DoctorLine("judge", "broken", f"{server.identity} does not answer: {models}")
    if model != ANY_MODEL and models and model not in models:
        sentence = f"{server.identity} answers, but has no model {model}; it has {_some(models)}"
        return DoctorLine("judge", "broken", sentence)
    spec = f"{server.provider.name}:{model if model != ANY_MODEL or not models else models[0]}"
    sentence = f"{server.identity} answers and has {_some(models)}"
    return DoctorLine("judge", "ok", sentence, f"findwell judge check {spec}")


def _endpoint(provider: Provider, model: str, **options: object) -> Endpoint | FindwellError:
    try:
        return Endpoint.find(model, provider=provider, **options)  # type: ignore[arg-type]
    except FindwellError as error:
        return error


def _models(server: Endpoint) -> list[str] | str:
    """Return the models that a server lists, or why it does not."""

    async def asked() -> list[str] | str:
        transport = Transport(server, timeout=ANSWER_SECONDS, connections=1)
        try:
            reply = await transport.call("GET", server.url("/models"))
        finally:
            await transport.close()
        if isinstance(reply, Failure):
            return server.hide(shorten(str(reply.detail), 120))
        if reply.status != 200:
            return f"status {reply.status}"
        try:
            listed = json.loads(reply.body)["data"]
            return [str(each["id"]) for each in listed]
        except (ValueError, KeyError, TypeError):
            return "its answer is not a list of models"

    try:
        with ThreadPoolExecutor(1) as pool:  # a notebook has an event loop of its own
            return pool.submit(asyncio.run, asked()).result()
    except FindwellError as error:
        return _said(error)


def _some(models: list[str]) -> str:
    more = f" and {len(models) - LISTED_MODELS} more" if len(models) > LISTED_MODELS else ""
    named = ", ".join(models[:LISTED_MODELS])
    return f"the models {named}{more}" if models else "no model yet"


def _said(error: FindwellError) -> str:
    return f"{error.what}; {error.fix}" if error.fix else error.what
