"""Redaction, no texts and samples: what is left out never touches the disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

from findwell.core.errors import OptionError
from findwell.io.read.traces import decode
from findwell.io.read.traces.schema import TRACE_SCHEMA
from findwell.loop.monitoring.intake import IntakeRules, in_sample
from findwell.loop.monitoring.store import TraceStore
from tests.monitoring.conftest import calls
from tests.read.made_traces import MadeCall, otlp_request, otlp_span

if TYPE_CHECKING:
    from pathlib import Path


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def plain(frame: pl.DataFrame) -> str:
    return json.dumps(frame.to_dicts(), default=str)


def test_what_is_redacted_is_in_no_column(tmp_path: Path) -> None:
    given = calls(5).with_columns(
        session=pl.lit("of anna@example.org"),
        error=pl.lit("anna@example.org is unknown"),
        inputs=pl.lit(["anna@example.org", "d2"], pl.List(pl.String)),
        docs=pl.lit(["mail:anna@example.org", "d2"], pl.List(pl.String)),
        attributes=pl.lit(
            [{"key": "mail", "value": "anna@example.org"}], TRACE_SCHEMA["attributes"]
        ),
        annotations=pl.lit(
            [{"name": "n", "score": None, "label": "anna@example.org", "annotator": "anna@x.org"}],
            TRACE_SCHEMA["annotations"],
        ),
        question=pl.lit("Is anna@example.org here, or anna?"),
        doc_metadata=pl.lit(['{"by": "anna@example.org"}', None], pl.List(pl.String)),
    )
    rules = IntakeRules(redact=(r"[\w.]+@[\w.]+", "(?i)ANNA"))
    with TraceStore.open(tmp_path, create=True, rules=rules) as store:
        store.add(given)
        before = store.scan().collect()
        store.flush()
        kept = store.scan().collect()
    for frame in (before, kept):
        assert frame.schema == TRACE_SCHEMA
        assert "anna" not in plain(frame).lower()
    assert kept["question"][0] == "Is [redacted] here, or [redacted]?"
    assert kept["docs"][0].to_list() == ["mail:[redacted]", "d2"]
    assert kept["doc_metadata"][0].to_list() == ['{"by": "[redacted]"}', None]
    assert kept["attributes"][0].to_list() == [{"key": "mail", "value": "[redacted]"}]
    assert kept["trace"].to_list() == given["trace"].to_list()


def test_redaction_sees_letters_and_not_how_json_writes_them() -> None:
    """Python's json.dumps writes ü as an escape of six letters, unless told otherwise."""
    named = json.dumps({"by": "Anna Müller", "n": 1})
    assert "\\u00fc" in named
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": "Über uns",
        "retrieval.documents.0.document.metadata": named,
        "metadata": named,
    }
    span = otlp_span(MadeCall(1, 2, "", ()), attributes)
    frame = decode(json.dumps(otlp_request([span])).encode(), protobuf=False).frame
    kept, _ = IntakeRules(redact=("Müller",)).apply(frame)
    clean = '{"by": "Anna [redacted]", "n": 1}'
    assert kept["doc_metadata"].to_list() == [[clean]]
    assert kept["attributes"].to_list() == [[{"key": "metadata", "value": clean}]]


def test_redaction_comes_before_the_disk(tmp_path: Path) -> None:
    """Not even the write-ahead log has seen it; without the rule it is found there."""
    given = calls(1).with_columns(question=pl.lit("secret-4711"))  # too short to be packed
    for name, rules in {"plain": IntakeRules(), "clean": IntakeRules(redact=(r"\d{4}",))}.items():
        with TraceStore.open(tmp_path / name, create=True, rules=rules) as store:
            store.add(given)
            seen = b"4711" in on_disk(tmp_path / name)
            store.flush()
            seen |= b"4711" in on_disk(tmp_path / name)
        assert seen == (name == "plain")


def test_without_texts(tmp_path: Path) -> None:
    said = {"name": "tone", "score": 0.5, "annotator": "HUMAN"}
    notes = [said | {"label": "good"}, said | {"label": "He asked where Anna lives. " * 3}]
    given = calls(4).with_columns(annotations=pl.lit(notes, TRACE_SCHEMA["annotations"]))
    with TraceStore.open(tmp_path, create=True, rules=IntakeRules(texts=False)) as store:
        store.add(given)
        kept = store.scan().sort("time").collect()
    assert kept.schema == TRACE_SCHEMA
    assert kept["question"].null_count() == 4
    for name in ("texts", "doc_metadata"):
        assert kept[name].to_list() == [[None, None]] * 4  # as long as the list of documents
    assert kept["error"].to_list() == [None, "TimeoutError"] * 2
    assert kept["attributes"].to_list() == [[{"key": "tenant", "value": "north"}]] * 4
    labels = [[each["label"] for each in row] for row in kept["annotations"].to_list()]
    assert labels == [["good", None]] * 4
    untouched = ("trace", "span", "time", "latency_ms", "docs", "scores", "service")
    assert kept.select(untouched).equals(given.select(untouched))


def test_a_sample_is_of_whole_traces_and_always_the_same(tmp_path: Path) -> None:
    given = calls(1000).with_columns(trace=pl.format("{}", pl.int_range(pl.len()) // 2))
    kept = []
    for name in ("one", "two"):
        rules = IntakeRules(sample=0.3)
        with TraceStore.open(tmp_path / name, create=True, rules=rules) as store:
            for part in given.iter_slices(300 if name == "one" else 77):
                store.add(part)
            store.add(given)
            kept.append(store.scan().collect().sort("time"))
            counts = store.counts()
        assert counts.calls == kept[-1].height
        assert counts.dropped == {"not in the sample": 2 * (1000 - kept[-1].height)}
    assert kept[0].equals(kept[1])
    assert 250 < kept[0].height < 350
    assert set(kept[0].group_by("trace").len()["len"]) == {2}
    assert all(in_sample(trace, 0.5) for trace in kept[0]["trace"])  # a larger sample holds it


@pytest.mark.parametrize("pattern", ["[0-9", "(?=look)", "*"])
def test_a_pattern_that_is_none(pattern: str) -> None:
    with pytest.raises(OptionError, match="is not a regular expression"):
        IntakeRules(redact=(pattern,))


@pytest.mark.parametrize("share", [0, -1, 1.1, float("nan")])
def test_a_sample_that_is_none(share: float) -> None:
    with pytest.raises(OptionError, match="the sample is"):
        IntakeRules(sample=share)
