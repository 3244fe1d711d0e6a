"""Texts compared as people would: whatever their white space, case, quotation marks and dashes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

from findwell.core.texts.fold import fold_quote, text_of

AROUND_QUOTES = "\"' ."  # what models put around quotes, as folded
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
LEAST_QUOTE = 2  # letters or digits of a quote, unless its text has fewer
# what servers may read as the end of a message instead of as text
SPECIAL = re.compile(
    r"<(?=[|｜]|/?s>|<SYS>>|</SYS>>|(?:start|end)_of_turn>|(?:bos|eos)>)|\[(?=/?(?:INST|SYS)\])"
)


def is_quoted(quote: str, text: str) -> bool:
    """Tell whether a quote is in a text, after `findwell.core.texts.fold` has folded both.

    >>> is_quoted("“The battery   lasts”", "THE BATTERY\\nlasts six hours")
    True
    >>> is_quoted("six days", "the battery lasts six hours"), is_quoted("...", "a... b")
    (False, False)
    """
    if quote in text and any(map(str.isalnum, quote)):
        return True  # no need to fold
    bare = folded(quote).strip(AROUND_QUOTES)
    return bool(bare) and bare in folded(text)


def proves(quote: str, text: str) -> bool:
    """Tell whether a quote is in a text and long enough to prove anything: not a single letter.

    >>> proves("six", "it lasts six hours"), proves("x", "it lasts six hours"), proves("x", "X.")
    (True, False, True)
    """
    bare, whole = (sum(map(str.isalnum, each)) for each in (quote, text))
    return bare >= min(LEAST_QUOTE, whole) and is_quoted(quote, text)


def covers(quotes: Iterable[str], text: str, claim: str) -> bool:
    """Tell whether quotes from a text hold every number of a claim that the text holds.

    A number that the text writes in another way cannot be looked for, and is not missed.

    >>> chunk = "The museum was opened in 1931 and shows 300 bells."
    >>> covers(["opened in 1931"], chunk, "It was opened in 1931.")
    True
    >>> covers(["The museum was opened"], chunk, "It was opened in 1931.")
    False
    """
    wanted = set(NUMBER.findall(claim)) & set(NUMBER.findall(text))
    return wanted <= set(NUMBER.findall(" ".join(quotes)))


def whole_claims(claims: Iterable[str], text: str) -> bool:
    """Tell whether what a model lists from a text are claims, and not words or dates out of it.

    A claim has at least three words, or six signs in a script without spaces.

    >>> text = "Ida founded it on April 21."
    >>> whole_claims(["Ida founded it."], text), whole_claims(["Ida", "April 21"], text)
    (True, False)
    >>> whole_claims(["東京は日本の首都です"], "東京は日本の首都です。")
    True
    """

    def whole(claim: str) -> bool:
        words = claim.split()
        return len(words) >= 3 or (len(words) == 1 and not claim.isascii() and len(claim) >= 6)

    return not whole(text) or all(map(whole, claims))


@functools.lru_cache(maxsize=128)
def folded(text: str) -> str:
    """Return a text without what copies of it differ in."""
    return text_of(fold_quote(tame(text))[0])


def tame(text: str) -> str:
    """Put a space into what a server may take for the end of a message, as prompts do.

    >>> tame("a <b> <|im_end|> [/INST]")
    'a <b> < |im_end|> [ /INST]'
    """
    return SPECIAL.sub(lambda found: f"{found[0]} ", text)


def distinct(texts: Iterable[str], form: Callable[[str], str] | None = None) -> list[str]:
    """Return the first text of each form, by default of each that copies may have.

    >>> distinct(["Brasília", "Rio", "BRASÍLIA"], str.casefold)
    ['Brasília', 'Rio']
    """
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault((form or folded)(text) or text, text)
    return list(first.values())
