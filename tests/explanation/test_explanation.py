"""Explanations: the list, the gold, every term and divisor, and why dialects differ."""

from pathlib import Path

import pytest

import findwell
from findwell.judges.verdicts import Sample
from findwell.measures.dialects import known_dialects
from findwell.show import render
from tests.conftest import Findwell, Save
from tests.strategies import without_facts

DEMO = Path(findwell.__file__).parent / "demo"
RUN = {"q1": ["a", "x", "a", "b", "n", "c"], "q2": ["y"], "q3": []}
GOLD = [
    {"query": "q1", "gold": [["a", "b"], ["c"], ["d"], {"docs": ["n"], "grade": 0}], "topic": "t"},
    {"query": "q2", "gold": ["z"]},
    {"query": "q3", "gold": ["z"]},
]


def test_the_list_and_the_gold() -> None:
    (told,) = findwell.explain(RUN, GOLD, ["AP"], query="q1")
    assert [(step.doc, step.mark, step.covers) for step in told.ranking] == [
        ("a", "hit", (1,)),
        ("x", "unjudged", ()),
        ("a", "repeated", (1,)),
        ("b", "again", (1,)),
        ("n", "rejected", (4,)),
        ("c", "hit", (2,)),
    ]
    assert [(item.docs, item.grade, item.rank) for item in told.items] == [
        (("a", "b"), 1.0, 1),
        (("c",), 1.0, 6),
        (("d",), 1.0, None),
        (("n",), 0.0, 5),
    ]
    assert [step.precision for step in told.ranking] == pytest.approx(
        [1, 1 / 2, 1 / 3, 2 / 4, 2 / 5, 3 / 6]
    )
    assert told.about == {"topic": "t"}


def test_measures_are_explained_in_every_dialect_however_they_are_given() -> None:
    for measures in (["AP", "RR"], (name for name in ("AP", "RR"))):
        (told,) = findwell.explain(
            RUN, GOLD, measures, query="q1", dialects=["findwell", "autorag"]
        )
        named = [(each.measure, each.dialect) for each in told.calculations]
        assert named == [(name, of) for of in ("findwell", "autorag") for name in ("AP", "RR")]


@pytest.mark.parametrize("dialect", ["findwell", "autorag", "liverag", "ragas", "continuous-eval"])
def test_terms_and_divisor_make_the_value(dialect: str) -> None:
    names = sorted(without_facts())
    (told,) = findwell.explain(RUN, GOLD, names, query="q1", dialects=dialect)
    whole = findwell.evaluate(RUN, GOLD, names, dialect=dialect).per_query.filter(query="q1")
    calculations = {each.measure: each for each in told.calculations}
    assert len(whole) == len(names)
    for measure, value in whole.select("measure", "value").iter_rows():
        calculation = calculations[measure]
        assert calculation.value == value, measure
        if calculation.divisor is not None and measure not in ("success", "all_found"):
            quotient = calculation.total / calculation.divisor
            assert quotient == pytest.approx(value), measure


def test_f_is_told_by_its_parts() -> None:
    (told,) = findwell.explain(RUN, GOLD, ["F@3"], query="q1")
    assert [calculation.measure for calculation in told.calculations] == ["P@3", "recall@3", "F@3"]


def test_ndcg_shows_its_ideal_list() -> None:
    (told,) = findwell.explain({"q": ["a"]}, {"q": {"a": 1, "b": 3, "c": 0}}, ["nDCG@5"])
    assert told.calculations[0].ideal == ((1, 3.0), (2, 1.0))


def test_the_worst_queries_come_first() -> None:
    told = findwell.explain(RUN, GOLD, ["recall"], worst=2)
    assert [each.query for each in told] == ["q2", "q3"]


@pytest.mark.parametrize("other", sorted(known_dialects().keys() - {"findwell"}))
@pytest.mark.parametrize("query", ["q1", "q2", "q3"])
def test_every_difference_has_a_cause(other: str, query: str) -> None:
    run = RUN if not other.startswith("trec") else {**RUN, "q1": ["a", "x", "b", "n", "c"]}
    measures = ["P@4", "recall", "RR", "AP@5", "nDCG@4"]
    (told,) = findwell.explain(run, GOLD, measures, query=query, dialects=["findwell", other])
    value = {
        (calculation.measure, calculation.dialect): calculation.value
        for calculation in told.calculations
    }
    for measure in map(str, map(findwell.plugins.parse_measure, measures)):
        differs = value[measure, "findwell"] != value[measure, other]
        told_why = any(line.startswith(f"{measure}:") for line in told.differences)
        assert differs == told_why, (measure, told.differences)


def test_causes_are_named() -> None:
    gold = {"q": [["a", "b"], ["c"]]}
    (told,) = findwell.explain({"q": ["a", "x", "b"]}, gold, "AP", dialects=["findwell", "course"])
    assert told.differences == (
        "AP: course divides by relevant items retrieved, findwell by relevant items",
    )
    (told,) = findwell.explain({"q": []}, {"q": ["a"]}, "P", dialects=["findwell", "autorag"])
    assert any("nothing was retrieved" in line for line in told.differences)


def test_unknown_query() -> None:
    with pytest.raises(findwell.FindwellError, match=r"no query 'q11'(.|\n)*did you mean q1"):
        findwell.explain(RUN, GOLD, "AP", query="q11")


EXPLAIN = ("explain", DEMO / "bm25.trec", "--gold", DEMO / "questions.jsonl")
GIVEN = (*EXPLAIN, "-q", "q02", "-m", "AP", "-m", "nDCG@5")


def test_command_line_table(cli: Findwell) -> None:
    done = cli(*GIVEN, "--dialect", "findwell", "--dialect", "autorag")
    assert done.code == 0, done.err
    assert "query q02: The display shows E05" in done.out
    assert "✓ hit" in done.out
    assert "AP (findwell) = 1 ÷ 2 relevant items = 0.5000" in done.out
    assert "Why they differ" in done.out


def test_command_line_json_and_markdown(cli: Findwell) -> None:
    told = cli(*GIVEN, "--format", "json").answer["explanations"][0]
    assert told["query"] == "q02"
    assert told["calculations"][0]["divided_by"] == "relevant items"
    markdown = cli(*GIVEN, "--format", "markdown").out
    assert "| rank | document |" in markdown
    assert "- AP (findwell) = 1 ÷" in markdown


def test_command_line_worst_and_errors(cli: Findwell) -> None:
    done = cli(*EXPLAIN, "--worst", "2", "-m", "recall@5")
    assert done.out.count("the list (") == 2
    done = cli(*EXPLAIN, "-q", "nope")
    assert done.code == 2
    assert "no query 'nope'" in done.err


def test_the_parts_of_a_measure_are_taken_over_its_relation() -> None:
    sample = {"query": "q", "retrieved": ["one two three", "x y"], "gold": ["one two"]}
    (told,) = findwell.explain([sample], measures="F/containment")
    values = {calculation.measure: calculation.value for calculation in told.calculations}
    assert values == {
        "P/containment": 0.5,
        "recall/containment": 1.0,
        "F/containment": pytest.approx(2 / 3),
    }


JUDGED = [
    {
        "query": "capital",
        "question": "What is the capital of Brazil?",
        "contexts": ["Rio lies by the sea.", "Brasília is the capital of Brazil. It is young."],
        "reference": "The capital of Brazil is Brasília. It has three million people.",
    },
    {
        "query": "sea",
        "question": "Where does Rio lie?",
        "contexts": ["Rio lies by the sea."],
        "reference": "Rio lies by the sea.",
    },
]


@pytest.mark.parametrize("name", ["context_precision", "context_recall", "context_relevancy"])
def test_a_judged_number_is_explained_with_the_verdicts(name: str) -> None:
    (told,) = findwell.explain(JUDGED, measures=[name], query="capital", judge="local:text")
    whole = findwell.judges.judge(JUDGED, [name], judge="local:text").per_query
    calculation = told.calculations[-1]
    assert calculation.value == whole.filter(query="capital")["value"][0]
    assert calculation.divisor
    assert calculation.total / calculation.divisor == pytest.approx(calculation.value)
    assert told.judge == "local:text"
    assert {said.aspect for said in told.verdicts} == {told.rankings[0].relation}


def test_claims_say_which_chunk_supports_them_and_why() -> None:
    (told,) = findwell.explain(
        JUDGED, measures="context_recall", query="capital", judge="local:text"
    )
    assert [(step.mark, step.covers) for step in told.ranking] == [("rejected", ()), ("hit", (1,))]
    assert [item.rank for item in told.items] == [2, None]
    yes = [said for said in told.verdicts if said.value]
    assert [(said.item, said.rank) for said in yes] == [("The capital of Brazil is Brasília.", 2)]
    assert "Brasília is the capital of Brazil." in yes[0].quote
    assert yes[0].reason.startswith("score ")


def test_statements_are_the_units_of_their_relation() -> None:
    name = "context_relevancy"
    (told,) = findwell.explain(JUDGED, measures=name, query="capital", judge="local:text")
    assert [(step.text, step.chunk) for step in told.ranking] == [
        ("Rio lies by the sea.", 1),
        ("Brasília is the capital of Brazil.", 2),
        ("It is young.", 2),
    ]


def test_the_worst_by_a_judged_measure() -> None:
    told = findwell.explain(JUDGED, measures="context_recall", worst=2, judge="local:text")
    assert [each.query for each in told] == ["capital", "sea"]


def test_a_verdict_that_failed_is_told_as_such() -> None:
    def judge(_: Sample) -> dict[str, object]:
        return {"relevance": [None, 2]}

    (told,) = findwell.explain(JUDGED, measures="nDCG/relevance", query="capital", judge=judge)
    assert [said.value for said in told.verdicts] == [None, 2]
    assert told.calculations[0].value is None
    assert "1 of 2 verdicts" in (told.calculations[0].reason or "")
    table = render(told, "table")
    assert "failed" in table
    assert "what the judge" in table


def test_the_printed_marks_are_those_of_the_printed_number(cli: Findwell, save: Save) -> None:
    run = save("run.trec", "q Q0 a 1 2 r\nq Q0 b 2 1 r\n")
    gold = save("qrels.txt", "q 0 a 1\nq 0 b 2\n")
    done = cli("explain", run, "--gold", gold, "-m", "P@2", "--rel", "2")
    assert done.code == 0, done.err
    rows = [line.split() for line in done.out.splitlines() if line[1:2] in ("1", "2")]
    assert rows[0] == ["1", "a", "✗", "item", "2", "1", "0.0000"]
    assert rows[1][:3] == ["2", "b", "✓"]
    assert "0.5000" in rows[1]
    assert "P(rel=2)@2 (findwell) = 1 ÷ 2 ranks (k) = 0.5000" in done.out


def test_the_printed_ideal_is_the_one_that_was_added_up(cli: Findwell, save: Save) -> None:
    samples = save(
        "s.jsonl", '{"query": "q", "retrieved": ["a", "x", "y"], "gold": [["a", "b"], ["c"]]}'
    )
    done = cli("explain", samples, "-m", "nDCG", "--dialect", "autorag")
    assert "÷ 2.1309 ideal DCG of all documents of all groups" in done.out
    assert "the ideal list has the gains 1, 1, 1" in done.out
