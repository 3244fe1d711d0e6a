"""Sentences cut into claims: one for each entry of a list.

`The causes are logging, farming, and fires.` says three things, and a chunk may support one and
lack the others. Rules do what they can do safely: lists of three and more entries whose words show
where the first begins. spaCy's parse, where it is installed, also finds pairs and several verbs of
one subject. What is doubtful stays whole: entries joined by `or`, what is denied, what is said of
the entries together (`between`, `a mixture of`). A claim has only words of its sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

from findwell.core.errors import OptionError
from findwell.core.texts.languages import ENGLISH, languages_of
from findwell.judges.local.entities import installed, load_spacy, name_of
from findwell.judges.local.terms import word_lists

Cut: TypeAlias = Callable[[str], Sequence[str]]
Span: TypeAlias = tuple[int, int]  # the first and the last token

KINDS = ("auto", "rules", "spacy", "no")
MOST = 12  # claims of one sentence; more would not be a list of facts
LONGEST = 6  # words of an entry, the last but one
SEVERAL = re.compile(r"\band\b|,", re.IGNORECASE)  # other sentences have nothing to cut at
FRAME = 3  # words that claims of one list share at least
END = re.compile(r"[\s.!?]*$")
WORD = re.compile(r"[^\s,;:]+")
COMMA = re.compile(r"\s?,\s+")
AND = re.compile(r"(?:^|\s)and\s+", re.IGNORECASE)
WORDS = word_lists()
AUXILIARIES = frozenset(WORDS["auxiliaries"])
VERBS = AUXILIARIES | frozenset(WORDS["verbs"])
SINGULAR_VERBS = frozenset({"does", "has", "is", "was"})
DETERMINERS = frozenset(WORDS["determiners"])
PREPOSITIONS = frozenset(WORDS["prepositions"])
NUMERIC = re.compile(r"[$€£¥₹]?\d")
# words that make a clause of an entry, or an entry no list
UNSAFE = frozenset(WORDS["unsafe"])
PRONOUNS = frozenset(WORDS["pronouns"])
DENYING = re.compile(
    r"\b(?:not|never|no|none|nor|neither|without|cannot|except|only)\b|n['’]t\b", re.IGNORECASE
)
BRACKETS = re.compile(r"[()\[\];:\"“”]|''|``")
TOGETHER = re.compile(
    r"\b(?:average|between|blend|combination|combines?|combined|difference|divided|either|"
    r"intersection|mix|mixture|product|ratio|shared|sum|together|total)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A way to cut sentences into claims; the name says which, for the manifest."""

    name: str
    cut: Cut

    def __call__(self, listed: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """Return the claims of several references, given as their sentences; each claim once."""
        doubtful = {text for sentences in listed for text in sentences if SEVERAL.search(text)}
        codes = dict(zip(doubtful, languages_of(list(doubtful)), strict=True))
        cut = {text: self.cut(text) for text in doubtful if codes[text] in ("", ENGLISH)}
        return [
            tuple(dict.fromkeys(claim for text in sentences for claim in cut.get(text, [text])))
            for sentences in listed
        ]


def find_decomposition(kind: str = "auto") -> Decomposition:
    """Return a way to cut: `rules`, `spacy`, `no` (claims stay sentences), or `auto`.

    `auto` asks spaCy's parse where it is installed.

    >>> find_decomposition("rules")([["The causes are logging, farming, and fires."]])
    [('The causes are logging.', 'The causes are farming.', 'The causes are fires.')]
    """
    if kind == "auto":
        kind = "spacy" if installed() else "rules"
    if kind == "no":
        return Decomposition("sentences", lambda sentence: [sentence])
    if kind == "rules":
        return Decomposition("rules", by_rules)
    if kind == "spacy":
        return Decomposition(f"rules+{name_of()}", by_parse)
    raise OptionError(f"unknown way to find claims: {kind!r}", fix=f"one of {', '.join(KINDS)}")


def entries_of(claims: Sequence[str]) -> list[str]:
    """Return for each claim of a reference what it alone says, where its neighbour is like it.

    >>> entries_of(["The causes are logging.", "The causes are farming.", "It is bad."])
    ['logging.', 'farming.', '']
    """
    words = [claim.split() for claim in claims]
    found = ["" for _ in claims]
    for here in range(len(claims)):
        frames = [
            _alike(words[here], words[near])
            for near in (here - 1, here + 1)
            if 0 <= near < len(claims)
        ]
        before, after = max(frames, key=sum, default=(0, 0))
        own = words[here][before : len(words[here]) - after]
        if before + after >= FRAME and own:
            found[here] = " ".join(own)
    return found


def _alike(one: Sequence[str], other: Sequence[str]) -> Span:
    """Return how many words two claims begin and end with, provided that both have others."""
    most = min(len(one), len(other)) - 1
    before = next((at for at in range(most) if one[at] != other[at]), max(most, 0))
    most -= before
    after = next((at for at in range(most) if one[-at - 1] != other[-at - 1]), max(most, 0))
    return before, after


# --- by rules -------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 12)
def by_rules(sentence: str) -> Sequence[str]:
    """Return the claims of a sentence that words alone show.

    >>> by_rules("Floods, storms and fires are among the risks.")[1]
    'storms are among the risks.'
    >>> by_rules("It is a mixture of gin, rum and lime.")
    ['It is a mixture of gin, rum and lime.']
    """
    return _listed(sentence) or [sentence]


def _listed(sentence: str) -> list[str]:
    """Return a claim for each entry of the list in a sentence; nothing where there is none."""
    end = END.search(sentence)
    text, stop = (sentence[: end.start()], end[0].strip()) if end else (sentence, "")
    parts = [part.strip() for part in COMMA.split(text)]
    joined = AND.search(parts[-1])
    if len(parts) < 2 or joined is None or AND.search(parts[-1], joined.end()):
        return []
    last = parts[-1][joined.end() :]
    inner = [*parts[1:-1], *filter(None, [parts[-1][: joined.start()].strip()])]
    if not inner or any(map(AND.match, inner)):
        return []
    before, first = _first_entry(parts[0], inner[0])
    after = ""
    if not before:  # the list begins the sentence: a verb ends it
        last, after = _to_the_verb(last)
    entries = [first, *inner, last]
    commas = len(parts) - 1 + (joined.start() == 0)
    if not all(map(_is_entry, entries[:-1])) or not _is_entry(last, LONGEST * 2):
        return []
    if _is_doubtful(before, after, commas) or _are_dates(entries) or len(entries) > MOST:
        return []
    return [f"{before}{entry}{after}{stop or '.'}" for entry in entries]


def _is_doubtful(before: str, after: str, commas: int) -> bool:
    """Tell whether a list may be none, or whether more is said than of each of its entries.

    What begins with a preposition may be a phrase of its own, and the comma behind it none of the
    list's, unless there are more of them.
    """
    words = [word.lower() for word in WORD.findall(before)]
    if not after and VERBS.isdisjoint(words[1:]):
        return True
    if words and words[0] in PREPOSITIONS | UNSAFE and commas < 3:
        return True
    denied = DENYING.search(before) or DENYING.search(after)
    return bool(denied or TOGETHER.search(before) or TOGETHER.search(after))


def _is_entry(text: str, longest: int = LONGEST) -> bool:
    """Tell whether a part of a sentence can be an entry: short, and without a verb of its own."""
    words = [word.lower() for word in WORD.findall(text)]
    if not 0 < len(words) <= longest or any(mark in text for mark in ";:"):
        return False
    return (AUXILIARIES | UNSAFE | PRONOUNS).isdisjoint(words)


def _are_dates(entries: Sequence[str]) -> bool:
    """Tell whether a comma may belong to a date or an address: a number between words."""
    numbers = [entry.strip().isdigit() for entry in entries]
    return any(numbers) and not all(numbers)


def _first_entry(text: str, second: str) -> tuple[str, str]:
    """Part what stands before a list from its first entry, which is like the second.

    >>> _first_entry("The causes of it are logging", "farming")
    ('The causes of it are ', 'logging')
    >>> _first_entry("He lived in Rome", "in Paris"), _first_entry("Eric", "a vampire")
    (('He lived ', 'in Rome'), ('', ''))
    """
    words = list(WORD.finditer(text))
    begins = WORD.match(second)
    if not words or begins is None:
        return "", ""
    head = begins[0].lower()
    start = None
    if head in PREPOSITIONS:
        start = _last(words, lambda word: word.lower() == head)
    elif head in DETERMINERS:
        start = _last(words, lambda word: word.lower() in DETERMINERS)
    elif NUMERIC.match(head):
        start = _last(words, lambda word: NUMERIC.match(word) is not None)
    elif begins[0][0].isupper():
        run = len(words)
        while run and words[run - 1][0][0].isupper():
            run -= 1
        start = words[run].start() if run < len(words) else None
    else:
        anchor = _last(words[:-1], lambda word: word.lower() in VERBS | PREPOSITIONS, end=True)
        colon = text.rfind(":") + 1
        found = max(colon, -1 if anchor is None else anchor)
        start = len(text) - len(text[found:].lstrip()) if found > 0 else 0
    return ("", "") if start is None else (text[:start], text[start:])


def _last(
    words: Sequence[re.Match[str]], wanted: Callable[[str], bool], *, end: bool = False
) -> int | None:
    """Return where the last word that is wanted begins or ends."""
    found = next((word for word in reversed(words) if wanted(word[0])), None)
    return None if found is None else found.end() if end else found.start()


def _to_the_verb(text: str) -> tuple[str, str]:
    """Part the last entry of a list that begins a sentence from the verb behind it."""
    for word in list(WORD.finditer(text))[1 : LONGEST + 1]:
        if word[0].lower() in VERBS - SINGULAR_VERBS:  # `bed, board and bath is`: one thing
            return text[: word.start()].rstrip(), f" {text[word.start() :]}"
    return "", ""


# --- by spaCy's parse -----------------------------------------------------------------------------


@lru_cache(maxsize=1 << 12)
def by_parse(sentence: str) -> Sequence[str]:
    """Return the claims of a sentence: by the rules, and where these see nothing, by the parse."""
    return _listed(sentence) or _parsed(sentence, load_spacy(parse=True)(sentence))


def _parsed(sentence: str, tokens: Any) -> list[str]:  # noqa: ANN401 - a document of spaCy
    """Cut at the first coordination of a parsed sentence that is safe to cut."""
    if any(map(re.Pattern.search, (DENYING, TOGETHER, BRACKETS), [sentence] * 3)):
        return [sentence]
    for token in tokens:
        if token.dep_ == "conj" or not any(child.dep_ == "conj" for child in token.children):
            continue
        joined = _chain(token)
        spans = _extents(joined)
        ands = {each.lower_ for it in joined for each in it.children if each.dep_ == "cc"}
        if len(joined) > MOST or ands != {"and"} or not _are_apart(spans):
            continue
        cut = _verbs(tokens, joined, spans) or _nouns(tokens, joined, spans)
        if cut:
            return cut
    return [sentence]


def _chain(token: Any) -> list[Any]:  # noqa: ANN401
    """Return the members of a coordination in their order."""
    joined = [token]
    for member in joined:
        joined += [child for child in member.children if child.dep_ == "conj"]
    return sorted(joined, key=lambda member: member.i)


def _extents(joined: Sequence[Any]) -> list[Span]:
    """Return the first and the last token of each member: its words, not those of the next."""
    spans = []
    for member in joined:
        own = [child for child in member.children if child.dep_ not in ("conj", "cc", "punct")]
        edges = [edge.i for child in own for edge in (child.left_edge, child.right_edge)]
        spans.append((min([member.i, *edges]), max([member.i, *edges])))
    return spans


def _are_apart(spans: Sequence[Span]) -> bool:
    """Tell whether members follow each other, with nothing but a comma and an `and` between."""
    return all(0 < after[0] - before[1] - 1 <= 2 for before, after in pairwise(spans))


def _ends(tokens: Any, last: int) -> bool:  # noqa: ANN401
    """Tell whether nothing but a full stop follows a token."""
    return all(token.is_punct or token.is_space for token in tokens[last + 1 :])


def _nouns(tokens: Any, joined: Sequence[Any], spans: Sequence[Span]) -> list[str]:  # noqa: ANN401
    """Return a claim for each noun: of the subject that begins a sentence, or at its end.

    What follows a list elsewhere may belong to its last entry or to all of them.
    """
    first, (start, _), (_, end) = joined[0], spans[0], spans[-1]
    alike = {any(child.dep_ == "det" for child in member.children) for member in joined}
    nouns = all(member.pos_ in ("NOUN", "PROPN") for member in joined) and len(alike) == 1
    short = all(last - begin < LONGEST for begin, last in spans)
    one_name = {token.ent_iob_ for token in tokens[spans[0][1] + 1 : spans[-1][0] + 1]} == {"I"}
    head = first.head if first.dep_ == "pobj" else first
    if not nouns or not short or one_name or head.head.dep_ != "ROOT":
        return []
    if first.dep_.startswith("nsubj") and start == 0:
        verb = tokens[end + 1]
        plural = verb.pos_ in ("VERB", "AUX") and verb.tag_ != "VBZ" and verb.lower_ != "was"
        after = tokens[end + 1 :].text.strip() if plural else ""  # `law and order is`: one thing
        return [f"{tokens[a : b + 1].text} {after}" for a, b in spans] if after else []
    if first.dep_ not in ("attr", "dobj", "pobj") or not _ends(tokens, end):
        return []
    before, stop = tokens[:start].text_with_ws, tokens[end + 1 :].text.strip() or "."
    return [f"{before}{tokens[a : b + 1].text}{stop}" for a, b in spans]


def _verbs(tokens: Any, joined: Sequence[Any], spans: Sequence[Span]) -> list[str]:  # noqa: ANN401
    """Return a claim for each verb of one subject, or each clause with a subject of its own."""
    head, stop = joined[0], tokens[spans[-1][1] + 1 :].text.strip() or "."
    subject = next((child for child in head.children if child.dep_.startswith("nsubj")), None)
    if head.dep_ != "ROOT" or subject is None or not _ends(tokens, spans[-1][1]):
        return []
    begin = subject.right_edge.i + 1
    group = tokens[begin : head.i]
    if subject.i > head.i or {token.pos_ for token in group} - {"AUX", "ADV", "PART"}:
        return []
    before = tokens[:begin].text_with_ws
    claims = [f"{before}{tokens[begin : spans[0][1] + 1].text}{stop}"]
    for member, (first, last) in zip(joined[1:], spans[1:], strict=True):
        text = tokens[first : last + 1].text
        own = [child.dep_ for child in member.children]
        subjects = [child for child in member.children if child.dep_.startswith("nsubj")]
        if subjects:
            claims.append(f"{text}{stop}")
            before = tokens[first : subjects[0].right_edge.i + 1].text_with_ws
        elif member.tag_ in ("VBZ", "VBD", "VBP") or any(each.startswith("aux") for each in own):
            claims.append(f"{before}{text}{stop}")
        elif member.tag_ == head.tag_ and group:  # `was bought and moved`
            claims.append(f"{before}{group.text_with_ws}{text}{stop}")
        else:
            return []
    return claims
