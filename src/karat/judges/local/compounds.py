"""Compounds: `Ladezeit` is about `Laden` and `Zeit`, `Akkuladegerät` about `Akku` and `Laden`.

German and its relatives write several words as one. Which ones is not looked up in a dictionary: a
compound is taken apart by the words of the other text, so that only what both texts have counts.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

COMPOUNDING = frozenset({"de", "nl", "sv", "da", "no"})
SHORTEST = 3  # letters of a part at the front; parts at the end have one more
LINKS = ("", "e", "s", "es", "n", "en", "er", "ens", "ns")
WHOLE = 100


def related_compounds(term: str, held: Iterable[str]) -> tuple[list[str], int]:
    """Return the terms of a text that are parts of a compound, or compounds of it, and their share.

    The share, in percent, is that of the compound's letters.

    >>> related_compounds("ladezeit", ["lad", "akku", "zeit"])
    (['lad', 'zeit'], 100)
    >>> related_compounds("akku", ["akkuladegerat", "motor"])
    (['akkuladegerat'], 100)
    >>> related_compounds("ladezeit", ["lad", "motor"])
    (['lad'], 50)
    """
    terms = [each for each in held if len(each) >= SHORTEST and each.isalpha()]
    if not term.isalpha() or len(term) < SHORTEST:
        return [], 0
    longer = [each for each in terms if len(each) > len(term) + 1 and term in parts_of(each, {term})]
    if longer:
        return longer, WHOLE
    parts = [each for each in terms if len(each) < len(term) - 1 and each in term]
    found = list(dict.fromkeys(parts_of(term, set(parts))))
    letters = sum(len(_link(term, part)) for part in found)
    return found, min(WHOLE, WHOLE * letters // len(term)) if found else 0


def parts_of(word: str, known: Container[str]) -> Iterator[str]:
    """Go through the known words that a compound is made of, from the front and from the end.

    >>> list(parts_of("akkuladegerat", {"akku", "lad", "gerat", "kula"}))
    ['akku', 'lad', 'gerat']
    """
    start = 0
    while len(word) - start > SHORTEST:
        rest = word[start:]
        lengths = range(len(rest) - 1, SHORTEST - 1, -1)
        part = next((rest[:size] for size in lengths if rest[:size] in known), "")
        if not part:
            break
        yield part
        after = rest[len(part) :]
        links = sorted((link for link in LINKS if after.startswith(link)), key=len)
        best = next((it for it in links if _begins(after[len(it) :], known)), links[0])
        start += len(part) + len(best)
    end = word[start:]
    sizes = range(len(end), SHORTEST, -1)
    last = next((end[-size:] for size in sizes if end[-size:] in known), "")
    if last and last != word:
        yield last


def _begins(text: str, known: Container[str]) -> bool:
    return any(text[:size] in known for size in range(SHORTEST, len(text) + 1))


def _link(word: str, part: str) -> str:
    """Return a part with the letter that links it to the next."""
    after = word[word.find(part) + len(part) :]
    return part + (after[:1] if after[:1] in "en" and len(after) > SHORTEST else "")
