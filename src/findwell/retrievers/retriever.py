"""What a retriever is, a function, an object of a framework or an address; how it is called."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypedDict

from findwell.core.errors import FindwellError, InputError, OptionError, choose, takes_options
from findwell.core.findings import shorten
from findwell.io.read import RETRIEVER_METHODS, Kind

# what a retriever may call the number of documents that it is asked for
SIZES = ("k", "top_k", "similarity_top_k", "limit", "n_results", "num_results", "size")


class Invokable(Protocol):
    """A retriever as LangChain has them."""

    def invoke(self, input: Any, /) -> Any:  # noqa: ANN401, A002
        """Return what was retrieved."""


class Retrieving(Protocol):
    """A retriever as LlamaIndex has them."""

    def retrieve(self, question: Any, /) -> Any:  # noqa: ANN401
        """Return what was retrieved."""


class Runnable(Protocol):
    """A retriever as Haystack has them."""

    run: Callable[..., Any]


class RetrievalOptions(TypedDict, total=False):
    """How a retriever is asked: options of `retrieve`, and fields of `Retriever`."""

    k: int | None
    concurrency: int
    timeout: float | None
    retries: int
    warmup: int
    max_errors: int | None
    resume: str | os.PathLike[str] | None
    id_from: str | None
    name: str


@takes_options()
@dataclass(frozen=True)
class Retriever:
    """A retriever, and how it is asked; a run for `findwell.evaluate` and `findwell.compare`.

    `target` is a function of a question, sync or async, or an object with `invoke`, `retrieve` or
    `run`, or their async forms. `k` is how many documents of each answer count (None: all); a
    retriever that has a parameter for it (`k`, `top_k`, `limit`, …) is asked for this many.
    `concurrency` questions are asked at a time. A question without an answer after `timeout`
    seconds has failed; `retries` is how often a failed one is asked again. The first `warmup`
    questions are asked once before anything is measured. With more than `max_errors` failures
    asking stops; None: when the first ten have all failed. `resume` is a file in which answers are
    kept as they come, so that asking goes on where it ended. `id_from` names the metadata that
    holds the id of a document, as in `metadata.chunk`.

    >>> Retriever(lambda question: ["d1", "d2"], k=1, concurrency=8).k
    1
    """

    target: Any
    k: int | None = None
    concurrency: int = 1
    timeout: float | None = None
    retries: int = 0
    warmup: int = 0
    max_errors: int | None = None
    resume: str | os.PathLike[str] | None = None
    id_from: str | None = None
    name: str = ""

    input_kind: ClassVar = Kind.RETRIEVER

    def __post_init__(self) -> None:
        """Check the numbers, and that the target can be asked at all."""
        least = {"concurrency": 1, "retries": 0, "warmup": 0, "k": 1, "max_errors": 0}
        for what, number in least.items():
            value = getattr(self, what)
            if value is None and what in ("k", "max_errors"):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < number:
                raise OptionError(
                    f"{what} is {value!r}", fix=f"give a whole number from {number} up"
                )
        if self.timeout is not None and not 0 < self.timeout < float("inf"):
            raise OptionError(f"timeout is {self.timeout!r}", fix="give seconds above 0, or None")
        call_of(self.target, self.k)

    @property
    def identity(self) -> str:
        """Return a hash of what decides about the answers: the retriever and what it is asked."""
        told = [describe(self.target), self.k, self.id_from]
        return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()[:16]


RetrieverLike: TypeAlias = Retriever | Callable[..., Any] | Invokable | Retrieving | Runnable


class Call(NamedTuple):
    """How a retriever is called with a question."""

    function: Callable[[str], Any]
    awaited: bool


def call_of(target: object, k: int | None) -> Call:
    """Return how a retriever is called; the number of documents is passed where it takes one."""
    if isinstance(target, type):
        raise OptionError(
            f"{target.__name__} is a class, not a retriever", fix="give an instance of it"
        )
    found = [getattr(target, name, None) for name in RETRIEVER_METHODS]
    methods: list[Any] = [method for method in found if callable(method)]
    function: Any = methods[0] if methods else target
    if not callable(function):
        raise InputError(
            f"a {type(target).__name__} is not a retriever",
            fix="give a function of a question, or an object with invoke, retrieve or run",
        )
    awaited = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose call is async
    )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built into the interpreter: nothing is known about it
        return Call(function, awaited)
    size = next((name for name in SIZES if name in signature.parameters), None)
    sizes = {} if size is None or k is None else {size: k}
    try:
        signature.bind("?", **sizes)
    except TypeError as error:
        raise OptionError(
            f"{name_of(target)} cannot be called with a question alone: {error}",
            fix="give k, or wrap it: lambda question: search(question, …)",
        ) from None
    return Call(partial(function, **sizes) if sizes else function, awaited)


def name_of(target: object) -> str:
    """Return what a retriever is called: its function or its class.

    >>> name_of(sorted), name_of({}.get)
    ('sorted', 'get')
    """
    own = getattr(target, "__name__", None)
    if isinstance(own, str) and own != "<lambda>":
        return own
    if isinstance(target, partial):
        return name_of(target.func)
    return "retriever" if inspect.isroutine(target) else type(target).__name__


def describe(target: object) -> str:
    """Return what tells a retriever from another: a name that does not change between processes."""
    told = getattr(target, "configuration", None)
    if isinstance(told, str):
        return told
    if isinstance(target, partial):
        return f"{describe(target.func)} {target.args} {sorted(target.keywords)}"
    known = target if inspect.isroutine(target) else type(target)
    return f"{known.__module__}:{known.__qualname__}"


def _broken_module(text: str, module: str, error: BaseException) -> InputError:
    """Return the error for a module of the user's own that cannot be imported."""
    places = [(each.filename, each.lineno) for each in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno))
    here = [(file, line) for file, line in places if Path(file).is_relative_to(Path.cwd())]
    place = "".join(f" ({file}, line {line})" for file, line in (here or places)[-1:])
    reason = next(iter(traceback.format_exception_only(error)[-1].splitlines()), "")
    fix = "correct the module; --debug shows the traceback"
    if isinstance(error, ModuleNotFoundError):
        fix = (
            f"install {error.name} where findwell is installed, or run findwell with the Python of "
            "your project: python -m findwell"
        )
    return InputError(
        f"the module {module!r} cannot be imported: {shorten(reason, 300)}{place}",
        where=text,
        fix=fix,
    )


def import_retriever(text: str) -> Any:  # noqa: ANN401
    """Return the object that `module:attribute` names; modules of the working folder count.

    With arguments behind the name, `app:make_retriever(size=500)`, it is what the function returns.

    >>> import_retriever("findwell.retrievers.retriever:name_of").__name__
    'name_of'
    >>> import_retriever("fractions:Fraction(numerator=1, denominator=2)")
    Fraction(1, 2)
    """
    module, colon, named = text.partition(":")
    path, opened, arguments = named.partition("(")
    if not (module and colon and path):
        raise OptionError(
            f"{text!r} is not a retriever", fix="write module:attribute, as in app.search:retriever"
        )
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
    except FindwellError:
        raise
    except (Exception, SystemExit) as error:
        absent = (isinstance(error, ModuleNotFoundError) and error.name) or ""
        if absent and f"{module}.".startswith(f"{absent}."):
            raise InputError(
                f"there is no module {absent!r} here or among the installed packages",
                where=text,
                fix="run the command in the folder of your code, or install it",
            ) from None
        raise _broken_module(text, module, error) from error
    for name in path.split("."):
        if not hasattr(found, name):
            choose(f"name in {module}", name, [each for each in dir(found) if each[0] != "_"])
        found = getattr(found, name)
    return _made(found, text, f"f({arguments}") if opened else found


def _made(function: Any, text: str, written: str) -> Any:  # noqa: ANN401
    """Return what a function makes of arguments that were written behind its name."""
    given: dict[str, Any] | None = None
    with contextlib.suppress(SyntaxError, ValueError):
        call = ast.parse(written, mode="eval").body
        if isinstance(call, ast.Call) and not call.args:
            given = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    if given is None:
        raise OptionError(
            "the arguments are not names with values",
            where=text,
            fix="write numbers, texts in quotes, True or False: app:make_retriever(size=500)",
        )
    try:
        return function(**given)
    except FindwellError:
        raise
    except Exception as error:
        raise InputError(
            f"the retriever cannot be made: {type(error).__name__}: {shorten(str(error), 300)}",
            where=text,
            fix="check the names and values of the arguments; --debug shows the traceback",
        ) from error
