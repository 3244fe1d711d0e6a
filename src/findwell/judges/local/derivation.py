"""Words made from one another: `urbanization` from `urban`, `agricultural` from `agriculture`.

Terms (`findwell.judges.local.terms`) see through inflection only. Here the endings that make a noun
an adjective, a verb or another noun are taken off as well, until a root is left. Roots are coarse
(`universe` and `university` share one), so that a word that is only related counts less than the
word itself, and only where the word itself is missing.
"""

from __future__ import annotations

from functools import lru_cache

SHORTEST = 4  # letters of a root
# of terms, which have lost their last e: `iv` is -ive, `anc` -ance, `ur` -ure
_ENDINGS = """ization isation ational ation ition ion iz isat ment ness ality ity ical ial al ically
ic iv ious ous ist ism er or anc enc ant ent abl ibl ful less ship hood ur ian ary ory y i at"""
ENDINGS = tuple(sorted(_ENDINGS.split(), key=lambda ending: (-len(ending), ending)))
SHORT_ENDINGS = {"al", "ic", "er", "or", "ur", "at", "ent", "ant", "iz", "iv", "y", "i", "ist"}
# before a noun that became a process: `de-forest-ation`; only of words with such an ending
PREFIXES = ("de", "over")
PROCESS = ("ization", "isation", "ation", "iz", "ing")


@lru_cache(maxsize=1 << 16)
def root_of(term: str) -> str:
    """Return the root of an English term; the term itself where there is nothing to take off.

    >>> [root_of(term) for term in ("urbanization", "urban", "industrial", "industry", "pollutant")]
    ['urban', 'urban', 'industr', 'industr', 'pollut']
    >>> [root_of(term) for term in ("agricultur", "agricultural", "nation", "music", "2020s")]
    ['agricult', 'agricult', 'nation', 'music', '2020s']
    """
    if not (term.isascii() and term.isalpha()):
        return term
    found = term
    for _ in range(3):
        shorter = _without_ending(found)
        if shorter == found:
            break
        found = shorter
    return found


def _without_ending(term: str) -> str:
    for ending in ENDINGS:
        least = SHORTEST + 1 if ending in SHORT_ENDINGS else SHORTEST
        if term.endswith(ending) and len(term) - len(ending) >= least:
            return term[: len(term) - len(ending)]
    return term


@lru_cache(maxsize=1 << 14)
def base_of(term: str) -> str:
    """Return the root of what a process is about, without the prefix; else nothing.

    >>> base_of("deforestation"), base_of("desalination"), base_of("decade"), base_of("forest")
    ('forest', 'salin', '', '')
    """
    for prefix in PREFIXES:
        if term.startswith(prefix) and term.endswith(PROCESS):
            root = root_of(term)[len(prefix) :]
            return root if len(root) > SHORTEST else ""
    return ""
