"""A saved result is explained, scored again and drawn at cutoffs from its folder alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.evaluation.plan import grouped
from tests.explanation.test_explained_values import EVERY, RELATIONS, TEXTS
from tests.explanation.test_explanation import GOLD, JUDGED, RUN

if TYPE_CHECKING:
    from findwell.types import Explanation
    from tests.conftest import Findwell

DEMO = Path(findwell.__file__).parent / "demo"


def without_scores(told: Explanation, **also: Any) -> Explanation:
    """Return an explanation without what only the inputs can tell, and without findings."""
    rankings = tuple(
        replace(each, steps=tuple(replace(step, scores=(), **also) for step in each.steps))
        for each in told.rankings
    )
    return replace(told, rankings=rankings, findings=())


@pytest.mark.parametrize("dialect", ["findwell", "autorag", "liverag", "ragas"])
def test_it_is_explained_as_the_inputs_are(dialect: str, tmp_path: Path) -> None:
    result = findwell.evaluate(
        RUN, GOLD, ["AP", "nDCG@3"], dialect=dialect, reading=findwell.Reading(keep=10)
    )
    folder = result.save(tmp_path / "saved")
    for query in ("q1", "q2", "q3"):
        (live,) = findwell.explain(RUN, GOLD, ["AP", "nDCG@3"], dialects=dialect, query=query)
        for saved in (result, folder, str(folder)):
            (told,) = findwell.explain(saved, query=query)
            assert told == replace(live, findings=told.findings)


@pytest.mark.parametrize("by", RELATIONS)
def test_over_texts_and_their_sentences(by: str, tmp_path: Path) -> None:
    folder = findwell.evaluate(
        TEXTS, None, "recall", by=by, reading=findwell.Reading(keep=10)
    ).save(tmp_path / "saved")
    for query in ("one", "two"):
        (live,) = findwell.explain(TEXTS, None, EVERY, by=by, query=query)
        (told,) = findwell.explain(folder, measures=EVERY, query=query)
        # the folder keeps the texts of chunks, neither their words nor where they stand
        also = {"text": None} if by in ("words", "spans") else {}
        assert without_scores(told, **also) == without_scores(live, **also)


@pytest.mark.parametrize("name", ["context_precision", "context_recall", "context_relevancy"])
def test_with_the_verdicts_of_its_judge(name: str, tmp_path: Path) -> None:
    folder = findwell.judges.judge(
        JUDGED, name, judge="local:text", reading=findwell.Reading(keep=10)
    ).save(tmp_path / "saved")
    (live,) = findwell.explain(JUDGED, measures=name, query="capital", judge="local:text")
    (told,) = findwell.explain(folder)
    assert told.query == "capital"
    assert told.verdicts
    assert without_scores(told) == without_scores(live)


def test_other_measures_and_levels(tmp_path: Path) -> None:
    run, gold = {"q": ["a", "b", "x"]}, {"q": {"a": 1, "b": 2, "c": 2}}
    folder = findwell.evaluate(run, gold, "recall", reading=findwell.Reading(keep=5)).save(
        tmp_path / "saved"
    )
    (told,) = findwell.explain(folder, measures=["P@2", "nDCG@2"], rel=2)
    (live,) = findwell.explain(run, gold, ["P@2", "nDCG@2"], rel=2)
    assert told == live
    (own,) = findwell.explain(folder, rel=2)
    assert [each.measure for each in own.calculations] == ["recall(rel=2)"]


def test_lists_that_were_not_kept_keep_their_marks(tmp_path: Path) -> None:
    folder = findwell.evaluate(RUN, GOLD, "recall", reading=findwell.Reading(keep=2)).save(
        tmp_path / "saved"
    )
    (told,) = findwell.explain(folder, query="q1")
    assert [step.doc for step in told.ranking] == ["a", "x", *["(not kept)"] * 4]
    assert [step.mark for step in told.ranking][-1] == "hit"


def test_a_chunk_that_is_written_otherwise_has_its_verdicts_in_a_report(tmp_path: Path) -> None:
    """What a judge takes for one chunk is one in the report too."""
    from findwell.show.details import QueryDetails
    from findwell.show.panel import lay_side_by_side

    sample: dict[str, Any] = {
        "query": "q",
        "question": "Where is Rio?",
        "reference": "Rio lies by the sea.",
    }
    sample["contexts"] = ["Rio lies by the sea.", "Rio  lies by the sea."]
    folder = findwell.judges.judge(
        [sample], "context_precision", judge="local:text", reading=findwell.Reading(keep=5)
    ).save(tmp_path / "saved")
    case = QueryDetails(lay_side_by_side([folder]).systems[0]).of("q")
    assert [len(each["verdicts"]) for each in case["list"]] == [1, 1]


def test_of_several_runs_one_is_named(tmp_path: Path) -> None:
    runs = {"one": {"q": ["a"]}, "two": {"q": ["b"]}}
    folder = findwell.evaluate(runs, {"q": ["a"]}, "recall", reading=findwell.Reading(keep=3)).save(
        tmp_path / "saved"
    )
    with pytest.raises(
        findwell.FindwellError, match="2 runs cannot be explained at once: one, two"
    ):
        findwell.explain(folder)
    for given in ((folder,), (runs, {"q": ["a"]}, "recall")):
        (told,) = findwell.explain(*given, system="two")
        assert [step.doc for step in told.ranking] == ["b"]
    with pytest.raises(findwell.FindwellError, match="did you mean two"):
        findwell.explain(folder, system="twoo")


@pytest.mark.parametrize(
    "options",
    [
        {"gold": GOLD},
        {"gold": pl.DataFrame({"query": ["q"], "doc": ["a"], "grade": [1]})},
        {"by": "exact"},
        {"ids": "lower"},
        {"corpus": {"a": "text"}},
        {"judge": "local:text"},
        {"missing": "skip"},
        {"skip_bad": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_needs_the_inputs_is_refused(options: dict[str, Any]) -> None:
    result = findwell.evaluate(RUN, GOLD, "recall")
    with pytest.raises(findwell.FindwellError, match=f"{next(iter(options))} has no effect"):
        findwell.explain(result, **grouped(options))


def test_another_dialect_needs_the_inputs() -> None:
    result = findwell.evaluate(RUN, GOLD, "recall")
    assert findwell.explain(result, dialects="findwell") == findwell.explain(result)
    with pytest.raises(
        findwell.FindwellError, match="measured in the dialect findwell, not in autorag"
    ):
        findwell.explain(result, dialects=["findwell", "autorag"])


def test_curves_of_a_folder(tmp_path: Path) -> None:
    result = findwell.evaluate(RUN, GOLD, "recall")
    folder = result.save(tmp_path / "saved")
    assert findwell.statistics.curve(folder, "P", [1, 3]).equals(
        findwell.statistics.curve(result, "P", [1, 3])
    )
    assert findwell.statistics.smallest_k(folder, "recall", 0.1) == findwell.statistics.smallest_k(
        result, "recall", 0.1
    )
    with pytest.raises(findwell.FindwellError, match=r"findwell\.evaluate"):
        findwell.statistics.curve({"q": ["a"]})  # type: ignore[arg-type]


# the command line

RUNS = (DEMO / "bm25.trec", "--gold", DEMO / "questions.jsonl")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = findwell.evaluate(
        DEMO / "bm25.trec", DEMO / "questions.jsonl", "recall@5", reading=findwell.Reading(keep=50)
    )
    return result.save(tmp_path_factory.mktemp("results") / "monday")


def test_explain_says_the_same_of_the_folder(cli: Findwell, saved: Path) -> None:
    options = ("-q", "q02", "-m", "AP", "-m", "nDCG@5", "--rel", "1")
    live, told = cli("explain", *RUNS, *options), cli("explain", saved, *options)
    assert (told.code, told.out) == (0, live.out)
    worst = cli("explain", saved, "--worst", "2", "--format", "json")
    assert len(worst.answer["explanations"]) == 2


def test_score_measures_it_again(cli: Findwell, saved: Path, tmp_path: Path) -> None:
    options = ["-m", "nDCG@10", "-m", "P@3", "--rel", "1", "--slice", "topic", "--per-query"]
    options += ["--level", "0.9", "--bounds", "--format", "json"]
    live, again = (cli("score", *given, *options) for given in (RUNS, (saved,)))
    assert (live.code, again.code) == (0, 0)
    # which ties matter depends on the measures, and only the run knows its ties
    expected, found = ({**done.answer, "findings": []} for done in (live, again))
    assert found == expected
    same = cli("score", saved, "--format", "json", "--save", tmp_path / "copy")
    assert same.code == 0
    (row,) = same.answer["summary"]
    assert row["measure"] == "recall@5"
    copy = findwell.load(tmp_path / "copy")
    assert copy.kept.listed["bm25"].equals(findwell.load(saved).kept.listed["bm25"])
    gated = cli("score", saved, "--require", "RR>=0.99", "--decide", "value")
    assert gated.code == 1
    assert cli("score", saved, "--read", "cluster=topic").code == 0


def test_curve_draws_it(cli: Findwell, saved: Path) -> None:
    options = ("-m", "recall", "--at", "1,5", "--reach", "recall>=0.5", "--format", "json")
    live, again = cli("curve", *RUNS, *options), cli("curve", saved, *options)
    assert (again.code, again.answer) == (0, live.answer)


@pytest.mark.parametrize("command", ["explain", "score", "curve"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--gold", DEMO / "questions.jsonl"), "--gold has no effect"),
        (("--by", "rouge"), "--by has no effect"),
        (("--read", "ids=lower"), "--read ids has no effect"),
        (("--corpus", "x.jsonl"), "--corpus has no effect"),
        (("--judge", "local:text"), "--judge has no effect"),
        (("--read", "run_format=trec"), "--read run_format has no effect"),
        (("--dialect", "autorag"), "measured in the dialect findwell, not in autorag"),
    ],
)
def test_options_that_need_the_inputs_say_so(
    command: str, options: tuple[object, ...], said: str, cli: Findwell, saved: Path
) -> None:
    done = cli(command, saved, *options)
    assert done.code == 2
    assert said in done.err
    assert "fix: leave" in done.err


@pytest.mark.parametrize("command", ["score", "curve"])
def test_one_folder_at_a_time(command: str, cli: Findwell, saved: Path) -> None:
    for others in ((saved,), (DEMO / "bm25.trec",)):
        done = cli(command, saved, *others)
        assert done.code == 2
        assert "only one saved result" in done.err
        assert "findwell compare" in done.err
