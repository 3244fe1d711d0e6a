"""Rerankers as judges: folders, sentence-transformers, and the protocols of servers."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import findwell
from findwell.core.errors import EndpointError, FindwellError, JudgeError, OptionError
from findwell.judges.find import find_judge, on_server
from findwell.judges.limits import NOT_CALIBRATED, UNCHECKED, judge_limits
from findwell.judges.reranker import REQUEST_TEXTS, SERVICES
from findwell.judges.settings import Judge
from findwell.judges.verdicts import JudgeReason, Sample
from tests.client.asking import HASTE
from tests.client.server import Call, as_json, error, serve
from tests.embeddings.models import WORDS, onnx_folder, onnx_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Findwell

ONE = Sample(
    "q",
    "Which?",
    ("red green", "blue"),
    "x",
    {"claims": ("red", "blue")},
    {"statements": (("a",), ())},
)
RELEVANCE = frozenset({"relevance"})


def scored(call: Call, score: Callable[[str, str], float]) -> dict[str, Any] | list[Any]:
    """Answer as each service does: best first, with the place of each text."""
    body = call.body
    if call.path.endswith("/score"):
        given = [
            {"index": at, "object": "score", "score": score(body["text_1"], text)}
            for at, text in enumerate(body["text_2"])
        ]
        return {"object": "list", "data": given}
    texts = body.get("texts", body.get("documents"))
    rows: list[dict[str, Any]] = [
        {"index": at, "score": score(body["query"], text)} for at, text in enumerate(texts)
    ]
    rows.sort(key=lambda row: -row["score"])
    if "texts" in body:
        return rows
    return {"results": [{"index": row["index"], "relevance_score": row["score"]} for row in rows]}


def by_red(_: str, text: str) -> float:
    return 0.9 if "red" in text else 0.2


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_is_asked_in_its_protocol(service: str) -> None:
    with serve(lambda call: as_json(scored(call, by_red))) as server:
        judge = find_judge(
            Judge(f"reranker:{service}:some-model", base_url=server.url, key="sk-9", retry=HASTE)
        )
        [judged] = judge.judge([ONE], RELEVANCE)
        *tried, call = server.calls
    assert len(tried) == (service != "cohere")  # two texts that tell whether scores are raw
    assert [(each.value, each.probability) for each in judged["relevance"].row] == [
        (1, 0.9),
        (0, 0.2),
    ]
    about = SERVICES[service]
    assert call.path == f"/v1{about.path}"
    assert call.body[about.query] == "Which?"
    assert call.body[about.texts] == ["red green", "blue"]
    assert call.body["model"] == "some-model"
    assert call.headers["authorization"] == "Bearer sk-9"
    assert dict(about.fields).items() <= call.body.items()
    assert judge.name == f"reranker:{service}:some-model"
    assert judge.about()["endpoint"] == server.url
    assert "sk-9" not in json.dumps(judge.about())


def test_claims_and_statements_are_pairs_and_other_aspects_need_a_model() -> None:
    def same(question: str, text: str) -> float:
        return float(question in text)

    with serve(lambda call: as_json(scored(call, same))) as server:
        judge = find_judge(Judge("reranker:tei", base_url=server.url, retry=HASTE))
        aspects = frozenset({"relevance", "claims", "statements", "entities", "sufficiency"})
        blank = Sample("b", " ", ("x",))
        judged, other = judge.judge([ONE, blank], aspects)
    assert [[each.value for each in row] for row in judged["claims"].rows] == [[1, 0], [0, 1]]
    assert judged["claims"].items == ("red", "blue")
    assert [len(row) for row in judged["statements"].rows] == [1, 0]
    assert {name: each.reason for name, each in judged.failures.items()} == dict.fromkeys(
        ("entities", "sufficiency"), JudgeReason.NEEDS_MODEL
    )
    assert other.failures["relevance"].reason is JudgeReason.NO_QUESTION


def test_long_lists_go_in_several_requests_and_equal_pairs_once() -> None:
    chunks = tuple(f"text {number}" for number in range(REQUEST_TEXTS + 3))
    with serve(lambda call: as_json(scored(call, by_red))) as server:
        judge = find_judge(Judge("reranker:infinity:m", base_url=server.url, retry=HASTE))
        judge.judge([Sample("a", "Why?", chunks), Sample("b", "Why?", chunks[:5])], RELEVANCE)
        _, *calls = server.calls
        assert sorted(len(call.body["documents"]) for call in calls) == [3, REQUEST_TEXTS]
    assert judge.about()["pairs"] == len(chunks)


def test_raw_scores_of_a_server_become_probabilities() -> None:
    with serve(
        lambda call: as_json(scored(call, lambda _, text: 2.0 if "red" in text else -3.0))
    ) as server:
        judge = find_judge(Judge("reranker:tei:m", base_url=server.url, retry=HASTE))
        [judged] = judge.judge([ONE], RELEVANCE)
    assert [round(each.probability or 0, 3) for each in judged["relevance"].row] == [0.881, 0.047]


def test_what_scores_are_does_not_depend_on_the_other_texts() -> None:
    """Raw scores of a few texts may lie between 0 and 1."""
    raw = {"red green": 0.4, "blue": 0.3, "Paris is the capital of France.": 4.0}
    with serve(lambda call: as_json(scored(call, lambda _, text: raw.get(text, -4.0)))) as server:
        judge = find_judge(Judge("reranker:vllm:m", base_url=server.url, retry=HASTE))
        company = Sample("q", "Which?", ("red green", "blue", "a text with a score of its own"))
        [[alone], [others]] = ([judge.judge([each], RELEVANCE)[0]] for each in (ONE, company))
    assert [round(each.probability or 0, 3) for each in alone["relevance"].row] == [0.599, 0.574]
    assert others["relevance"].row[:2] == alone["relevance"].row


def test_a_score_beyond_probabilities_is_not_made_one() -> None:
    with serve(
        lambda call: as_json(scored(call, lambda _, text: 3.5 if "red" in text else 0.2))
    ) as server:
        judge = find_judge(Judge("reranker:tei:m", base_url=server.url, retry=HASTE))
        with pytest.raises(JudgeError, match=r"gave the score 3\.5"):
            judge.judge([ONE], RELEVANCE)


def test_keys_of_servers_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(lambda call: as_json(scored(call, by_red))) as server:
        for service in ("vllm", "vllm-score", "infinity"):
            name = service.partition("-")[0].upper()
            monkeypatch.setenv(f"{name}_BASE_URL", server.url)
            monkeypatch.setenv(f"{name}_API_KEY", f"key-of-{name}")
            find_judge(Judge(f"reranker:{service}:m", retry=HASTE)).judge([ONE], RELEVANCE)
            assert server.calls[-1].headers["authorization"] == f"Bearer key-of-{name}"


@pytest.mark.parametrize(
    "answer",
    [
        {"results": []},
        {"results": [{"index": 0, "relevance_score": 1}] * 2},
        {"results": [{"index": at, "relevance_score": "high"} for at in range(2)]},
        [1, 2],
    ],
)
def test_answers_that_hold_no_scores_are_errors(answer: Any) -> None:
    with serve(lambda _: as_json(answer)) as server:
        judge = find_judge(Judge("reranker:cohere:m", base_url=server.url, key="k", retry=HASTE))
        with pytest.raises(EndpointError, match="no scores"):
            judge.judge([ONE], RELEVANCE)


def test_a_server_that_does_not_rerank_is_named() -> None:
    with serve(lambda _: error(404, "not here")) as server, pytest.raises(FindwellError) as stop:
        find_judge(Judge("reranker:tei:m", base_url=server.url, retry=HASTE)).judge(
            [ONE], RELEVANCE
        )
    assert server.url in str(stop.value)


def test_texts_for_a_reranker_on_this_machine_stay_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://proxy.example.com:9")
    with serve(lambda call: as_json(scored(call, by_red))) as server:
        settings = Judge("reranker:tei:m", base_url=server.url, retry=HASTE)
        find_judge(settings).judge([ONE], RELEVANCE)  # past the proxy
        assert on_server(settings, None)[1] == server.url  # where an embedder is asked, too
    assert on_server("reranker:vllm:m", None)[1] == "http://localhost:8000/v1"
    assert on_server("reranker:jina:m", None)[1] is None
    monkeypatch.delenv("COHERE_API_KEY", raising=False)
    with pytest.raises(OptionError, match="Cohere needs a key"):
        find_judge("reranker:cohere:m")


# --- on this machine ------------------------------------------------------------------------------


def words(**scores: float) -> Any:
    return np.array([[scores.get(word, 0.0)] for word in WORDS], dtype=np.float32)


def test_a_folder_with_an_onnx_model(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = onnx_folder(tmp_path / "tiny", onnx_model(scores=words(red=12.0, blue=-12.0)))
    judge = find_judge(f"reranker:{folder}")
    one = Sample("q", "green", ("red red", "blue", "green"))
    [judged] = judge.judge([one], RELEVANCE)
    # [CLS] green [SEP] red red [SEP]: 24 ÷ 6
    assert [round(each.probability or 0, 3) for each in judged["relevance"].row] == [
        0.982,
        0.083,
        0.5,
    ]
    assert [each.value for each in judged["relevance"].row] == [1, 0, 1]
    assert judge.name.startswith("reranker:tiny:")
    [alone] = judge.judge([Sample("q", "green", ("blue",))], RELEVANCE)
    assert alone["relevance"].row[0] == judged["relevance"].row[1]


def test_texts_that_are_too_long_for_the_model_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = onnx_folder(tmp_path / "short", onnx_model(scores=words(red=12.0, blue=-12.0)))
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 6}')
    judge = find_judge(f"reranker:{folder}")
    one = Sample("q", "green", ("red red", "red red green blue blue blue"))
    judge.judge([one], RELEVANCE)
    _, cut = judge.findings()  # type: ignore[attr-defined]
    assert (cut.kind, cut.count, cut.examples) == ("cut-text", 1, (one.chunks[1],))
    judge.judge([Sample("q", "green", one.chunks[:1])], RELEVANCE)
    assert [each.kind for each in judge.findings()] == ["uncalibrated-judge"]  # type: ignore[attr-defined]


def test_a_folder_without_onnx_is_one_of_sentence_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CrossEncoder:
        def __init__(self, name: str) -> None:
            self.name = name

        def predict(self, pairs: list[list[str]], *, show_progress_bar: bool) -> Any:
            assert not show_progress_bar
            return np.array([0.9 if "red" in text else 0.2 for _, text in pairs])

    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    weights = folder / "model.safetensors"
    names = []
    monkeypatch.setitem(
        sys.modules, "sentence_transformers", SimpleNamespace(CrossEncoder=CrossEncoder)
    )
    for content in (b"one", b"another"):
        weights.write_bytes(content)
        judge = find_judge(f"reranker:{folder}")
        [judged] = judge.judge([ONE], RELEVANCE)
        assert [each.probability for each in judged["relevance"].row] == [0.9, 0.2]
        assert judge.about()["model"] == "mine"
        names.append(judge.name)
    assert len(set(names)) == 2  # a card of one is no card of the other


def test_two_classes_are_no_and_yes_and_three_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    two, three = (
        np.tile(np.array(row, dtype=np.float32), (len(WORDS), 1)) for row in ([0, 2], [0, 1, 2])
    )
    folder = onnx_folder(tmp_path / "two", onnx_model(scores=two))
    [judged] = find_judge(f"reranker:{folder}").judge([ONE], RELEVANCE)
    assert judged["relevance"].row[0].probability == pytest.approx(0.8808, abs=1e-4)
    folder = onnx_folder(tmp_path / "three", onnx_model(scores=three))
    with pytest.raises(JudgeError, match="3 scores to a pair"):
        find_judge(f"reranker:{folder}").judge([ONE], RELEVANCE)


def test_a_model_of_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Identity:
        pass

    class CrossEncoder:
        activation_fn = Identity()

        def __init__(self, name: str) -> None:
            self.name = name

        def predict(self, pairs: list[list[str]], *, show_progress_bar: bool) -> Any:
            assert not show_progress_bar
            return np.array([2.0 if "red" in text else -2.0 for _, text in pairs])

    library = SimpleNamespace(CrossEncoder=CrossEncoder)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    judge = find_judge("reranker:cross-encoder/some-model")
    [judged] = judge.judge([ONE], RELEVANCE)
    assert [round(each.probability or 0, 2) for each in judged["relevance"].row] == [0.88, 0.12]
    assert judge.about()["model"] == "cross-encoder/some-model"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Judge("reranker:"), "needs a model"),
        (Judge("reranker:tie:m"), "did you mean tei"),
        (Judge("reranker:tei:m", votes=3), "takes no votes"),
        (Judge("reranker:some-folder", base_url="http://localhost:1"), "takes no base_url"),
    ],
)
def test_rerankers_that_cannot_be(settings: Judge, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        find_judge(settings)


def test_a_result_says_that_the_threshold_is_not_calibrated(cli: Findwell, tmp_path: Path) -> None:
    record = {"query": "q", "question": "Which?", "contexts": ["red", "blue"]}
    (tmp_path / "run.jsonl").write_text(json.dumps(record))
    with serve(lambda call: as_json(scored(call, by_red))) as server:
        settings = Judge("reranker:tei:m", base_url=server.url, retry=HASTE)
        result = findwell.evaluate([record], measures="context_precision", judge=settings)
        shown = cli(
            *("score", tmp_path / "run.jsonl", "-m", "context_precision"),
            *("--judge", "reranker:tei:m", "-J", f"base_url={server.url}"),
        )
    assert result["context_precision"] == 1.0
    assert "uncalibrated-judge" in [each.kind for each in result.findings]
    assert judge_limits(result.judge) == f"{UNCHECKED}; {NOT_CALIBRATED}"
    assert shown.code == 0, shown
    assert NOT_CALIBRATED in " ".join((shown.out + shown.err).split())
