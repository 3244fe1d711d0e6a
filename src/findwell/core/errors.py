"""The exception tree: every mistake a user can make ends in one of these.

    FindwellError         anything findwell raises on purpose; the command line exits with 2
    ├── InputError        a file, table or record cannot be read as what it should be
    ├── MeasureError      a measure, parameter or cutoff that does not exist
    ├── OptionError       an option has a value findwell does not know
    ├── AlignError        run and gold do not fit together
    ├── SaveError         a result could not be written
    ├── EmbeddingError    a model or function gave no usable vectors
    ├── JudgeError        a judge cannot be asked at all
    ├── RetrieverError    a retriever fails for too many questions
    ├── SparkError        a job of Spark failed for a reason of its own
    ├── PluginError       a plugin does not load, or a name is taken
    ├── ForkError         a forked process in which polars would wait for ever
    └── EndpointError     the server of a judge or of embeddings cannot be asked at all

A message says what was found and where; `fix` says what to do about it.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import polars as pl

    P = ParamSpec("P")
R = TypeVar("R")


class FindwellError(Exception):
    """Base of all errors findwell raises on purpose.

    >>> print(FindwellError("the file is empty", where="run.trec", fix="write it again"))
    run.trec: the file is empty
      fix: write it again
    """

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def in_files(self, files: Mapping[str, str]) -> Self:
        """Name the files of the inputs that it is about; see `naming_files`."""
        self.where = " and ".join(files.get(part, part) for part in self.where.split(" and "))
        return self

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n  fix: {self.fix}" if self.fix else head


class InputError(FindwellError):
    """A file, table or record cannot be read as what it should be."""


class MeasureError(FindwellError, ValueError):
    """A measure, parameter or cutoff that does not exist."""


class OptionError(FindwellError, ValueError):
    """An option has a value findwell does not know."""


class AlignError(FindwellError):
    """Run and gold do not fit together."""


class SaveError(FindwellError):
    """A result could not be written."""


class EmbeddingError(FindwellError):
    """A model or function gave no usable vectors."""


class JudgeError(FindwellError):
    """The judge cannot be asked at all."""


class RetrieverError(FindwellError):
    """A retriever fails for too many questions."""


class SparkError(FindwellError):
    """A job of Spark failed for a reason that is not in its input."""


class PluginError(FindwellError):
    """A plugin does not load, or the name of what it brings is taken."""


class ForkError(FindwellError, RuntimeError):
    """The process was forked after polars had started its threads; see `findwell.core.forks`."""


class EndpointError(FindwellError):
    """The server of a judge or of embeddings: not there, no access, no such model, no answer."""

    def __init__(self, what: str, *, where: str, status: int | None = None, fix: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status


def nearest(
    word: str, known: Iterable[str], *, most: int = 3, spelled: Mapping[str, str] | None = None
) -> str:
    """Return a sentence that suggests the known words nearest to a mistyped one.

    Some of them may be `spelled` in another way there.

    >>> nearest("ndgc", ["nDCG", "DCG", "AP"])
    'did you mean nDCG or DCG?'
    >>> nearest("zzz", ["nDCG", "DCG", "AP"])
    ''
    """
    import difflib  # noqa: PLC0415

    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), folded, n=most, cutoff=0.5)
    names = [(spelled or {}).get(folded[name], folded[name]) for name in close]
    return f"did you mean {', '.join([*names[:-2], ' or '.join(names[-2:])])}?" if names else ""


def check_share(what: str, share: float) -> None:
    """Raise unless a level, a power or an error rate lies between 0 and 1."""
    if not 0 < share < 1:
        raise OptionError(f"the {what} is {share}", fix="give a number between 0 and 1")


def check_draws(what: str, count: int) -> None:
    """Raise unless at least one permutation or sample is asked for."""
    if count < 1:
        raise OptionError(f"{count} {what} were asked for", fix="ask for at least 1")


def takes_options(
    options: type | None = None, elsewhere: Callable[[], Mapping[str, str]] = dict
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: a function or class refuses keywords that it does not take, with a suggestion.

    It takes its own, and those of `options`, a TypedDict: Python itself does not look at what
    `**options` holds. `elsewhere` returns options that others take, with how they are given
    instead.

    >>> from typing import TypedDict
    >>> class Colours(TypedDict, total=False):
    ...     colour: str
    >>> @takes_options(Colours)
    ... def draw(*, size=1, **options): ...
    >>> draw(color="red")
    Traceback (most recent call last):
    findwell.core.errors.OptionError: draw has no option 'color'
      fix: did you mean colour?
    >>> @takes_options(elsewhere=lambda: {"width": "Pen(width=…)"})
    ... def write(text): ...
    >>> write("a", widht=2)
    Traceback (most recent call last):
    findwell.core.errors.OptionError: write has no option 'widht'
      fix: did you mean Pen(width=…)?
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if isinstance(function, type):  # what is made of it is what refuses
            function.__init__ = decorate(function.__init__)  # type: ignore[misc]
            return function
        code, more = function.__code__, options.__annotations__ if options else ()
        known = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *more} - {"self"}

        @wraps(function)
        def checked(*args: P.args, **given: P.kwargs) -> R:
            for name in sorted(given.keys() - known):
                others = {each: how for each, how in elsewhere().items() if each not in known}
                guess = nearest(name, sorted({*known, *others}), most=1, spelled=others)
                fix = guess or f"the options are {', '.join(sorted(known))}"
                called = function.__qualname__.removesuffix(".__init__")
                raise OptionError(f"{called} has no option {name!r}", fix=fix)
            return function(*args, **given)

        return checked

    return decorate


@contextmanager
def naming_files(files: Mapping[str, str]) -> Iterator[None]:
    """Have errors name the files that something was read from.

    Deeper code knows an input by its role, such as `gold` or `run bm25`; `files` says which file
    that is. Under the empty name stands what an error without a place is about. What is about two
    inputs names both, as in `run bm25 and gold`.

    >>> with naming_files({"gold": "qrels.txt"}):
    ...     raise InputError("no item is relevant", where="gold")
    Traceback (most recent call last):
    findwell.core.errors.InputError: qrels.txt: no item is relevant
    """
    try:
        yield
    except FindwellError as error:
        error.in_files(files)
        raise


def how_to_install(extra: str) -> str:
    """Return how findwell is installed with an extra; a release changes this line and no other.

    >>> how_to_install("text")
    "pip install '.[text]' in a clone of findwell"
    """
    return f"pip install '.[{extra}]' in a clone of findwell"


@contextmanager
def needs_package(
    what: str, extra: str = "", *, install: str = "", instead: str = ""
) -> Iterator[None]:
    """Turn a failed import into the error that says what to install, or what to do instead.

    It is an extra of findwell, or something that `install` tells how to install.

    >>> with needs_package("drawing", "report"):
    ...     import no_such_package
    Traceback (most recent call last):
    findwell.core.errors.OptionError: drawing needs the package no_such_package, which is not
    installed
      fix: pip install '.[report]' in a clone of findwell
    """
    try:
        yield
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError)
        why = "is not installed" if absent else f"cannot be imported: {error}"
        name = (error.name or "of that name").partition(".")[0]
        fix = (install or how_to_install(extra)) + (f", or {instead}" if instead else "")
        raise OptionError(f"{what} needs the package {name}, which {why}", fix=fix) from None


def choose(what: str, value: str, known: Iterable[str], *, none: str = "") -> str:
    """Return `value` if it is one of `known`; otherwise raise the error that suggests one.

    `none` says what to do where nothing is known at all.

    >>> choose("dialect", "trec", ["findwell", "trec_eval"])
    Traceback (most recent call last):
    findwell.core.errors.OptionError: unknown dialect 'trec'
      fix: did you mean trec_eval? (known: findwell, trec_eval)
    """
    names = list(known)
    if value in names:
        return value
    raise unknown(what, value, names, none=none)


def unknown(what: str, value: str, names: Iterable[str], *, none: str = "") -> OptionError:
    """Return the error for a value that is not one of the known names, such as `onnx:PATH`.

    >>> unknown("embedder", "onnyx:model", ["minilm", "onnx:PATH"]).fix
    'did you mean onnx? (known: minilm, onnx:PATH)'
    >>> unknown("format", "yaml", ["table", "json"]).fix
    'choose one of: table, json'
    """
    known = list(names)
    head, *heads = (re.split(r"[:(]", name)[0] for name in (value, *known))
    listed, guess = ", ".join(known), nearest(head, heads)
    fix = f"{guess} (known: {listed})" if guess else f"choose one of: {listed}"
    fix = fix if known else none or f"there is no {what} to choose"
    return OptionError(f"unknown {what} {value[:60]!r}", fix=fix)


def choose_column(queries: pl.DataFrame, name: str) -> str:
    """Return the name if it is a column about the queries; otherwise raise the error."""
    none = "only the ids of the queries are known: a table adds columns, --queries FILE (queries=)"
    known = [column for column in queries.columns if column != "query"]
    return choose("column of the queries", name, known, none=none)
