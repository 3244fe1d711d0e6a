"""One vocabulary: under which names tables, records, results and corpora hold what findwell reads.

Every role has one name here, and each name means one thing. A `query` is known by its id, and
asked as a `question`. A `doc` is the id of what was retrieved or should be found, whether that is a
chunk or a whole document. Its `text` is what it says. Its `source` is the document that it was cut
from, in which `start` and `end` count characters. A `grade` says how relevant a doc is, a `score`
how well a retriever likes it.

People and tools have other names for these roles, and the same word differs in meaning from place
to place: in a corpus with a `chunk_id`, the `doc_id` is the source. So each place has its own
list, with the preferred name first. The entries of tools and frameworks are in `tools.toml`.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Literal, TypeAlias

# Which scores are better. Where the metric of an index decides, a list whose scores only rise holds
# distances.
Direction: TypeAlias = Literal["higher", "lower", "metric"]
Scores: TypeAlias = tuple[tuple[str, Direction], ...]


def _words(names: dict[str, str]) -> dict[str, tuple[str, ...]]:
    return {role: tuple(words.split()) for role, words in names.items()}


# columns of a table with one row per document
TABLE_COLUMNS = _words(
    {
        "query": "query_id query-id queryid qid q_id query topic_id topic",
        "doc": "doc_id doc-id docid docno document_id corpus-id corpus_id passage_id pid chunk_id "
        "doc",
        "score": "score sim similarity",
        "rank": "rank position",
        "grade": "grade rel relevance relevant is_relevant label judgment judgement rating verdict",
        "group": "group item subtopic",
        "text": "text quote contents content passage page_content chunk context document",
        "start": "start start_index",
        "end": "end end_index",
        "annotator": "annotator",
        "state": "state",
    }
)
QUESTION_COLUMNS = ("question", "user_input", "query_text", "input")
GRADE_NAMES = ("grade", *TABLE_COLUMNS["grade"])
# what is accepted where these are missing: a text serves as its id, BEIR's grade is a score
ACCEPTED_COLUMNS = TABLE_COLUMNS | {
    "query": TABLE_COLUMNS["query"] + QUESTION_COLUMNS,
    "doc": TABLE_COLUMNS["doc"] + TABLE_COLUMNS["text"],
    "grade": TABLE_COLUMNS["grade"] + TABLE_COLUMNS["score"],
}
# columns of a table of queries that a retriever is asked
ASKED_IDS = ("query", "query_id", "qid", "_id", "id")
ASKED_QUESTIONS = ("question", "query_text", "user_input", "text", "input", "title")
# columns of a corpus; each serves once
CORPUS_COLUMNS = _words(
    {
        "doc": "chunk_id node_id doc id _id id_ doc_id doc-id docid docno passage_id pid "
        "document_id",
        "text": "text contents content passage page_content chunk document body",
        "source": "source source_id document_id doc_id doc-id docid doc parent_id path file_path "
        "file filename file_name",
        "start": "start start_index start_char_idx start_idx start_char",
        "end": "end end_index end_char_idx end_idx end_char",
        "date": "date published published_at created created_at updated updated_at last_modified",
        "forbidden": "forbidden",
    }
)
# fields of one result of a retriever, and of its metadata
RESULT_FIELDS = _words(
    {
        "doc": "doc id chunk_id node_id _id id_ uuid pk doc_id doc-id docid docno passage_id pid "
        "corpus_id document_id _rowid",
        "text": "text contents content page_content chunk_text passage passage_text long_text "
        "chunk document body",
        "source": "source source_id ref_doc_id document_id doc_id doc-id docid parent_id path "
        "file_path file filename file_name",
        "start": "start start_index start_char_idx start_idx start_char split_idx_start",
        "end": "end end_index end_char_idx end_idx end_char",
    }
)
ID_NAMES, TEXT_NAMES, SOURCE_NAMES, START_NAMES, END_NAMES = RESULT_FIELDS.values()
METADATA_NAMES = ("metadata", "meta", "payload", "fields")
SCORE_NAMES: Scores = (
    ("_relevance_score", "higher"),
    ("@search.reranker_score", "higher"),
    ("@search.rerankerScore", "higher"),
    ("@search.score", "higher"),
    ("_score", "higher"),
    ("_distance", "lower"),
    ("score", "metric"),
    ("similarity", "higher"),
    ("rank_score", "higher"),
    ("distance", "lower"),
)
# fields of findwell's own entries
ENTRY_FIELDS = ("doc", "docs", "id", "score", "grade", "text", "quote", "start", "end", "source")


@functools.cache
def tools() -> dict[str, Any]:
    """Return the entries of tools and frameworks; a score of TREC files does without them."""
    import tomllib  # noqa: PLC0415

    return tomllib.loads(Path(__file__).with_name("tools.toml").read_text(encoding="utf-8"))
