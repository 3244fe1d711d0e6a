"""A sample as a model sees it: each piece under its id and between marks that no data can imitate.

Every piece of data is between <NAME NUMBER> and </NAME NUMBER>. The number follows from the
data, so that the same data make the same prompt, and is one that the data do not contain, however
its digits are written. In a list each piece is one line that begins with its id.
"""

from __future__ import annotations

import hashlib
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from string import digits
from typing import TYPE_CHECKING

from findwell.judges.aspects import Aspect, VerdictShape, find_aspect
from findwell.judges.client.budget import estimate_tokens
from findwell.judges.quotes import tame

if TYPE_CHECKING:
    from findwell.judges.verdicts import Sample

DIGITS = 6
GROWTH = 8  # this many numbers are tried before they get longer
ALL = "all"  # the id of the list as a whole


@dataclass(frozen=True, slots=True)
class Fence:
    """The number in the marks of a prompt."""

    number: str

    @classmethod
    def around(cls, first: Sequence[str], others: Sequence[str] = ()) -> Fence:
        """Choose a number by the first texts that is in none of the texts.

        >>> Fence.around(["What is a ferry?"]).block("question", "What is a ferry?")
        '<question 823413>\\nWhat is a ferry?\\n</question 823413>'
        """
        seed = b"\0".join(text.encode("utf-8", "surrogatepass") for text in first)
        seen = plain_digits("\n".join((*first, *others)))
        attempt = 0
        while (number := _number(seed, attempt)) in seen:
            attempt += 1
        return cls(number)

    def block(self, name: str, text: str) -> str:
        """Return a text between its marks."""
        return f"<{name} {self.number}>\n{tame(text)}\n</{name} {self.number}>"

    def lines(self, name: str, texts: Mapping[str, str]) -> str:
        """Return texts between marks, each on one line behind its id."""
        lines = (f"{each} {' '.join(tame(text).split())}" for each, text in texts.items())
        return "\n".join([f"<{name} {self.number}>", *lines, f"</{name} {self.number}>"])


def _number(seed: bytes, attempt: int) -> str:
    hashed = hashlib.sha256(b"%d\0%s" % (attempt, seed)).hexdigest()
    return str(int(hashed, 16))[-DIGITS - attempt // GROWTH :]


def plain_digits(text: str) -> str:
    """Return a text with plain digits, and without what is invisible between them.

    >>> plain_digits("５٤\u200b3 ②")
    '543 2'
    """
    if text.isascii():
        return text
    hidden = (letter for letter in set(text) if unicodedata.category(letter) == "Cf")
    plain = {ord(letter): str(unicodedata.digit(letter, letter)) for letter in set(text)}
    return text.translate(plain | dict.fromkeys(map(ord, hidden), ""))


@dataclass(frozen=True, slots=True)
class PromptItems:
    """The chunks c1, c2, … of a sample, and by aspect its items k1, … or parts c1.s1, …"""

    fence: Fence
    question: str
    chunks: Mapping[str, str]
    units: Mapping[str, Mapping[str, str]]  # by aspect: items or parts, by id
    sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # quotes of parts
    cut: frozenset[str] = frozenset()  # what is shown only in part
    reference: str = ""

    def judged(self, aspect: Aspect) -> Mapping[str, str]:
        """Return what is judged: the ids that an answer must hold, with their texts."""
        if aspect.shape is VerdictShape.CHUNKS:
            return self.chunks
        if aspect.shape is VerdictShape.LIST:
            return {ALL: ""} if self.chunks else {}
        return self.units.get(aspect.name, {})


def number_items(
    sample: Sample,
    most_tokens: int,
    items: Mapping[str, Sequence[str]],
    parts: Mapping[str, Sequence[Sequence[str]]],
    sources: Mapping[str, Mapping[str, str]],
) -> PromptItems:
    """Give ids to the pieces of a sample, and cut chunks and parts that have more tokens."""
    cut: set[str] = set()

    def shorten(texts: Mapping[str, str]) -> dict[str, str]:
        short = {each: cut_text(text, most_tokens) for each, text in texts.items()}
        cut.update(each for each, text in texts.items() if len(short[each]) < len(text))
        return short

    chunks = shorten(numbered("c", sample.chunks))
    units = {name: numbered(find_aspect(name).prefix, texts) for name, texts in items.items()}
    for name, rows in parts.items():
        prefix = find_aspect(name).prefix
        pairs = zip(chunks, rows, strict=False)
        inside = (numbered(f"{chunk}.{prefix}", texts) for chunk, texts in pairs)
        units[name] = shorten({each: text for texts in inside for each, text in texts.items()})
    others = (
        sample.reference,
        *(text for texts in items.values() for text in texts),
        *(text for rows in parts.values() for texts in rows for text in texts),
    )
    # the number not by the items and the like, so that calls about one sample begin alike
    fence = Fence.around((sample.question, *sample.chunks), others)
    question, reference = sample.question, sample.reference
    return PromptItems(fence, question, chunks, units, sources, frozenset(cut), reference)


def numbered(prefix: str, texts: Iterable[str]) -> dict[str, str]:
    """Give ids to texts.

    >>> numbered("c", ["a", "b"])
    {'c1': 'a', 'c2': 'b'}
    """
    return {f"{prefix}{number}": text for number, text in enumerate(texts, 1)}


def by_chunk(parts: Iterable[str]) -> dict[str, list[str]]:
    """Return the ids of parts by the chunk that they are in."""
    found: dict[str, list[str]] = {}
    for each in parts:
        found.setdefault(chunk_of(each), []).append(each)
    return found


def chunk_of(part: str) -> str:
    """Return the id of the chunk that a part is in.

    >>> chunk_of("c12.s3"), chunk_of("c12")
    ('c12', 'c12')
    """
    return part.partition(".")[0]


def cut_text(text: str, most_tokens: int) -> str:
    """Return as much of the beginning of a text as has this many tokens.

    >>> cut_text("The battery lasts six hours.", 3)
    'The battery '
    """
    if len(text) <= most_tokens or estimate_tokens(text) <= most_tokens:
        return text
    lengths = range(len(text) + 1)
    fitting = bisect_right(lengths, most_tokens, key=lambda length: estimate_tokens(text[:length]))
    return text[: fitting - 1]


def ranges(ids: Iterable[str], to: str = " to ") -> str:
    """Name ids, in short where they follow each other.

    >>> ranges(["c1", "c2", "c3", "c5", "c7.s1", "c7.s2"]), ranges(["all"])
    ('c1 to c3, c5, c7.s1 to c7.s2', 'all')
    """
    runs: list[list[str]] = []
    expected = ""
    for each in ids:
        if each == expected:
            runs[-1].append(each)
        else:
            runs.append([each])
        head = each.rstrip(digits)
        expected = f"{head}{int(each[len(head) :]) + 1}" if head != each else ""
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}{to}{run[-1]}" for run in runs)
