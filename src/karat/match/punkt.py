"""NLTK's sentence splitter punkt, with NLTK's data or the copy inside llama-index-core."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

FIX = (
    "pip install nltk && python -m nltk.downloader punkt_tab, or, where only packages can be had, "
    "pip install nltk && pip install --no-deps llama-index-core, whose copy is used"
)
COPY = "llama_index/core/_static/nltk_cache/tokenizers/punkt_tab/english"


def punkt(text: str) -> list[str]:
    """Return the sentences of a text, as NLTK's `sent_tokenize` does."""
    return _tokenizer()(text)


@cache
def _tokenizer() -> Callable[[str], list[str]]:
    try:
        from nltk.tokenize import PunktTokenizer  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        raise OptionError("the splitter punkt needs the package nltk", fix=FIX) from None
    try:
        tokenize: Callable[[str], list[str]] = PunktTokenizer("english").tokenize
    except (LookupError, PermissionError) as error:  # it does not read files with two names
        found = _from_copy()
        if found is None:
            reason = "" if isinstance(error, LookupError) else f" ({error})"
            raise OptionError(
                f"the splitter punkt needs NLTK's data punkt_tab{reason}", fix=FIX
            ) from None
        return found
    return tokenize


def _from_copy() -> Callable[[str], list[str]] | None:
    """Return the splitter with the data inside llama-index-core, if that is installed."""
    from nltk.tokenize.punkt import (  # type: ignore[import-untyped]  # noqa: PLC0415
        PunktParameters,
        PunktSentenceTokenizer,
    )

    try:
        folder = Path(str(distribution("llama-index-core").locate_file(COPY)))
    except PackageNotFoundError:
        return None
    if not folder.is_dir():
        return None
    known = PunktParameters()
    known.abbrev_types.update(row for (row,) in _rows(folder / "abbrev_types.txt"))
    known.sent_starters.update(row for (row,) in _rows(folder / "sent_starters.txt"))
    known.collocations.update(_rows(folder / "collocations.tab"))
    known.ortho_context.update(
        (word, int(context)) for word, context in _rows(folder / "ortho_context.tab")
    )
    tokenize: Callable[[str], list[str]] = PunktSentenceTokenizer(known).tokenize
    return tokenize


def _rows(path: Path) -> list[tuple[str, ...]]:
    return [
        tuple(line.split("\t")) for line in path.read_text("utf-8").removesuffix("\n").split("\n")
    ]
