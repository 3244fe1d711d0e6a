"""Labels by people: pairs of a question and a chunk with a label, and what a judge says about them.

Records (JSON lines, CSV, TSV, Parquet, a frame, a list of dicts) have a `question`, a `chunk` and a
`label`; every other column can slice the results. Gold labels (qrels or anything else that findwell
reads) have ids only, so the texts of the chunks and of the questions come from separate files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import InputError
from findwell.core.frames import pl
from findwell.io.read import load_gold
from findwell.io.read.corpus import load_corpus
from findwell.io.read.format import Source
from findwell.io.read.json import all_entries
from findwell.io.read.labels_database import database_at, labelled_pairs
from findwell.io.read.records import Entry, entries
from findwell.io.read.tables import frame, read_table
from findwell.io.read.values import WORDS, no_column
from findwell.judges.aspects import VerdictShape, find_aspect
from findwell.judges.verdicts import Sample

if TYPE_CHECKING:
    from findwell.core.data import Ints
    from findwell.core.progress import Report
    from findwell.judges.verdicts import Judged, Judgement, JudgeProtocol

# what people call the columns, findwell's own name first
COLUMNS = {
    "question": "question claim user_input input query_text query",
    "chunk": "chunk text passage context contents content page_content document statement",
    "label": "label grade relevance relevant verdict rating rel",
}
IDS = ("query", "query_id", "qid", "doc", "doc_id", "docid", "chunk_id", "id", "_id")
HIGHEST = 3


def short_hash(text: str) -> str:
    """Return the beginning of the hash of a text, by which it is known again."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Labelled pairs, one after the other; negative labels count as 0."""

    name: str  # the file, or what was given
    questions: tuple[str, ...]  # or claims
    chunks: tuple[str, ...]
    labels: tuple[int, ...]  # 0 to 3
    queries: tuple[str, ...]  # the id of each question
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # to slice by
    blank: int = 0  # pairs without a label, left out

    def __len__(self) -> int:
        return len(self.labels)


def load_labels(data: object, *, corpus: object = None, questions: object = None) -> LabelledPairs:
    """Read labels; with `corpus` and `questions`, the texts by id, `data` are gold labels.

    A pool with labels, or its labels.db, holds the texts itself.

    >>> found = load_labels([{"question": "Why?", "chunk": "Because.", "label": 1, "by": "Ann"}])
    >>> found.labels, found.columns["by"]
    ((1,), ('Ann',))
    """
    if isinstance(data, LabelledPairs):
        return data
    name = os.path.basename(data) if isinstance(data, str | os.PathLike) else "labels"  # noqa: PTH119
    if corpus is not None:
        return _from_gold(str(name), data, corpus, questions)
    if isinstance(data, str | os.PathLike) and (database := database_at(data)) is not None:
        return _from_database(f"{database.parent.name}/{database.name}", database)
    where = str(data) if isinstance(data, str | os.PathLike) else "labels"
    return _from_records(str(name), _records(data), where)


def _from_gold(name: str, data: Any, corpus: object, questions: object) -> LabelledPairs:  # noqa: ANN401
    gold = load_gold(data)
    texts = dict(load_corpus(corpus).select("doc", "text").rows())
    asked = _asked(gold.queries, questions)
    rows = gold.rows().select("query", "doc", "grade")
    for query, doc in rows.select("query", "doc").iter_rows():
        if query not in asked or doc not in texts:
            what = f"the chunk {doc!r}" if query in asked else f"the question of query {query!r}"
            texts_of = corpus if query in asked or questions is None else questions
            files = [each for each in (data, texts_of) if isinstance(each, str | os.PathLike)]
            where, fix = " and ".join(map(str, files)) or name, "add it to the file of texts"
            raise InputError(f"{what} has no text", where=where, fix=fix)
    described = gold.queries.drop("query", "question", "reference", strict=False)
    return LabelledPairs(
        name,
        tuple(asked[query] for query in rows["query"]),
        tuple(texts[doc] for doc in rows["doc"]),
        _labels_of(rows, name),
        tuple(rows["query"]),
        {each.name: tuple(map(str, each.gather(gold.member_query))) for each in described},
    )


def _from_database(name: str, path: Path) -> LabelledPairs:
    """Return what annotators agree on, or what was adjudicated."""
    rows = labelled_pairs(path)
    if not rows.height:
        raise InputError(
            "no pair has a label", where=str(path), fix="label some pairs: findwell labels serve"
        )
    blank = rows.filter(pl.col("text").str.strip_chars() == "")
    if blank.height:
        raise InputError(
            f"the chunk {blank['doc'][0]!r} has no text",
            where=str(path),
            fix="make the pool with the texts: findwell labels pool --corpus FILE",
        )
    return LabelledPairs(
        name,
        tuple(rows["question"]),
        tuple(rows["text"]),
        _labels_of(rows, name),
        tuple(rows["query"]),
        {each: tuple(rows[each].fill_null("")) for each in ("design", "stratum")},
    )


def _labels_of(rows: pl.DataFrame, name: str) -> tuple[int, ...]:
    """Return the label of each row; one without a grade is 0."""
    return tuple(
        _label(grade, partial("{}, query {}, {}".format, name, query, doc)) or 0
        for query, doc, grade in rows.select("query", "doc", "grade").iter_rows()
    )


def _asked(queries: pl.DataFrame, questions: object) -> dict[str, str]:
    """Return the text of each question by id."""
    if questions is not None:
        return dict(load_corpus(questions).select("doc", "text").rows())
    if "question" in queries.columns:
        return dict(queries.select("query", "question").rows())
    raise InputError(
        "the labels name queries by id, and the questions are missing",
        fix="give the texts of the questions: questions=… or --queries FILE",
    )


def _records(data: object) -> Iterator[Entry]:
    """Return an iterator over records, whatever they are in."""
    if isinstance(data, str | os.PathLike):
        return _from_file(Source.of(data))
    table = frame(data)
    if table is not None:
        data = table.iter_rows(named=True)
    if not isinstance(data, Iterable) or isinstance(data, str | bytes | Mapping):
        raise InputError(
            f"a {type(data).__name__} holds no labels",
            fix="pass a path, a data frame, or a list of dicts with question, chunk and label",
        )
    return entries(data, "labels")


def _from_file(source: Source) -> Iterator[Entry]:
    if source.head().lstrip()[:1] == b"{":
        return all_entries(source)
    table, place = read_table(source)
    if not set(COLUMNS["label"].split()) & set(table.columns):
        raise InputError(
            f"no column of labels, only {', '.join(map(repr, table.columns[:8]))}",
            where=source.where,
            fix="name the columns question, chunk and label; judgements by id (qrels) need the "
            "texts: --corpus and --queries",
        )
    rows = enumerate(table.iter_rows(named=True), start=1)
    return (Entry(row, number, partial(place.row, number)) for number, row in rows)


def _from_records(name: str, listed: Iterable[Entry], where: str) -> LabelledPairs:
    rows: list[tuple[str, str, int, str]] = []
    about: list[dict[str, str]] = []
    blank = 0
    for entry in listed:
        record = entry.value
        if not isinstance(record, Mapping):
            raise InputError(
                f"a {type(record).__name__}, not an object",
                where=entry.where(),
                fix='write records such as {"question": "…", "chunk": "…", "label": 1}',
            )
        names = _names(tuple(record), entry)
        question, chunk = (_text(record[names[it]], it, entry) for it in ("question", "chunk"))
        label = _label(record[names["label"]], entry.where)
        if label is None:
            blank += 1
            continue
        query = next((record[it] for it in IDS[:3] if record.get(it) is not None), question)
        rows.append((question, chunk, label, str(query)))
        about.append(_slices(record, names))
    if not rows:
        raise InputError("no pair has a label", where=where, fix="give at least one labelled pair")
    columns = dict.fromkeys(column for each in about for column in each)
    slices = {column: tuple(each.get(column, "") for each in about) for column in columns}
    questions, chunks, labels, queries = zip(*rows, strict=True)
    return LabelledPairs(name, questions, chunks, labels, queries, slices, blank)


def _names(columns: Sequence[str], entry: Entry) -> dict[str, str]:
    """Map findwell's names to the columns that hold them."""
    found = {}
    for name, spellings in COLUMNS.items():
        present = [word for word in spellings.split() if word in columns]
        if not present:
            raise no_column(name, name, spellings.split(), columns, where=entry.where())
        found[name] = present[0]
    return found


def _text(value: object, name: str, entry: Entry) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise InputError(
        f"the {name} is {str(value)[:40]!r}, not a text",
        where=entry.where(),
        fix=f"give every pair a {name}, or leave the pair out",
    )


def _label(value: object, where: Callable[[], str]) -> int | None:
    """Return a label as a number from 0 to 3, None if there is none."""
    text = value.strip().casefold() if isinstance(value, str) else value
    if text is None or text == "" or text != text:  # noqa: PLR0124 - NaN differs from itself
        return None
    try:
        number = float(WORDS.get(text, text) if isinstance(text, str) else text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = HIGHEST + 1.0
    if not number.is_integer() or number > HIGHEST:
        raise InputError(
            f"{str(value)[:40]!r} is not a valid label",
            where=where(),
            fix=f"labels are whole numbers from 0 to {HIGHEST}, or yes and no",
        )
    return max(0, int(number))


def _slices(record: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a record that results can be sliced by."""
    return {
        str(column): str(value)
        for column, value in record.items()
        if column not in names.values()
        and column not in IDS
        and isinstance(value, str | int | float | bool)
    }


# --- as samples of a judge ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class LabelledSamples:
    """One sample per question, of all its chunks; of each text, where verdicts are about lists."""

    aspect: str
    samples: tuple[Sample, ...]
    sample: Ints  # of each pair
    place: Ints  # of the chunk of each pair in its sample

    @classmethod
    def of(cls, labels: LabelledPairs, aspect: str) -> LabelledSamples:
        """Put labelled pairs together."""
        alone = find_aspect(aspect).shape is VerdictShape.LIST
        numbers: dict[tuple[str, str, str], int] = {}
        chunks: list[dict[str, int]] = []
        sample, place = [], []
        pairs = zip(labels.queries, labels.questions, labels.chunks, strict=True)
        for query, question, chunk in pairs:
            number = numbers.setdefault((query, question, chunk if alone else ""), len(chunks))
            if number == len(chunks):
                chunks.append({})
            sample.append(number)
            place.append(chunks[number].setdefault(chunk, len(chunks[number])))
        made = tuple(
            _sample(query, question, tuple(texts), aspect)
            for (query, question, _), texts in zip(numbers, chunks, strict=True)
        )
        return cls(aspect, made, np.array(sample, dtype=np.int64), np.array(place, dtype=np.int64))

    def ask(self, judge: JudgeProtocol, progress: Report | None = None) -> list[Judgement | None]:
        """Return the verdict about each pair; None if the judge was asked something else."""
        judged = judge.judge(list(self.samples), frozenset({self.aspect}), progress)
        places = zip(self.sample.tolist(), self.place.tolist(), strict=True)
        return [_verdict(judged[number], self.aspect, place) for number, place in places]

    def shuffled(self, seed: int = 0) -> LabelledSamples:
        """Return the same samples with other orders of chunks: each chunk moves.

        >>> from findwell.judges.cards.labels import load_labels
        >>> rows = [{"question": "?", "chunk": chunk, "label": 1} for chunk in "abc"]
        >>> LabelledSamples.of(load_labels(rows), "relevance").shuffled().samples[0].chunks
        ('c', 'a', 'b')
        """
        rng = np.random.default_rng(seed)
        moved: list[Sample] = []
        places: list[Ints] = []
        for sample in self.samples:
            order = np.arange(len(sample.chunks))
            for at in range(len(order) - 1, 0, -1):  # Sattolo's: one cycle of all
                other = int(rng.integers(at))
                order[[at, other]] = order[[other, at]]
            texts = tuple(sample.chunks[at] for at in order.tolist())
            parts = {self.aspect: tuple((text,) for text in texts)} if sample.parts else {}
            moved.append(replace(sample, chunks=texts, parts=parts))
            places.append(np.argsort(order))
        start = np.cumsum([0, *map(len, places)])[self.sample]
        place = np.concatenate(places)[start + self.place] if places else self.place
        return replace(self, samples=tuple(moved), place=place)

    @property
    def sizes(self) -> Ints:
        """How many chunks the sample of each pair has."""
        return np.array([len(each.chunks) for each in self.samples], dtype=np.int64)[self.sample]


def _sample(query: str, question: str, chunks: tuple[str, ...], aspect: str) -> Sample:
    shape = find_aspect(aspect).shape
    if shape is VerdictShape.ITEMS:
        return Sample(query, "", chunks, reference=question, items={aspect: (question,)})
    parts = {aspect: tuple((chunk,) for chunk in chunks)} if shape is VerdictShape.PARTS else {}
    return Sample(query, question, chunks, parts=parts)


def _verdict(judged: Judged, aspect: str, place: int) -> Judgement | None:
    """Return the verdict about a chunk; None if it failed, or if the judge asked something else."""
    if aspect in judged.failures:
        return None
    rows = judged[aspect].rows
    if find_aspect(aspect).shape is VerdictShape.PARTS:
        own = rows[place] if place < len(rows) else ()
        return own[0] if len(own) == 1 else None
    row: Sequence[Judgement] = rows[0] if len(rows) == 1 else ()
    return row[place] if place < len(row) else None
