"""Looks at run and gold as wholes: what stops an evaluation, and what is merely worth knowing."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from findwell.core.columns import normaliser
from findwell.core.errors import AlignError
from findwell.core.findings import HASHED, Finding, FindingKind, finding_about, shorten
from findwell.core.frames import pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from findwell.core.data import Gold, RunStream


@dataclass(frozen=True, slots=True)
class Hint:
    """What may make ids differ, and how to undo it: by a normaliser of `--read ids`, or otherwise.

    A normaliser makes one of several ids, so that any two might meet. Where this is its purpose,
    one side must have the ids `already`; where it is not, those of each side must stay `distinct`.
    """

    why: str
    ids: str = ""
    undo: Callable[[pl.Series], pl.Series] | None = None
    only_if: Literal["already", "distinct", ""] = ""

    def change(self, ids: pl.Series) -> pl.Series:
        """Normalise ids."""
        undo = normaliser(self.ids) if self.undo is None else self.undo
        return ids if undo is None else undo(ids)

    def meet(self, ours: pl.Series, theirs: pl.Series) -> int:
        """Count the ids of one side, each given once, that would newly meet some of the other."""
        if self.why == CHUNKS:  # the end of a sentence names no chunk
            ours, theirs = (ids.filter(ids.str.contains(r"\w$")) for ids in (ours, theirs))
        before = ours.is_in(theirs.implode())
        one, other = self.change(ours), self.change(theirs)
        if self.only_if == "distinct" and (
            one.n_unique() < len(one) or other.n_unique() < len(other)
        ):
            return 0
        new = one.is_in(other.implode()) & ~before
        if self.only_if == "already":
            new &= one.is_in(theirs.implode()) | (one == ours)
        if self.ids == "stem" and new.any():
            new &= ours.is_in(_same_file(ours, one, theirs, other).implode())
        return int(new.sum())


def _same_file(ours: pl.Series, one: pl.Series, theirs: pl.Series, other: pl.Series) -> pl.Series:
    """Return those of our files that may be one of theirs: in no other folder, if both say one."""
    files = pl.DataFrame({"theirs": theirs, "stem": other})
    pairs = pl.DataFrame({"ours": ours, "stem": one}).join(files, on="stem")
    mine, others = (pl.col(name).str.replace(ENDING, "") for name in ("ours", "theirs"))
    return pairs.filter(mine.str.ends_with(others) | others.str.ends_with(mine))["ours"]


ENDING = r"\.[A-Za-z][A-Za-z0-9]{0,4}$"  # of a file
SPELLING_HINTS = (  # what differs only in how it is written
    Hint("they differ in upper and lower case", "lower"),
    Hint(
        "they differ in how Unicode spells accents and the like: one side as one character (NFC), "
        "the other as a letter and a mark (NFD)",
        "nfc",
    ),
    Hint("one side has spaces around its ids", r"regex:(?s)^\s*(.*\S)"),
    Hint("one side begins its ids with a byte order mark (BOM)", r"regex:^\uFEFF(.+)"),
    Hint("one side pads its numbers with zeros", r"regex:^0+(\d.*)"),
    Hint(
        "one side pads its numbers with zeros",
        undo=lambda ids: ids.str.replace(r"^(\D*)0+(\d)", "${1}${2}"),
    ),
    Hint("one side writes whole numbers as 1.0", undo=lambda ids: ids.str.replace(r"\.0+$", "")),
)
SQUEEZED = Hint(
    "their texts differ in case, spaces or punctuation",
    undo=lambda ids: ids.str.to_lowercase().str.replace_all(r"\W+", ""),
)
NUMBER = Hint(
    "they differ in what stands before the number", r"regex:(\d+)\D*$", only_if="distinct"
)
BOM = "\ufeff"
MARKS = ("::", "#", ":", "_", "/", "-", ".", "@", " ")
SYNTHETIC_COLUMN = "synthetic"  # the column about queries that a model wrote: its name, or yes
YES = frozenset({"true", "yes", "1"})
NOT_SYNTHETIC = frozenset({"", "false", "no", "0"})
QUERIES = (*SPELLING_HINTS, NUMBER)
# answered queries without any document of the gold: not the retriever is to blame
SURE_QUERIES = 10
KINDS = {  # ids that programs make
    "UUIDs": r"(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    "hashes of texts": r"^text-[0-9a-f]{16}$",
    "hashes": r"(?i)^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})$",
}
TEXT = r"\S\s+\S+\s+\S"  # three words
JOINTS = (",", ";", "|", "\n", "\t", " ")  # between ids that were joined
JOINT = re.compile(f"[{''.join(JOINTS)}]")
JOINED = "the gold lists several ids in one text"
APART = 'write a list of ids, such as ["a", "b"], or in a table one row for each'
CHUNKS = "one side names chunks of documents"
CHUNK = Hint(CHUNKS, r"regex:^(.+)[#_:-]\d+$")
DOCUMENTS = (
    *SPELLING_HINTS,
    Hint("one side has a <urn:uuid:…> inside its ids", "uuid"),
    Hint("one side names files with their folders or endings", "stem", only_if="distinct"),
    *(
        Hint(CHUNKS, how, only_if="already")
        for how in (
            *(f"chunk-to-doc:{mark}" for mark in (*MARKS, "_chunk", "-chunk")),
            *(rf"regex:^(.+){re.escape(mark)}\d+$" for mark in MARKS),  # the document has the mark
        )
    ),
    NUMBER,
)


def hint(ours: pl.Series, theirs: pl.Series, known: tuple[Hint, ...]) -> tuple[Hint, int] | None:
    """Return the first reason that makes ids meet which did not, and how many.

    >>> found = hint(pl.Series(["d2#3", "d3#2"]), pl.Series(["d2", "d3"]), DOCUMENTS)
    >>> found[0].ids, found[1]
    ('chunk-to-doc:#', 2)
    """
    ours, theirs = (ids.drop_nulls().unique(maintain_order=True) for ids in (ours, theirs))
    for each in known:
        count = each.meet(ours, theirs)
        if count:
            return each, count
    return None


def other_spellings(name: str) -> set[str]:
    """Return ways of writing an id that would not be seen to be the same; not every one.

    >>> sorted(other_spellings("a7"))[:4]
    ['A7', 'a0000007', 'a000007', 'a00007']
    """
    found = {name.lower(), name.upper(), name.capitalize(), name.strip(), f"{name} "}
    found |= {name.removeprefix(BOM), BOM + name, re.sub(r"\.0+$", "", name)}
    found |= {f"{name}{mark}{chunk}" for mark in "#_-:" for chunk in range(5)}
    found.add(re.sub(r"[#_:-]\d+$", "", name))
    if number := re.search(r"\d+", name):
        before, digits = name[: number.start()], name[number.start() :]
        found |= {before + (digits.lstrip("0") or "0"), f"{name}.0"}
        found |= {before + "0" * more + digits for more in range(1, 7)}
    if not name.isascii():
        from unicodedata import normalize  # noqa: PLC0415 - few ids need it

        found |= {normalize("NFC", name), normalize("NFD", name)}
    return found - {name}


def listed(docs: Mapping[str, Iterable[str]]) -> pl.DataFrame:
    """Return the documents of queries as rows of the gold."""
    rows = pl.DataFrame({"query": [*docs], "doc": [*map(list, docs.values())]}).explode("doc")
    return rows.with_columns(grade=1.0, group=pl.lit(None, pl.Int64))


def respelled(unmet: dict[str, list[str]], rows: pl.DataFrame, docs: pl.Series) -> list[Finding]:
    """Look for documents of the gold that a run has for their query in another spelling.

    A spelling that the other side has, too, is another document; `docs` are those of the gold.
    """
    lists = listed(unmet)
    ours, theirs = (
        table.select("query", "doc").drop_nulls().filter(~pl.col("doc").is_in(others.implode()))
        for table, others in ((rows, docs), (lists, rows["doc"]))
    )
    findings = []
    for each in (*SPELLING_HINTS, CHUNK):
        key = each.change(theirs["doc"])
        spelled = ours.with_columns(key=each.change(ours["doc"])).unique(["query", "key"])
        both = theirs.with_columns(key=key)
        both = both.join(spelled, ["query", "key"], suffix="_run", maintain_order="left")
        if each is CHUNK:  # one side names the document
            both = both.filter(
                (pl.col("doc") == pl.col("key")) | (pl.col("doc_run") == pl.col("key"))
            )
        quote = ascii if each.ids == "nfc" else repr  # which would look the same
        fix = f"use --read ids={shlex.quote(each.ids)}" if each.ids else "make the ids equal"
        pairs = [f"{quote(one)} is {quote(other)}" for _, one, _, other in both.iter_rows()]
        what = "# gold document|documents is|are not found because the run spells it|them otherwise"
        fix = f"if both are the same document, {fix}"
        findings += finding_about("other-spelling", pairs, f"{what}: {each.why}.", fix)
        theirs = theirs.join(both, on=["query", "doc"], how="anti", maintain_order="left")
    return findings


def joined_ids(name: str, marks: Iterable[str] = JOINTS) -> set[str]:
    """Return the ids that a text may list.

    >>> sorted(joined_ids("d1, d2")), joined_ids("['d1','d2']") >= {"d1", "d2"}, joined_ids("d1")
    (['d1', 'd2'], True, set())
    """
    lists = ({each.strip("[]()'\" \n\t,") for each in name.split(mark)} - {""} for mark in marks)
    return {each for pieces in lists if len(pieces) > 1 for each in pieces}


def several_in_one(
    asked: Mapping[str, Iterable[str]], rows: pl.DataFrame, least: int = 1
) -> list[str]:
    """Look for texts of the gold that list ids which a run has for their query; as examples.

    What stands between ids of a list is in no id of the run; otherwise the text may be one id.
    """
    marks = [each for each in JOINTS if not rows["doc"].str.contains(each, literal=True).any()]
    rows = rows.filter(pl.col("query").is_in([*asked])).drop_nulls("doc")
    held = {query: {*docs} for query, docs in rows.group_by("query").agg("doc").iter_rows()}
    return [
        f"{shorten(name)!r} holds {min(both)!r}"
        for query, names in asked.items()
        for name in names
        if len(both := joined_ids(name, marks) & held.get(query, set())) >= least
    ]


def joined_found(examples: list[str], *, chosen: bool) -> list[Finding]:
    """Refuse texts of the gold that list ids, unless ids were chosen; then they are a finding."""
    if not chosen:
        insist = 'If each text is one id, say so: --by ids (by="ids")'
        raise AlignError(f"{JOINED}: {examples[0]}", where="gold", fix=f"{APART}. {insist}")
    what = "# text|texts of the gold lists|list ids that the run retrieved and is|are read as one."
    return finding_about("joined-ids", examples, what, APART)


def synthetic_questions(queries: pl.DataFrame) -> list[Finding]:
    """Look for queries that a model wrote, by their column `synthetic`, which names it.

    >>> table = pl.DataFrame({"query": ["q1", "q2"], "synthetic": ["openai:some-model", None]})
    >>> [finding.message for finding in synthetic_questions(table)]
    ['1 question was written by openai:some-model. Users may ask others.']
    """
    if SYNTHETIC_COLUMN not in queries.columns:
        return []
    by = queries[SYNTHETIC_COLUMN].cast(pl.String).str.strip_chars()
    findings = []
    for name in by.drop_nulls().unique(maintain_order=True).to_list():
        if name.casefold() not in NOT_SYNTHETIC:
            author = "a model" if name.casefold() in YES else name
            findings += finding_about(
                "synthetic-question",
                queries["query"].filter(by.eq(name).fill_null(value=False)),
                f"# question|questions was|were written by {author}. Users may ask others.",
                "compare systems with it, and confirm values with questions of users",
            )
    return findings


def missing_error(count: int, example: str, run: str) -> AlignError:
    """Return the error for a run without rows for queries of the gold."""
    which = "1 query of the gold is" if count == 1 else f"{count} queries of the gold are"
    return AlignError(
        f"{which} missing, for example {example!r}",
        where=f"run {run}",
        fix="retrieve for every query, or choose what a missing one means: "
        "--read missing=zero (trec_eval -c) or --read missing=skip",
    )


def explained_queries(found: list[Finding], gold: Gold) -> list[Finding]:
    """Let findings about extra and missing queries say that only their spelling differs."""
    named = {each.kind: each for each in found}
    if not named.keys() >= {"extra-query", "missing-query"}:
        return found
    guess = hint(pl.Series(named["extra-query"].examples), gold.queries["query"], SPELLING_HINTS)
    if guess is None:
        return found
    fix = f"{guess[0].why}; make the ids equal"
    kinds = ("extra-query", "missing-query")
    return [replace(each, fix=fix) if each.kind in kinds else each for each in found]


def no_shared_query(ours: pl.Series, theirs: pl.Series, run: str, least: str = "") -> AlignError:
    """Return the error for a run and gold labels without a common query, with a guess why.

    The queries of both are given; where these are examples only, `least` is "at least ".
    """
    guess = hint(ours, theirs, QUERIES)
    fix = "check that both files are about the same queries, and that they are not swapped"
    if guess is not None:
        fix = f"{guess[0].why} (then {least}{guess[1]} would match); make the ids equal"
    said = f"run and gold share no query: the run has {ours[0]!r}, the gold has {theirs[0]!r}"
    return AlignError(said, where=f"run {run} and gold", fix=fix)


@dataclass(frozen=True, slots=True, eq=False)
class UnmetRun:
    """A run that met no item of the gold: some of its keys, and what was found in it."""

    name: str
    keys: pl.Series
    answered: int  # queries that have items, and for which it retrieved something
    findings: tuple[Finding, ...] = ()
    others: Mapping[str, set[str]] = field(default_factory=dict)  # what other fields hold


def no_shared_document(
    run: UnmetRun, docs: pl.Series, carries: frozenset[str] = frozenset(), *, chosen: bool
) -> list[Finding]:
    """Look at a run without any document of the gold, whose ids are given: mostly they differ.

    Values of 0 would say that the retriever is bad, so this is an error where the ids are of
    different kinds, where a known way of writing them differs, or where many queries were
    answered. It is a finding where the user chose to compare ids, and where the run may simply
    have found nothing: few queries, or ids that other queries of the gold have.
    """
    if not len(docs) or not len(run.keys):
        return []
    shared = next((each for each in run.findings if each.kind == FindingKind.SHARED_ID), None)
    why, fix = _why_apart(run.keys, docs)
    rows = pl.DataFrame({"query": "", "doc": run.keys})
    joined = several_in_one({"": docs}, rows, 2 if why else 1)
    common = {name: docs.is_in(held).sum() for name, held in run.others.items()}
    named = max(common, key=common.__getitem__, default="")
    if "places" in carries:
        why, fix = "", "the gold labels places in documents: compare places with --by spans"
    elif named and common[named]:
        why = f"the gold names documents as the field {named} of the run does"
        fix = f"take the ids from that field: --read id_from={named} (id_from=)"
    elif joined:
        why, fix = f"{JOINED}: {joined[0]}", APART
    elif shared is not None:
        why = f"many chunks of a list have one id, for example {shared.examples[0]!r}"
        fix = "name a field that differs for each chunk and holds the ids of the gold"
        fix += " (--read id_from)"
    if not chosen and (why or _surely_apart(run, run.keys, docs)):
        insist = 'If the ids are right and nothing relevant was found, say so: --by ids (by="ids")'
        what = "run and gold share no document id"
        raise _apart(run, what, run.keys, docs, why, f"{fix}. {insist}")
    return [
        Finding(
            FindingKind.NOTHING_SHARED,
            1,
            (str(run.keys[0]), str(docs[0])),
            "No retrieved document is in the gold of its query; one id of each side is shown.",
            f"{why}: {fix}" if why else fix,
        )
    ]


def has_hashes(gold: Gold) -> bool:
    """Tell whether some documents of the gold are known by a hash of their text."""
    return bool(gold.member_doc.str.contains(KINDS["hashes of texts"]).any())


def refuse_hashes(found: Iterable[Finding], run: str) -> None:
    """Raise if some chunks of a run are known by a hash of their text, where no gold document is.

    They could not be found relevant, as where one of two retrievers loses the ids.
    """
    lacking = [each for each in found if each.template.startswith(HASHED)]
    if lacking:
        count = sum(each.count for each in lacking)
        raise AlignError(
            f"{count} retrieved {'object has' if count == 1 else 'objects have'} no id, where "
            f"others and the gold have ids, for example {lacking[0].examples[0]!r}",
            where=f"run {run}",
            fix="give every chunk its id, or match texts (--by rouge). If chunks without an id are "
            'never relevant, say so: --by ids (by="ids")',
        )


def no_shared_place(
    run: UnmetRun, ours: pl.Series, theirs: pl.Series, *, chosen: bool
) -> list[Finding]:
    """Look at a run without a chunk in a document of the gold; names of documents are given.

    An error as with ids, and also where places were chosen if the names are written differently.
    """
    ours, theirs = (names.drop_nulls().unique(maintain_order=True) for names in (ours, theirs))
    if not len(ours) or not len(theirs) or ours.is_in(theirs.implode()).any():
        return []
    why, fix = _why_apart(ours, theirs, "documents")
    if why or (not chosen and _surely_apart(run, ours, theirs)):
        what = "no retrieved chunk lies in a document of the gold"
        raise _apart(run, what, ours, theirs, why, fix)
    message = "No retrieved chunk lies in a document of the gold; one of each side is shown."
    return [Finding("no-shared-document", 1, (ours[0], theirs[0]), message, fix)]


def _apart(  # noqa: PLR0917
    run: UnmetRun, what: str, ours: pl.Series, theirs: pl.Series, why: str, fix: str
) -> AlignError:
    shown = f"the run has {shorten(ours[0])!r}, the gold has {shorten(theirs[0])!r}"
    said = f"{what}: {shown}" + (f"; {why}" if why else "")
    return AlignError(said, where=f"run {run.name} and gold", fix=fix)


def _surely_apart(run: UnmetRun, ours: pl.Series, theirs: pl.Series) -> bool:
    """Tell whether enough queries were answered that some of them should have met the gold."""
    return run.answered >= SURE_QUERIES and not ours.is_in(theirs.implode()).any()


def _why_apart(ours: pl.Series, theirs: pl.Series, what: str = "ids") -> tuple[str, str]:
    """Return why ids or names do not meet, if that can be seen, and what to do about it."""
    kinds = [_kind(ours), _kind(theirs)]
    if kinds[0] != kinds[1] and any(kinds):
        mine, others = (kind or "other names" for kind in kinds)
        fix = "let the loader name documents as the gold does (LlamaIndex: filename_as_id=True)"
        if what == "ids":
            fix = "give run and gold the same ids (--read id_from, id_from= names the field of a "
            fix += "chunk that holds its id), or match texts (--by rouge)"
        return f"{what} of the run are {mine}, those of the gold are {others}", fix
    guess = hint(ours, theirs, DOCUMENTS)
    texts = [ids.str.contains(TEXT) for ids in (ours, theirs)]
    if what == "ids" and any(map(pl.Series.all, texts)) and (guess is None or guess[0] is NUMBER):
        one, other = ("run", "gold") if texts[0].all() else ("gold", "run")
        why = f"the {one} lists texts, and the {other} ids"
        if all(map(pl.Series.any, texts)):
            why = SQUEEZED.why if SQUEEZED.meet(ours, theirs) else ""
        return why, "compare texts, which both sides need: --by exact, or rouge"
    if guess is None:
        return "", "check that run and gold name documents in the same way; see --read ids"
    found, count = guess
    if what != "ids" and found.why == CHUNKS:  # offsets may count in the chunk
        return CHUNKS, "give the document of each chunk as source, next to its start and end"
    safe = found.ids.replace("#", "")  # which a shell leaves alone inside a word
    flag = found.ids if safe == shlex.quote(safe) else shlex.quote(found.ids)
    use = f"use --read ids={flag}" if found.ids else f"make the {what} equal"
    use += f" (then {count} would match)"
    if found is NUMBER:  # equal numbers may be chance
        return "", f"{found.why}: if equal numbers mean the same document, {use}"
    return found.why, use


def _kind(ids: pl.Series) -> str:
    """Return what all ids are, if they were made by a program and cannot equal others by chance.

    >>> _kind(pl.Series(["text-e513e9e63c9a9f3f"])), _kind(pl.Series(["manual.md"]))
    ('hashes of texts', '')
    """
    return next((kind for kind, form in KINDS.items() if ids.str.contains(form).all()), "")


def only_ids(runs: Iterable[RunStream], gold: Gold) -> list[Finding]:
    """Look for texts on both sides where ids are compared because nothing was chosen."""
    return [
        finding
        for run in runs
        if "texts" in run.carries & gold.carries
        for finding in finding_about(
            "only-ids",
            gold.queries["query"],
            "# query|queries has|have texts in run and gold, but only document ids are compared.",
            "--by containment, rouge or exact compares texts; --by ids says that ids are meant",
            run.name,
        )
    ]
