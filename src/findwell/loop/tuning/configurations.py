"""Configurations of a retriever that must be asked: made by a function, with answers kept."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findwell.core.errors import FindwellError, OptionError, RetrieverError, SaveError
from findwell.io.storage.files import make_folder
from findwell.loop.tuning.space import choose_knob, describe_setting, identify
from findwell.retrievers.answers import AnswerLog, to_run
from findwell.retrievers.retrieve import ask_all
from findwell.retrievers.retriever import Call, Retriever, call_of, describe, name_of

if TYPE_CHECKING:
    import polars as pl

    from findwell.core.data import Run
    from findwell.core.progress import Report

RESUMED = "resumed-answer"
ANSWERS = re.compile(r"[0-9a-f]{16}\.jsonl")  # of one configuration


@dataclass(frozen=True)
class ConfiguredRetriever(Retriever):
    """A retriever that is known by how it was configured, not by its own name.

    What a function makes is often a closure or a partial object, of which nothing stays the same
    between processes.
    """

    configuration: str = ""

    @property
    def identity(self) -> str:
        """Return what answers are kept under."""
        return self.configuration


@dataclass(slots=True)
class Asked:
    """What one configuration found, or why it was given up."""

    run: Run | None
    resumed: int = 0  # answers that were kept from before
    reason: str = ""  # why there is no run


@dataclass(slots=True, eq=False)
class Configurations:
    """Retrievers made by `make(**setting)`, one for each setting, and how they are asked.

    `folder` keeps the answers of each configuration in a file of its own. A retriever is made when
    it is asked, and let go afterwards: configurations may each hold an index in memory.
    """

    make: Callable[..., Any]
    settings: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any] = field(default_factory=dict)  # those of `findwell.Retriever`
    folder: Path | None = None
    calls: int = 0  # questions asked so far, attempts that failed included
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Check that the function takes the knobs, before anything is asked."""
        check_factory(self.make, self.settings[0])
        Retriever(_nothing, **{**self.options, "resume": None})  # checks the options
        if self.folder is not None:
            try:
                make_folder(self.folder)
            except OSError as error:
                raise SaveError(
                    f"answers cannot be kept here: {error.strerror}", where=str(self.folder)
                ) from None

    def ask(self, number: int, queries: pl.DataFrame, progress: Report | None = None) -> Asked:
        """Ask one configuration the questions of a table, but for those that it has answered."""
        kept = self._kept(number, queries)
        if kept is not None:
            return Asked(kept, queries.height)
        try:
            run = ask_all(self._made(number), queries, progress)
        except (RetrieverError, _CannotBeMadeError) as error:
            return Asked(None, reason=error.what)
        resumed = sum(found.count for found in run.findings if found.kind == RESUMED)
        findings = tuple(found for found in run.findings if found.kind != RESUMED)
        return Asked(replace(run, findings=findings), resumed)

    def name(self, number: int) -> str:
        """Write a setting in one line."""
        return describe_setting(self.settings[number])

    def _identity(self, number: int) -> str:
        """Return a hash of what decides about the answers of a configuration."""
        told: list[Any] = [describe(self.make), identify(self.settings[number])]
        told += [self.options.get("k"), self.options.get("id_from")]
        return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()[:16]

    def _log(self, number: int) -> Path | None:
        return None if self.folder is None else self.folder / f"{self._identity(number)}.jsonl"

    def _kept(self, number: int, queries: pl.DataFrame) -> Run | None:
        """Return what is known already if that is all; the retriever need not be made then."""
        path = self._log(number)
        if path is None or not path.exists():
            return None
        with AnswerLog(path, self._identity(number), queries.rows()) as log:
            if len(log.answers) < queries.height:
                return None
            answers = [log.answers[at] for at in range(queries.height)]
        return to_run(self.name(number), queries, answers)

    def _made(self, number: int) -> ConfiguredRetriever:
        """Make a retriever, and count what it is asked."""
        setting = self.settings[number]
        try:
            made = self.make(**setting)
        except Exception as error:
            raise _CannotBeMadeError(setting, error) from error
        if inspect.isawaitable(made):
            if inspect.iscoroutine(made):
                made.close()
            raise OptionError(
                f"{name_of(self.make)} returned something to be awaited",
                fix="make it a plain function; what it returns may be async",
            )
        own = {}
        if isinstance(made, Retriever):
            own = {each.name: getattr(made, each.name) for each in fields(Retriever)}
            made = own.pop("target")
        chosen = {**own, **self.options}
        call = call_of(made, chosen.get("k"))
        return ConfiguredRetriever(
            self._counted(call),
            **{**chosen, "name": self.name(number), "resume": self._log(number)},
            configuration=self._identity(number),
        )

    def _counted(self, call: Call) -> Callable[[str], Any]:
        def ask(question: str) -> Any:  # noqa: ANN401
            with self._lock:
                self.calls += 1
            return call.function(question)

        async def ask_later(question: str) -> Any:  # noqa: ANN401
            self.calls += 1
            return await call.function(question)

        return ask_later if call.awaited else ask


class _CannotBeMadeError(FindwellError):
    """A configuration that the function refuses: no retriever, so no answers."""

    def __init__(self, setting: Mapping[str, Any], error: BaseException) -> None:
        lines = str(error).strip().splitlines() or [""]
        told = f"{type(error).__name__}: {lines[0]}" if lines[0] else type(error).__name__
        super().__init__(f"it cannot be made: {told}", where=describe_setting(setting))


def check_factory(make: Callable[..., Any], setting: Mapping[str, Any]) -> None:
    """Raise unless the function can be called with the knobs of a setting, by name.

    >>> check_factory(lambda k1, b=0.75: None, {"k2": 1.2})
    Traceback (most recent call last):
    findwell.core.errors.OptionError: space: unknown knob 'k2'
      fix: did you mean k1? (known: k1, b)
    """
    if not callable(make):
        raise OptionError(
            f"a {type(make).__name__} makes no retrievers",
            fix="give a function that takes the knobs by name and returns a retriever",
        )
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):  # built into the interpreter: nothing is known about it
        return
    known = signature.parameters.values()
    if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known):
        named = [each.name for each in known if each.kind in BY_NAME]
        for knob in setting:
            choose_knob(knob, named, "space")
    try:
        signature.bind(**setting)
    except TypeError as error:
        raise OptionError(
            f"{name_of(make)} cannot be called with the knobs of the space alone: {error}",
            fix="add the knob to the space (one value will do), or give it a default",
        ) from None


def defaults_of(make: Callable[..., Any], knobs: Sequence[str]) -> dict[str, Any] | None:
    """Return the values that the function itself has for the knobs; None unless it has all.

    >>> defaults_of(lambda k1=1.2, b=0.75, n=5: None, ["k1", "b"])
    {'k1': 1.2, 'b': 0.75}
    """
    try:
        known = inspect.signature(make).parameters
    except (TypeError, ValueError):
        return None
    found = {knob: known[knob].default for knob in knobs if knob in known}
    complete = len(found) == len(knobs)
    return found if complete and inspect.Parameter.empty not in found.values() else None


BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _nothing(question: str) -> list[str]:
    del question
    return []


def remove_answers(folder: str | os.PathLike[str]) -> None:
    """Remove the answers that were kept in a folder, and the folder if nothing else is in it.

    Other files stay, and so does what a link points to: the folder's name may not be the user's.
    """
    path = Path(folder)
    if path.is_symlink():
        return
    for each in path.glob("*.jsonl"):
        if ANSWERS.fullmatch(each.name):
            each.unlink(missing_ok=True)
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()
