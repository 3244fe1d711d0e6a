"""Marks around data: a prompt in which no data can pass for a task.

Every piece of data stands between <NAME NUMBER> and </NAME NUMBER>. The number follows from the
data, so that the same data make the same prompt, and it is one that they do not contain, however
its digits are written. Of lists, each piece is a line of its own that begins with its id.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import digits

DIGITS = 6
GROWTH = 8  # so many numbers are tried before they get longer
# what servers may read as the end of a message instead of as text
SPECIAL = re.compile(
    r"<(?=[|｜]|/?s>|<SYS>>|</SYS>>|(?:start|end)_of_turn>|(?:bos|eos)>)|\[(?=/?(?:INST|SYS)\])"
)


@dataclass(frozen=True, slots=True)
class Fence:
    """The number that stands in the marks of a prompt."""

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


def tame(text: str) -> str:
    """Break up what may stand for the end of a message, by a space.

    >>> tame("a <b> <|im_end|> [/INST]")
    'a <b> < |im_end|> [ /INST]'
    """
    return SPECIAL.sub(lambda found: f"{found[0]} ", text)


def plain_digits(text: str) -> str:
    """Return a text with plain digits, and without what is invisible between them.

    >>> plain_digits("５٤\u200b3 ②")
    '543 2'
    """
    if text.isascii():
        return text
    return text.translate(
        {ord(letter): _plain(letter) for letter in set(text) if not letter.isascii()}
    )


def _plain(letter: str) -> str:
    if unicodedata.category(letter) == "Cf":
        return ""
    return str(unicodedata.digit(letter, letter))


def ranges(ids: Iterable[str]) -> str:
    """Name ids, in short where they follow each other.

    >>> ranges(["c1", "c2", "c3", "c5", "c7.s1", "c7.s2"])
    'c1 to c3, c5, c7.s1 to c7.s2'
    """
    runs: list[list[str]] = []
    expected = ""
    for each in ids:
        if each == expected:
            runs[-1].append(each)
        else:
            runs.append([each])
        head = each.rstrip(digits)
        expected = f"{head}{int(each[len(head) :]) + 1}"
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
