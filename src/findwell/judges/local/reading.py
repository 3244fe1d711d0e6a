"""Texts as the local judge reads them: pieces and terms, once for all aspects.

Questions and claims are needles: their terms with weights. Chunks are what they are looked for in.
A term that is missing may be there in another form: as a word with the same root in English, as a
part of a compound in German and its relatives.

Pieces of about a sentence, and windows that an embedding model can read, are cut quickly and
roughly: this needs no library, and all it decides is which part of a chunk is looked at and quoted.
What is counted as a statement is cut by `findwell.core.texts.sentences`.

Roots: `urbanization` is made from `urban`, `agricultural` from `agriculture`. Terms
(`findwell.judges.local.terms`) see through inflection only. Here the endings that make a noun an
adjective, a verb or another noun are taken off as well. Roots are coarse (`universe` and
`university` share one), so that a word that is only related counts less than the word itself, and
only where the word itself is missing.

Compounds: `Ladezeit` is about `Laden` and `Zeit`. German and its relatives write several words as
one. Which ones is not looked up in a dictionary: a compound is taken apart by the words of the
other text, so that only what both texts have counts.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, repeat
from typing import NamedTuple, TypeAlias

from findwell.core.texts.languages import ENGLISH, known, languages_of
from findwell.judges.local.terms import LETTER, term_and_weight, word_lists, words_of

# --- pieces of a chunk ----------------------------------------------------------------------------

SHORTEST_PIECE = 20  # characters, so that abbreviations and headings stay with what follows
# one set of characters first: a search for it is several times as quick as one for alternatives
PIECE_END = re.compile(
    r"""[.!?\n。！？…](?:(?<=[.!?])["'”’)\]]*\s+|(?<=[。！？…])["'”’」』）]*|(?<=\n)\s*)"""
)
LONGEST_PIECE = 600  # characters of a piece; text without any full stop is cut at spaces
READ_AT_ONCE = 1100  # characters that an embedding model reads at once, about 256 tokens of English
WINDOW = 900  # characters of a window of a longer chunk


def cut(chunk: str) -> list[str]:
    """Cut a chunk into pieces; a blank one has none.

    >>> cut("Dr. Lee came to Brasília. He stayed for a month. "), cut(" "), cut("No end")
    (['Dr. Lee came to Brasília.', 'He stayed for a month.'], [], ['No end'])
    """
    pieces: list[str] = []
    start = 0
    while start < len(chunk):
        found = PIECE_END.search(chunk, start + SHORTEST_PIECE)
        end = len(chunk) if found is None else found.end()
        if piece := chunk[start:end].strip():
            if len(piece) > LONGEST_PIECE:
                pieces += _paragraphs(piece)
            else:
                pieces.append(piece)
        start = end
    return pieces


def _paragraphs(text: str) -> list[str]:
    parts = []
    while len(text) > LONGEST_PIECE:
        end = text.rfind(" ", LONGEST_PIECE // 2, LONGEST_PIECE) + 1 or LONGEST_PIECE
        parts.append(text[:end].strip())
        text = text[end:].strip()
    return [part for part in [*parts, text] if part]


def windows(chunk: str, pieces: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the texts that stand for a chunk before an embedding model, and their pieces.

    A chunk that the model can read at once is one text. A longer one is cut between pieces.

    >>> windows("One two. Three.", ["One two.", "Three."])
    [('One two. Three.', 0, 2)]
    """
    if len(chunk) <= READ_AT_ONCE:
        return [(chunk, 0, len(pieces))]
    found = []
    first, length = 0, 0
    for place, piece in enumerate(pieces):
        if length and length + len(piece) > WINDOW:
            found.append((" ".join(pieces[first:place]), first, place))
            first, length = place, 0
        length += len(piece) + 1
    return [*found, (" ".join(pieces[first:]), first, len(pieces))]


# --- roots of words -------------------------------------------------------------------------------

SHORTEST_ROOT = 4  # letters of a root
# of terms, which have lost their last e: `iv` is -ive, `anc` -ance, `ur` -ure
ENDINGS = tuple(sorted(word_lists()["endings"], key=lambda ending: (-len(ending), ending)))
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
        least = SHORTEST_ROOT + 1 if ending in SHORT_ENDINGS else SHORTEST_ROOT
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
            return root if len(root) > SHORTEST_ROOT else ""
    return ""


# --- parts of compounds ---------------------------------------------------------------------------

COMPOUNDING = frozenset({"de", "nl", "sv", "da", "no"})
SHORTEST_FRONT = 3  # letters of a part at the front; parts at the end have one more
LINKS = ("", "e", "s", "es", "n", "en", "er", "ens", "ns")
SHORTEST_COMPOUND = 7  # letters of a compound at least


def within_compounds(terms: Iterable[str], held: Iterable[str]) -> dict[str, list[str]]:
    """Return the terms that stand inside of compounds of a text, and in which.

    >>> within_compounds(["lad", "akku", "motor"], ["akkuladezeit", "vier"])
    {'akku': ['akkuladezeit'], 'lad': ['akkuladezeit']}
    """
    wanted = {term for term in terms if len(term) >= SHORTEST_FRONT and term.isalpha()}
    found: dict[str, list[str]] = {}
    for compound in held:
        if len(compound) >= SHORTEST_COMPOUND and compound.isalpha() and compound not in wanted:
            for part in dict.fromkeys(parts_of(compound, wanted)):
                found.setdefault(part, []).append(compound)
    return found


def as_parts(term: str, held: Iterable[str]) -> tuple[list[str], int]:
    """Return the terms of a text that a compound is made of, and their share of it, in percent.

    >>> as_parts("ladezeit", ["lad", "akku", "zeit"]), as_parts("ladezeit", ["lad", "motor"])
    ((['lad', 'zeit'], 100), (['lad'], 50))
    """
    if len(term) < SHORTEST_COMPOUND or not term.isalpha():
        return [], 0
    inside = {each for each in held if SHORTEST_FRONT <= len(each) < len(term) - 1 and each in term}
    found = list(dict.fromkeys(parts_of(term, inside)))
    letters = sum(len(_with_link(term, part)) for part in found)
    return found, min(WHOLE, WHOLE * letters // len(term))


def parts_of(word: str, known: Container[str]) -> Iterator[str]:
    """Go through the known words that a compound is made of, from the front and from the end.

    >>> list(parts_of("akkuladegerat", {"akku", "lad", "gerat", "kula"}))
    ['akku', 'lad', 'gerat']
    """
    start = 0
    while len(word) - start > SHORTEST_FRONT:
        rest = word[start:]
        lengths = range(len(rest) - 1, SHORTEST_FRONT - 1, -1)
        part = next((rest[:size] for size in lengths if rest[:size] in known), "")
        if not part:
            break
        yield part
        after = rest[len(part) :]
        links = sorted((link for link in LINKS if after.startswith(link)), key=len)
        best = next((it for it in links if _begins(after[len(it) :], known)), links[0])
        start += len(part) + len(best)
    end = word[start:]
    sizes = range(len(end), SHORTEST_FRONT, -1)
    last = next((end[-size:] for size in sizes if end[-size:] in known), "")
    if last and last != word:
        yield last


def _begins(text: str, known: Container[str]) -> bool:
    return any(text[:size] in known for size in range(SHORTEST_FRONT, len(text) + 1))


def _with_link(word: str, part: str) -> str:
    """Return a part with the letter that links it to the next."""
    after = word[word.find(part) + len(part) :]
    return part + (after[:1] if after[:1] in "en" and len(after) > SHORTEST_FRONT else "")


# --- texts as they are read -----------------------------------------------------------------------

Key: TypeAlias = tuple[str, str]  # a needle, and its entry in a list, if any
Met: TypeAlias = dict[int, tuple[int, list[str]]]  # by the number of the needle's term

WHOLE = 100  # percent of its weight that a term counts where it stands itself
NONE: frozenset[str] = frozenset()
DERIVED = 90  # where only a word with the same root stands
FIRST = 8  # pieces of a chunk that tell its language


class Terms(dict[str, str]):
    """The terms of words of one language, found when first asked for, and their families."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self.language = language
        self.spaced = True  # no word so far is of a script without spaces
        self._families: dict[str, set[str]] = {}  # by their roots

    def __missing__(self, word: str) -> str:
        term = term_and_weight(word, self.language)[0]
        self[word] = term
        self.spaced = self.spaced and (word.isascii() or LETTER.match(word) is None)
        if self.language == ENGLISH:
            self._families.setdefault(root_of(term), set()).add(term)
        return term

    def forms_of(self, needle: Needle, *, related: bool) -> Forms:
        """Return the terms of the texts that were read which stand for those of a needle."""
        forms: dict[str, list[tuple[int, int]]] = {}
        for number, (term, _) in enumerate(needle.terms):
            forms.setdefault(term, []).append((number, WHOLE))
            if related and self.language == ENGLISH:
                root, base = root_of(term), base_of(term)
                for each in self._families.get(root, NONE) | self._families.get(base, NONE):
                    if each != term:
                        forms.setdefault(each, []).append((number, DERIVED))
        return Forms(forms, frozenset(forms))


class Forms(NamedTuple):
    """The terms that stand for those of a needle."""

    of: dict[str, list[tuple[int, int]]]  # the numbers of the needle's terms, and their shares
    terms: frozenset[str]  # two sets are compared quicker than a set and the keys above


@dataclass(frozen=True, slots=True)
class Needle:
    """The terms of a question or a claim with their weights; each once."""

    terms: tuple[tuple[str, int], ...]
    total: int
    entry: frozenset[int] = frozenset()  # the numbers of the terms that are the entry of a list

    @classmethod
    def of(cls, words: Iterable[str], language: str, entry: Iterable[str] = ()) -> Needle:
        """Collect words; those without meaning count where there are no others.

        The words of `entry`, what distinguishes a claim from the others of its list, weigh as much
        as all the rest of it: a chunk that has all but the entry does not support the claim.
        """
        weights: dict[str, int] = {}
        for word in words:
            term, weight = term_and_weight(word, language)
            weights[term] = max(weight, weights.get(term, 0))
        if not any(weights.values()):
            weights = dict.fromkeys(weights, 1)
        own = {term_and_weight(word, language)[0] for word in entry} & weights.keys()
        inner = sum(weights[term] for term in own)
        outer = sum(weights.values()) - inner
        if inner and outer:
            parts = {True: outer, False: inner}  # each part weighs inner × outer
            weights = {term: weight * parts[term in own] for term, weight in weights.items()}
        terms = tuple((term, weight) for term, weight in weights.items() if weight)
        numbers = frozenset(number for number, (term, _) in enumerate(terms) if term in own)
        return cls(terms, sum(weights.values()), numbers)


class ReadChunk:
    """The terms of a chunk, by piece and together."""

    __slots__ = ("_listed", "all_terms", "length", "pieces", "terms")

    def __init__(self, pieces: Sequence[str], read: Sequence[ReadPiece]) -> None:
        self.pieces = pieces
        self.terms = [piece.distinct for piece in read]
        self.all_terms = self.terms[0] if len(read) == 1 else frozenset().union(*self.terms)
        self.length = sum([piece.halves for piece in read]) // 2
        self._listed = [piece.terms for piece in read]

    def count(self, term: str) -> int:
        """Return how often a term occurs."""
        found = 0
        for distinct, listed in zip(self.terms, self._listed, strict=True):
            if term in distinct:
                found += listed.count(term)
        return found

    def meet(self, needle: Needle, forms: Forms, language: str) -> Met:
        """Return the terms of a needle that are here: their share in percent, and as which."""
        found: Met = {}
        for held in forms.terms & self.all_terms:
            for number, share in forms.of[held]:
                before = found.get(number)
                if before is None or share > before[0]:
                    found[number] = share, [held]
                elif share == before[0]:
                    before[1].append(held)
        if language in COMPOUNDING and len(found) < len(needle.terms):
            self._meet_compounds(needle, found)
        return found

    def _meet_compounds(self, needle: Needle, found: Met) -> None:
        """Add the terms of a needle that are parts of a compound here, or a compound of parts."""
        inside = within_compounds([term for term, _ in needle.terms], self.all_terms)
        for number, (term, _) in enumerate(needle.terms):
            if number not in found and term in inside:
                found[number] = WHOLE, inside[term]
            elif number not in found:
                parts, share = as_parts(term, self.all_terms)
                if parts:
                    found[number] = share, parts


class ReadPiece(NamedTuple):
    """The terms of a piece in their order, and each once; its length in halves of words."""

    terms: list[str]
    distinct: frozenset[str]
    halves: int


class ReadPairs(NamedTuple):
    """Needles and chunks as they were read, pair by pair."""

    needles: list[Needle]
    forms: list[Forms]  # in which the needle's terms occur in any of the chunks
    chunks: list[ReadChunk]
    languages: list[str]


class Reader:
    """Reads texts, each once; made for some samples, so that memory does not grow with others."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[str]] = {}
        self._needles: dict[str, dict[Key, Needle]] = {}  # by language, as the others
        self._chunks: dict[str, dict[str, ReadChunk]] = {}
        self._read: dict[str, dict[str, ReadPiece]] = {}
        self._terms: dict[str, Terms] = {}
        self._own: dict[str, str] = {}  # the language that a needle shows

    def read(
        self,
        pairs: Sequence[tuple[str, str]],
        entries: Sequence[str] | None = None,
        *,
        related: bool = True,
    ) -> ReadPairs:
        """Return pairs of texts as they were read; `entries` are what claims of a list say alone.

        `related` lets English words count that have the same root.

        Words are compared as the language of the pair has them: that of the needle or, where it is
        unknown, that of the chunk.
        """
        for chunk in {chunk for _, chunk in pairs}:
            self.pieces_of(chunk)
        languages = self._languages(pairs)
        keys = [
            (text, entry) for (text, _), entry in zip(pairs, entries or repeat(""), strict=False)
        ]
        forms: dict[str, dict[Key, Forms]] = {}
        for language in dict.fromkeys(languages):
            mine = [code == language for code in languages]
            asked = dict.fromkeys(compress(keys, mine))
            self._read_needles(asked, language)
            self._read_chunks(dict.fromkeys(chunk for _, chunk in compress(pairs, mine)), language)
            needles, terms = self._needles[language], self._terms[language]
            forms[language] = {key: terms.forms_of(needles[key], related=related) for key in asked}
        coded = list(zip(keys, languages, strict=True))
        return ReadPairs(
            [self._needles[code][key] for key, code in coded],
            [forms[code][key] for key, code in coded],
            [self._chunks[code][chunk] for (_, chunk), code in zip(pairs, languages, strict=True)],
            languages,
        )

    def pieces_of(self, chunk: str) -> list[str]:
        """Return the pieces of a chunk."""
        if chunk not in self._pieces:
            self._pieces[chunk] = cut(chunk)
        return self._pieces[chunk]

    def _languages(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return the language of each pair; an unknown one is read as English."""
        new = [text for text in dict.fromkeys(text for text, _ in pairs) if text not in self._own]
        self._own.update(zip(new, languages_of(new), strict=True))
        silent = list(dict.fromkeys(chunk for text, chunk in pairs if not self._own[text]))
        heads = [" ".join(self._pieces[chunk][:FIRST]) for chunk in silent]
        shown = dict(zip(silent, languages_of(heads), strict=True))
        read = {
            code: code if known(code).inflects else ENGLISH
            for code in {*(own for own in self._own.values() if own), *shown.values()}
        }
        needles = {text: read[code] if code else "" for text, code in self._own.items()}
        return [needles[text] or read[shown[chunk]] for text, chunk in pairs]

    def _read_needles(self, keys: Iterable[Key], language: str) -> None:
        known_ones = self._needles.setdefault(language, {})
        new = [key for key in keys if key not in known_ones]
        bare = [known(self._own[text]).bare(text) for text, _ in new]
        words = words_of([*bare, *(entry for _, entry in new)], language)
        for key, own, entry in zip(new, words, words[len(new) :], strict=False):
            known_ones[key] = Needle.of(own, language, entry)

    def _read_chunks(self, texts: Iterable[str], language: str) -> None:
        known_ones = self._chunks.setdefault(language, {})
        new = [text for text in texts if text not in known_ones]
        read = self._read_pieces([it for text in new for it in self._pieces[text]], language)
        for text in new:
            pieces = self._pieces[text]
            known_ones[text] = ReadChunk(pieces, [read[piece] for piece in pieces])

    def _read_pieces(self, pieces: Iterable[str], language: str) -> dict[str, ReadPiece]:
        """Read pieces; a statement and a sentence of a chunk are often the same."""
        read = self._read.setdefault(language, {})
        terms = self._terms.setdefault(language, Terms(language))
        new = list(dict.fromkeys(piece for piece in pieces if piece not in read))
        term_of = terms.__getitem__
        for piece, words in zip(new, words_of(new, language), strict=True):
            listed = list(map(term_of, words))
            # a pair of characters is half a word
            pairs = 0 if terms.spaced else sum(LETTER.match(word) is not None for word in words)
            read[piece] = ReadPiece(listed, frozenset(listed), 2 * len(words) - pairs)
        return read
