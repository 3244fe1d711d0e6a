"""Compounds: `Ladezeit` is about `Laden` and `Zeit`, `Akkuladegerät` about `Akku` and `Laden`.

German and its relatives write several words as one. Which ones is not looked up in a dictionary: a
compound is taken apart by the words of the other text, so that only what both texts have counts.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

COMPOUNDING = frozenset({"de", "nl", "sv", "da", "no"})
SHORTEST = 3  # letters of a part at the front; parts at the end have one more
LINKS = ("", "e", "s", "es", "n", "en", "er", "ens", "ns")
COMPOUND = 7  # letters of a compound at least
WHOLE = 100


def within_compounds(terms: Iterable[str], held: Iterable[str]) -> dict[str, list[str]]:
    """Return the terms that stand inside of compounds of a text, and in which.

    >>> within_compounds(["lad", "akku", "motor"], ["akkuladezeit", "vier"])
    {'akku': ['akkuladezeit'], 'lad': ['akkuladezeit']}
    """
    wanted = {term for term in terms if len(term) >= SHORTEST and term.isalpha()}
    found: dict[str, list[str]] = {}
    for compound in held:
        if len(compound) >= COMPOUND and compound.isalpha() and compound not in wanted:
            for part in dict.fromkeys(parts_of(compound, wanted)):
                found.setdefault(part, []).append(compound)
    return found


def as_parts(term: str, held: Iterable[str]) -> tuple[list[str], int]:
    """Return the terms of a text that a compound is made of, and their share of it, in percent.

    >>> as_parts("ladezeit", ["lad", "akku", "zeit"]), as_parts("ladezeit", ["lad", "motor"])
    ((['lad', 'zeit'], 100), (['lad'], 50))
    """
    if len(term) < COMPOUND or not term.isalpha():
        return [], 0
    inside = {each for each in held if SHORTEST <= len(each) < len(term) - 1 and each in term}
    found = list(dict.fromkeys(parts_of(term, inside)))
    letters = sum(len(_with_link(term, part)) for part in found)
    return found, min(WHOLE, WHOLE * letters // len(term))


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


def _with_link(word: str, part: str) -> str:
    """Return a part with the letter that links it to the next."""
    after = word[word.find(part) + len(part) :]
    return part + (after[:1] if after[:1] in "en" and len(after) > SHORTEST else "")
