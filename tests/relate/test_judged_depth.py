"""A judge is asked no deeper than measures read, and what it was not asked is never made up."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import findwell
from findwell.core.errors import MeasureError
from findwell.core.policy import Policy
from findwell.engines.local import LocalEngine
from findwell.evaluation.comparison.systems import gather
from findwell.evaluation.inputs import read_inputs
from findwell.evaluation.plan import Plan
from findwell.judges.find import find_judge
from findwell.judges.replay import FunctionJudge, ReplayJudge, record
from findwell.measures.dialects import known_dialects, resolve_measures
from findwell.relations.judged.judging import Judging, Task
from findwell.relations.match import Matcher, find_matcher
from findwell.relations.match.matcher import MatchContext
from findwell.show.details import QueryDetails
from tests.client.server import Server, serve
from tests.judges.building import FOUR
from tests.judges.model import well
from tests.measures.test_registry import ALL
from tests.strategies import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from findwell.core.relation import Relation
    from findwell.judges.verdicts import Judged, Sample
    from findwell.measures import Measure
    from tests.conftest import Findwell, Save

MATCHERS: dict[str, Matcher] = {name: find_matcher(name) for name in FOUR}
AT = {"relevance": "context_precision", "claims": "context_recall"}
AT |= {"entities": "context_entities_recall", "statements": "context_relevancy"}


def chance(*texts: str) -> int:
    """Return a number that texts alone decide."""
    return hashlib.sha256("\0".join(texts).encode()).digest()[0]


def judge_alone(sample: Sample) -> dict[str, Any]:
    """Judge each chunk by itself, as no other chunk were there."""
    entities = sample.reference.split()
    return {
        "relevance": [chance("r", chunk) % 4 for chunk in sample.chunks],
        "claims": [
            [chance("c", each, chunk) % 2 for chunk in sample.chunks]
            for each in sample.items["claims"]
        ],
        "entity_texts": entities,
        "entities": [
            [chance("e", each, chunk) % 2 for chunk in sample.chunks] for each in entities
        ],
        "statements": [
            [chance("s", each, chunk) % 2 for each in row]
            for chunk, row in zip(sample.chunks, sample.parts["statements"], strict=False)
        ],
    }


texts = st.sampled_from(["", "A b. C d.", "E f.", "G. H. I.", "J", "K l m."]) | st.text(
    "xyz. ", max_size=9
)
lists = st.lists(st.lists(texts, max_size=12), min_size=1, max_size=4).filter(any)


def samples_of(lists_: list[list[str]]) -> list[dict[str, Any]]:
    return [
        {"question": f"Why {n}?", "retrieved_contexts": each, "reference": "One two. Three four."}
        for n, each in enumerate(lists_)
    ]


def relations(samples: list[dict[str, Any]], depth: int | None = None) -> dict[str, Relation]:
    """Draw what a judge judges, down to a rank."""
    plan = Plan.of([f"recall/{name}" for name in FOUR], judge=judge_alone)
    with ExitStack() as held:
        data = read_inputs(plan, samples, None, held)
    tasks = {matcher: Task(name, depth) for name, matcher in MATCHERS.items()}
    context = MatchContext(judging=Judging(FunctionJudge(judge_alone), tasks))
    return {
        name: LocalEngine().draw(data.runs[0], matcher.bind(data.gold, context), Policy()).relation
        for name, matcher in MATCHERS.items()
    }


EVERY: list[Measure] = list(
    dict.fromkeys(
        formula
        for speaks in known_dialects().values()
        for formula in map(speaks.formula, ALL)
        if not formula.facts()  # of texts, which these have not
    )
)


@examples(8)
@given(lists)
def test_values_are_those_of_lists_that_are_judged_to_the_end(given_lists: list[list[str]]) -> None:
    """For every measure of every dialect, over everything that a judge judges."""
    samples = samples_of(given_lists)
    whole = relations(samples)
    for depth in (1, 3):
        cut = relations(samples, depth)
        for name in FOUR:
            one, other = whole[name], cut[name]
            cutting = [
                measure
                for measure in EVERY
                if (deep := measure.depth(listed=one.needed)) is not None and deep <= depth
            ]
            assert cutting
            for measure in cutting:
                np.testing.assert_array_equal(
                    measure.values(one), measure.values(other), err_msg=f"{measure}/{name}@{depth}"
                )


@pytest.mark.parametrize(
    ("measures", "relation", "depth"),
    [
        (["context_precision@5"], "relevance", 5),
        (["context_precision@5", "context_precision@3"], "relevance", 5),
        (["context_precision@5", "context_precision"], "relevance", None),
        (["nDCG@5/relevance"], "relevance", None),  # the ideal list is made of all grades
        (["recall@5/relevance"], "relevance", None),
        (["context_recall@5", "nDCG@7/claims"], "claims", 7),
        (["context_relevancy@2"], "statements", 2),
    ],
)
def test_how_deep_measures_read(measures: list[str], relation: str, depth: int | None) -> None:
    task = MATCHERS[relation].task(resolve_measures(measures, "findwell"))
    assert task is not None
    assert task.depth == depth


# ---- a language model is asked


def long_lists(lengths: tuple[int, ...] = (20, 20)) -> list[dict[str, Any]]:
    return [
        {
            "query": f"q{number}",
            "question": "What is the capital of Brazil?",
            "retrieved_contexts": [
                f"Text {number}.{rank}. "
                + ("Brasília is the capital of Brazil." if rank % 3 else "")
                for rank in range(1, length + 1)
            ],
            "reference": "The capital of Brazil is Brasília.",
        }
        for number, length in enumerate(lengths)
    ]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path))
    with serve(well) as running:
        yield running


def asked(server: Server) -> set[str]:
    """Return which of the texts the model has seen."""
    prompts = "\n".join(server.prompts)
    return {
        f"{number}.{rank}"
        for number in range(9)
        for rank in range(1, 21)
        if f"Text {number}.{rank}." in prompts
    }


def down_to(depth: int, queries: int = 2) -> set[str]:
    return {f"{number}.{rank}" for number in range(queries) for rank in range(1, depth + 1)}


@pytest.mark.parametrize("aspect", sorted(FOUR))
@pytest.mark.parametrize("decompose", [False, True])
def test_a_model_is_shown_what_is_read_and_no_more(
    aspect: str, decompose: bool, server: Server
) -> None:
    judge = findwell.Judge("openai:m", base_url=server.url, cache="off", decompose=decompose)
    ask: dict[str, Any] = {"judge": judge}
    at_five = f"{AT[aspect]}@5"
    cut = findwell.evaluate(long_lists(), measures=[at_five], **ask)
    assert asked(server) == down_to(5)
    whole = findwell.evaluate(long_lists(), measures=[at_five, AT[aspect]], **ask)
    assert asked(server) == down_to(20)
    assert cut[at_five] == whole[at_five]
    assert not cut.findings
    assert cut.summary["failed"].to_list() == [0]
    assert "lower" not in cut.summary.columns


PASS = ("--undecided", "pass")


@pytest.mark.parametrize(
    ("command", "depth"),
    [
        (["score", "FILE", "-m", "context_precision@5"], 5),
        (["score", "FILE", "-m", "context_precision@5", "-m", "context_recall@7"], 7),
        (
            [
                "score",
                "FILE",
                "-m",
                "context_recall@2",
                "--require",
                "context_recall@6>=0.5",
                *PASS,
            ],
            6,
        ),
        (["compare", "FILE", "FILE", "-m", "context_recall@4", "--test", "t"], 4),
        (["curve", "FILE", "-m", "context_recall", "--at", "1,3"], 3),
        (["curve", "FILE", "-m", "context_recall@9", "--at", "1,3"], 3),
        (
            [
                "curve",
                "FILE",
                "-m",
                "context_recall",
                "--at",
                "1,3",
                "--reach",
                "context_recall>=.5",
            ],
            20,
        ),
        (["explain", "FILE", "-m", "context_precision@3", "-q", "q0"], 3),
    ],
    ids=lambda value: " ".join(value[2:]) if isinstance(value, list) else str(value),
)
def test_commands_ask_as_deep_as_they_read(
    command: list[str], depth: int, server: Server, cli: Findwell, save: Save
) -> None:
    file = save("samples.jsonl", "\n".join(map(json.dumps, long_lists((20,)))))
    named = [file if part == "FILE" else part for part in command]
    judge = ["--judge", "openai:m", "-J", f"base_url={server.url}"]
    planned = cli(*named, *judge, "--dry-run", "--format", "json")
    assert not server.calls
    done = cli(*named, *judge, "--format", "json")
    assert done.code == 0, done
    assert asked(server) == down_to(depth, 1)
    assert planned.answer["forecast"]["calls"] == len(server.calls)


def test_an_explanation_shows_what_was_judged(server: Server) -> None:
    (told,) = findwell.explain(
        long_lists(),
        measures=["context_precision@3"],
        query="q1",
        judge="openai:m",
        reading=findwell.Reading(base_url=server.url),
    )
    assert [step.rank for step in told.ranking] == [1, 2, 3]
    assert {step.mark for step in told.ranking} == {"hit", "rejected"}
    assert len(told.verdicts) == 3


# ---- several depths at once


def test_each_aspect_is_asked_as_deep_as_its_own_measures() -> None:
    seen: list[tuple[str, int, frozenset[str]]] = []

    class Listening(FunctionJudge):
        def judge(self, samples: Any, aspects: Any, progress: Any = None) -> Any:
            seen.extend((each.query, len(each.chunks), aspects) for each in samples)
            return super().judge(samples, aspects, progress)

    steps: list[tuple[int, int]] = []
    measures = ["context_precision@5", "context_recall", "context_relevancy@5"]
    samples = long_lists((20, 4))
    result = findwell.evaluate(
        samples,
        measures=measures,
        judge=Listening(judge_alone),
        reading=findwell.Reading(keep=20),
        progress=lambda step: steps.append((step.done, step.total)),
    )
    shallow, deep = frozenset({"relevance", "statements"}), frozenset({"claims"})
    assert sorted(seen, key=str) == sorted(
        [("q0", 5, shallow), ("q0", 20, deep), ("q1", 4, shallow | deep)], key=str
    )
    assert [step for step in steps if step[0]] == [(1, 3), (2, 3), (3, 3)]
    assert result.kept.verdicts is not None
    counts = result.kept.verdicts.filter(query="q0").group_by("aspect").len()
    assert dict(counts.rows()) == {"relevance": 5, "claims": 20, "statements": 9}
    again = findwell.evaluate(samples, measures=AT.values(), judge=judge_alone)
    assert {name: again.score([name])[name] for name in measures} == result.values


def test_a_panel_is_asked_no_deeper_either() -> None:
    lengths: list[int] = []

    def listening(sample: Sample) -> dict[str, Any]:
        lengths.append(len(sample.chunks))
        return judge_alone(sample)

    panel = find_judge(["local:text", listening, judge_alone])
    result = findwell.evaluate(long_lists(), measures=["context_precision@5"], judge=panel)
    assert lengths == [5, 5]
    assert result.judge["agreement"]["relevance"][0]["verdicts"] == 10


# ---- afterwards


@pytest.mark.parametrize("aspect", sorted(FOUR))
def test_a_saved_result_knows_what_it_lacks(aspect: str, tmp_path: Path) -> None:
    at_five = f"{AT[aspect]}@5"
    fresh = findwell.evaluate(
        long_lists((20, 3)),
        measures=[at_five],
        judge=judge_alone,
        reading=findwell.Reading(keep=20),
    )
    fresh.save(tmp_path / "saved")
    whole = findwell.evaluate(long_lists((20, 3)), measures=[AT[aspect]], judge=judge_alone)
    for result in (fresh, findwell.load(tmp_path / "saved")):
        for name in (at_five, f"{AT[aspect]}@2", f"success@4/{aspect}"):
            assert result.score([name])[name] == whole.score([name])[name]
        for name in (AT[aspect], f"{AT[aspect]}@6", f"bpref/{aspect}"):
            with pytest.raises(MeasureError, match="only the first 5 were judged") as stop:
                _ = result.score([name]).values
            assert name in stop.value.fix
        with pytest.raises(MeasureError, match="only the first 5"):
            findwell.statistics.curve(result, [AT[aspect]], [1, 10])
        with pytest.raises(MeasureError, match="only the first 5"):
            findwell.statistics.smallest_k(result, AT[aspect], 0.5)
        assert findwell.statistics.curve(result, [AT[aspect]], [1, 5])["value"].null_count() == 0
    with pytest.raises(MeasureError, match="only the first 5"):
        findwell.compare(tmp_path / "saved", tmp_path / "saved", measures=[AT[aspect]])


def test_lists_that_are_shorter_lack_nothing() -> None:
    result = findwell.evaluate(
        long_lists((5, 3)), measures=["context_precision@5"], judge=judge_alone
    )
    assert result.score(["context_precision@9", "nDCG/relevance"]).values


@pytest.mark.parametrize("aspect", sorted(FOUR))
def test_a_report_says_nothing_about_what_was_not_judged(aspect: str) -> None:
    result = findwell.evaluate(
        long_lists(),
        measures=[f"{AT[aspect]}@5"],
        judge=judge_alone,
        reading=findwell.Reading(keep=20),
    )
    (system,) = gather([result])
    told = QueryDetails(system).of("q0")
    marks = [chunk["mark"] for chunk in told["list"]]
    assert len(marks) == told["depth"] == 20
    assert "none" not in marks[:5]
    assert set(marks[5:]) == {"none"}  # no mark at all


class Remembering:
    """A judge that remembers what it was asked about all aspects, and what it said."""

    def __init__(self, judge: FunctionJudge) -> None:
        self._judge = judge
        self.name, self.about = judge.name, judge.about
        self.samples: list[Sample] = []
        self.judged: list[Judged] = []

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: object = None
    ) -> list[Judged]:
        assert aspects == FOUR
        said = self._judge.judge(samples, aspects)
        self.samples += samples
        self.judged += said
        del progress
        return said


def test_verdicts_that_were_recorded_deeper_can_be_replayed(tmp_path: Path) -> None:
    measures = [f"{each}@5" for each in AT.values()]
    for asked, name in ((list(AT.values()), "all"), (measures, "five")):
        judge = Remembering(FunctionJudge(judge_alone))
        findwell.evaluate(long_lists(), measures=asked, judge=judge)
        record(judge.samples, judge.judged, tmp_path / name)
    expected = findwell.evaluate(long_lists(), measures=measures, judge=judge_alone).values
    for name in ("all", "five"):
        found = findwell.evaluate(
            long_lists(), measures=measures, judge=ReplayJudge(tmp_path / name)
        )
        assert found.values == expected
        assert not found.findings or {each.kind for each in found.findings} == {"unproven-verdict"}
    deeper = findwell.evaluate(
        long_lists(), measures=["context_recall@6"], judge=ReplayJudge(tmp_path / "five")
    )
    assert deeper.values == {"context_recall@6": None}
    assert "not recorded: only the first 5 chunks have verdicts" in str(
        deeper.per_query["reason"][0]
    )


def test_a_budget_reads_the_whole_list() -> None:
    task = MATCHERS["relevance"].task(resolve_measures(["P@50tokens", "P@2"], "findwell"))
    assert task is not None
    assert task.depth is None
