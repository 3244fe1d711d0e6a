"""What retrieval frameworks, engines and databases answer with, one entry per source.

An entry says by which fields one of its results is recognised, and where id, text, score and
metadata stand. Fields are attributes of objects or keys of dicts alike, so that objects, their
dicts and their JSON read the same, and no framework is imported. The sources are tried in this
order; the last one takes any record that has an id or a text under a usual name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

# Which scores are better. Where the metric of an index decides, a list whose scores only rise holds
# distances.
Direction: TypeAlias = Literal["higher", "lower", "metric"]
Scores: TypeAlias = tuple[tuple[str, Direction], ...]

# what people call the fields of a record, the preferred name first
FIELD_NAMES = {
    "doc": "doc id chunk_id node_id _id id_ uuid pk doc_id doc-id docid docno passage_id pid "
    "corpus_id document_id _rowid",
    "text": "text contents content page_content chunk_text passage passage_text long_text chunk "
    "document body",
    "source": "source source_id ref_doc_id document_id doc_id doc-id docid parent_id path "
    "file_path file filename file_name",
    "start": "start start_index start_char_idx start_idx start_char split_idx_start",
    "end": "end end_index end_char_idx end_idx end_char",
}
ID_NAMES, TEXT_NAMES, SOURCE_NAMES, START_NAMES, END_NAMES = (
    tuple(words.split()) for words in FIELD_NAMES.values()
)
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


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """How one of the results of a source is read; paths are dotted, the first with a value counts.

    Without `text` the text is looked for in the metadata, and without `doc` the id, under the names
    that people use.
    """

    name: str
    needs: tuple[str, ...]  # fields by which it is recognised, all of them
    doc: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    score: Scores = ()
    metadata: str = ""  # where the user's own fields stand; empty: beside the others
    source: tuple[str, ...] = ()  # the document that a chunk was cut from
    start: tuple[str, ...] = ()  # where a chunk begins in that document, if not in the metadata
    end: tuple[str, ...] = ()
    own_name: bool = False  # the id stands under a name that the user chose, beside the others


@dataclass(frozen=True, slots=True)
class ResponseForm:
    """Where the list of results stands in the answer of a source."""

    name: str
    path: str
    texts: bool = False  # a string in the list is a text, not an id
    within: str = ""  # each element of the list holds a list of results, as a group does


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """An answer that holds one list per field instead of one object per result."""

    name: str
    doc: str
    text: str
    metadata: str = ""
    score: Scores = ()


# columns that only the table of one answer has, as of LanceDB
TABLE_OF_HITS = frozenset({"_distance", "_score", "_relevance_score", "_rowid"})

OBJECT_SOURCES: dict[str, ObjectSource] = {}


def register_source(source: ObjectSource) -> ObjectSource:
    """Make a source known, before the one that takes any record."""
    last = OBJECT_SOURCES.pop("record", None)
    OBJECT_SOURCES[source.name] = source
    if last is not None and source.name != last.name:
        OBJECT_SOURCES[last.name] = last
    return source


register_source(
    ObjectSource(
        "langchain",
        needs=("page_content", "metadata"),
        doc=("id",),
        text=("page_content",),
        score=(("score", "metric"),),
        metadata="metadata",
    )
)
register_source(  # langchain_core.load.dumpd
    ObjectSource(
        "langchain-dump",
        needs=("kwargs.page_content",),
        doc=("kwargs.id",),
        text=("kwargs.page_content",),
        metadata="kwargs.metadata",
    )
)
register_source(
    ObjectSource(
        "llama-index",
        needs=("node", "score"),
        doc=("node.id_", "node.node_id"),
        text=("node.text", "node.text_resource.text"),
        score=(("score", "higher"),),
        metadata="node.metadata",
        source=("node.ref_doc_id", "node.relationships.1.node_id"),
        start=("node.start_char_idx",),
        end=("node.end_char_idx",),
    )
)
register_source(  # a node or a document without a score
    ObjectSource(
        "llama-index-node",
        needs=("id_", "metadata", "relationships"),
        doc=("id_",),
        text=("text", "text_resource.text"),
        metadata="metadata",
        source=("ref_doc_id", "relationships.1.node_id"),
        start=("start_char_idx",),
        end=("end_char_idx",),
    )
)
register_source(
    ObjectSource(
        "haystack",
        needs=("id", "content", "blob"),
        doc=("id",),
        text=("content",),
        score=(("score", "higher"),),
        metadata="meta",
        source=("meta.file_path",),  # rather than source_id, a hash of the file's content
    )
)
register_source(
    ObjectSource(
        "qdrant",
        needs=("id", "payload"),
        doc=("id",),
        score=(("score", "metric"),),
        metadata="payload",
    )
)
register_source(
    ObjectSource(
        "elasticsearch",  # and OpenSearch
        needs=("_id", "_index"),
        doc=("_id",),
        score=(("_score", "higher"),),
        metadata="_source",
    )
)
register_source(
    ObjectSource(
        "weaviate",
        needs=("uuid", "properties"),
        doc=("uuid",),
        score=(
            ("metadata.rerank_score", "higher"),
            ("metadata.score", "higher"),
            ("metadata.certainty", "higher"),
            ("metadata.distance", "lower"),
        ),
        metadata="properties",
    )
)
register_source(
    ObjectSource(
        "pinecone",
        needs=("id", "score", "values"),
        doc=("id",),
        score=(("score", "metric"),),
        metadata="metadata",
    )
)
register_source(
    ObjectSource(
        "pinecone-search",
        needs=("id", "score", "fields"),
        doc=("id",),
        score=(("score", "higher"),),
        metadata="fields",
    )
)
register_source(  # the same as a dict
    ObjectSource(
        "pinecone-search-dict",
        needs=("id_", "score_", "fields"),
        doc=("id_",),
        score=(("score_", "higher"),),
        metadata="fields",
    )
)
register_source(  # and as JSON
    ObjectSource(
        "pinecone-search-json",
        needs=("_id", "_score", "fields"),
        doc=("_id",),
        score=(("_score", "higher"),),
        metadata="fields",
    )
)
register_source(
    ObjectSource(
        "milvus",
        needs=("distance", "entity"),
        own_name=True,
        score=(("distance", "metric"),),
        metadata="entity",
    )
)
# rows of LanceDB, Azure AI Search, pgvector and other databases, results of txtai, and whatever
# else has an id or a text under a usual name
register_source(
    ObjectSource(
        "record",
        needs=(),
        score=SCORE_NAMES,
        source=SOURCE_NAMES,
        start=START_NAMES,
        end=END_NAMES,
    )
)

RESPONSES = (
    ResponseForm("elasticsearch", "hits.hits"),  # and OpenSearch
    ResponseForm("pinecone-search", "result.hits"),
    ResponseForm("pinecone", "matches"),
    ResponseForm("qdrant", "points"),
    ResponseForm("qdrant-groups", "groups", within="hits"),
    ResponseForm("weaviate", "objects"),
    ResponseForm("llama-index", "source_nodes"),
    ResponseForm("haystack", "documents"),
    ResponseForm("langchain", "source_documents"),
    ResponseForm("langchain", "context"),
    ResponseForm("azure", "value"),
    ResponseForm("dspy", "passages", texts=True),
)
COLUMN_FORMS = (
    ColumnForm(
        "chroma",
        "ids",
        "documents",
        "metadatas",
        (("distances", "lower"), ("scores", "lower")),
    ),
    ColumnForm("dspy", "indices", "passages"),
)
