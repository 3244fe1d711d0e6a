"""How many tokens a text has: by a rule that needs no model, a tokenizer's file, or a function."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from findwell.core.errors import OptionError, needs_package
from findwell.core.frames import pl

# A stretch of up to eight Latin letters, of up to three of another alphabet, a character of a
# script that is written without spaces, up to three digits, or a mark. Eight was chosen by
# measuring against the byte-pair encoding cl100k: see docs/cost.md.
APPROXIMATE_PATTERN = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]"
    r"|\p{Latin}{1,8}|\p{L}{1,3}|\p{N}{1,3}|[^\s\p{L}\p{N}]"
)
DEFAULT_TOKENIZER = "approximate"
FILE = "tokenizers:"

TokenizerLike: TypeAlias = "str | Callable[[str], int | Sized] | None"


@dataclass(frozen=True, slots=True, eq=False)
class Tokenizer:
    """Counts tokens; `name` says how, for results."""

    name: str
    count: Callable[[pl.Series], pl.Series]  # of texts, without nulls


def find_tokenizer(given: object) -> Tokenizer:
    """Return the tokenizer of a name, a file or a function.

    Without one, tokens are counted by a rule: deterministic, without a download, and on English
    prose within a few per cent of what models count. `tokenizers:PATH` is a file `tokenizer.json`
    as models bring it. A function is given a text and returns its tokens, or how many there are.

    >>> texts = pl.Series(["Charging takes 4 hours.", ""])
    >>> find_tokenizer(None).count(texts).to_list()
    [5, 0]
    >>> find_tokenizer(str.split).count(texts).to_list()
    [4, 0]
    """
    if given is None or given == DEFAULT_TOKENIZER:
        return Tokenizer(DEFAULT_TOKENIZER, _approximate)
    if isinstance(given, str) and given.startswith(FILE):
        return _from_file(Path(given.removeprefix(FILE)))
    if callable(given):
        return Tokenizer(getattr(given, "__qualname__", repr(given)), _by_function(given))
    raise OptionError(
        f"{given!r} is not a tokenizer",
        fix=f"use {DEFAULT_TOKENIZER}, {FILE}PATH for the tokenizer.json of a model, or in Python "
        "a function",
    )


def _approximate(texts: pl.Series) -> pl.Series:
    return texts.str.count_matches(APPROXIMATE_PATTERN)


def _by_function(function: Callable[[str], object]) -> Callable[[pl.Series], pl.Series]:
    def one(text: str) -> int:
        found = function(text)
        count = found if isinstance(found, int) else len(found) if isinstance(found, Sized) else -1
        if count < 0:
            raise OptionError(
                f"the tokenizer returned {found!r} for a text",
                fix="return the tokens, or how many there are",
            )
        return count

    def count(texts: pl.Series) -> pl.Series:
        distinct = texts.unique(maintain_order=True)
        counts = pl.Series([one(text) for text in distinct], dtype=pl.Int64)
        return texts.replace_strict(distinct, counts).cast(
            pl.Int64
        )  # of no texts, it is still texts

    return count


def _from_file(path: Path) -> Tokenizer:
    with needs_package("a tokenizer's file", "onnx"):
        from tokenizers import Tokenizer as Encoder  # noqa: PLC0415
    try:
        encoder = Encoder.from_buffer(path.read_bytes())
    except OSError as error:
        raise OptionError(
            f"the tokenizer cannot be read: {error.strerror}",
            where=str(path),
            fix=f"name the tokenizer.json of a model: {FILE}PATH",
        ) from None
    except Exception as error:  # noqa: BLE001 - the library raises nothing more specific
        raise OptionError(
            f"this is not a tokenizer: {error}",
            where=str(path),
            fix=f"name the tokenizer.json of a model: {FILE}PATH",
        ) from None
    encoder.no_truncation()
    encoder.no_padding()

    def length(text: str) -> int:
        return len(encoder.encode(text, add_special_tokens=False).ids)

    return Tokenizer(f"{FILE}{path.name}", _by_function(length))
