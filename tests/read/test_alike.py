"""Results of one class are read field by field, and give what reading them one by one gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, PrivateAttr

import findwell
from findwell.core.errors import FindwellError
from findwell.io.read import in_memory
from findwell.io.read.alike import alike_part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Document(BaseModel):
    """As LangChain's."""

    page_content: str
    id: Any = None
    metadata: Any = {}


class Hidden(BaseModel):
    """Whose id is an attribute that is no field."""

    page_content: str = "…"
    _id: Any = PrivateAttr(default="d1")


class Asks:
    """Which may have any field."""

    def __init__(self, doc: str) -> None:
        self.id = doc

    def __getattr__(self, name: str) -> str:
        if name == "text":
            return "asked"
        raise AttributeError(name)


def _document(at: int, **metadata: object) -> Document:
    return Document(id=f"d{at}", page_content=f"Text {at}.", metadata=metadata)


def _node(at: int) -> SimpleNamespace:
    node = SimpleNamespace(id_=f"d{at}", text="…", metadata={"page": at}, relationships={})
    return SimpleNamespace(node=node, score=1 / (at + 1))


# results by their place in a list, and whether they are read field by field
RESULTS: dict[str, tuple[Callable[[int], Any], bool]] = {
    "documents": (lambda at: _document(at, source=f"{at}.md"), True),
    "pairs": (lambda at: (_document(at), 0.1 * at), True),
    "falling pairs": (lambda at: (_document(at), -0.1 * at), True),
    "ids of metadata": (lambda at: Document(page_content="…", metadata={"chunk_id": at}), True),
    "places": (
        lambda at: Document(page_content="…", metadata={"source": "a", "start_index": at % 2}),
        True,
    ),
    "nodes": (_node, True),
    "numbers": (lambda at: SimpleNamespace(id=at, payload={"text": "…"}, score=at), True),
    "dicts": (lambda at: {"id": f"d{at}", "content": "…", "_distance": at}, True),
    "own entries": (lambda at: {"doc": f"d{at}", "score": -at, "text": "…"}, True),
    "hashes of texts": (lambda at: Document(page_content=f"Text {at}."), False),
    "one without an id": (
        lambda at: _document(at) if at else Document(page_content="Text 0."),
        False,
    ),
    "two classes": (lambda at: _document(at) if at else {"id": "d0", "text": "…"}, False),
    "a chunk number of two documents": (
        lambda at: Document(page_content=f"{at}", metadata={"chunk_id": 0, "source": f"{at}"}),
        False,
    ),
    "half of a character": (lambda at: Document(id=f"d{at}", page_content="\ud800"), False),
    "a score that is a truth": (lambda at: {"id": f"d{at}", "content": "…", "score": True}, False),
    "any field": (lambda at: Asks(f"d{at}"), False),
    "a private attribute": (lambda _: Hidden(), True),
    "ranks": (lambda at: {"id": f"d{at}", "content": "…", "rank": -at}, False),
}


def _outcome(run: Mapping[str, Any], **options: Any) -> object:
    try:
        stream = findwell.io.load_run(run, **options)
        read = stream.collect()
    except FindwellError as error:
        return str(error)
    others = [(name, sorted(held)) for name, held in read.others.items()]
    return read.rows.schema, read.rows.rows(), read.findings, others, stream.carries


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_one_class_read_as_others_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, alike = RESULTS[name]
    run = {"q1": [make(0), make(1), make(2)], "q2": [], "q3": [make(3), make(1)]}
    taken: list[bool] = []

    def watched(*given: Any) -> Any:
        part = alike_part(*given)
        taken.append(part is not None)
        return part

    for options in ({}, {"texts": True}, {"id_from": "metadata.chunk_id"}, {"id_from": "id"}):
        monkeypatch.setattr(in_memory, "alike_part", watched)
        found = _outcome(run, **options)
        monkeypatch.setattr(in_memory, "alike_part", lambda *_: None)
        assert found == _outcome(run, **options)
    assert taken[:2] == [alike, alike]
