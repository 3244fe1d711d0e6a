"""Judge cards: labels of every kind, figures by hand, cards on disk, thresholds from labels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import findwell
from findwell.core.errors import FindwellError, InputError, OptionError, SaveError
from findwell.judges.cards.card import (
    CardFigure,
    JudgeCard,
    figures,
    find_card,
    find_cards,
    judge_card,
)
from findwell.judges.cards.labels import LabelledPairs, LabelledSamples, load_labels
from findwell.judges.find import find_judge
from findwell.judges.limits import judge_lines
from findwell.judges.replay import FunctionJudge
from findwell.judges.taught import teach_judge
from findwell.statistics.agreement import kappa
from tests.strategies import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.progress import Progress
    from findwell.judges.verdicts import JudgeProtocol, Sample
    from tests.conftest import Findwell, Save

DATA = Path(__file__).parents[2] / "../shared/data"
ROWS: list[dict[str, Any]] = [
    {"question": "Where is Rome?", "chunk": "Rome is in Italy.", "label": 3, "topic": "cities"},
    {"question": "Where is Rome?", "chunk": "Paris is in France.", "label": 0, "topic": "cities"},
    {"question": "Who was Bach?", "chunk": "Bach was a composer.", "label": 2, "topic": "people"},
    {"question": "Who was Bach?", "chunk": "He lived in Leipzig.", "label": 1, "topic": "people"},
]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


def verdicts(judge: JudgeProtocol, labels: LabelledPairs, aspect: str) -> list[int | None]:
    """Return the value of the verdict about each pair; None where there is none."""
    said = LabelledSamples.of(labels, aspect).ask(judge)
    return [None if each is None else each.value for each in said]


def says(*grades: int | None) -> FunctionJudge:
    """Give these grades to chunks one after the other, question by question."""
    left = list(grades)

    def judge(sample: Sample) -> dict[str, Any]:
        return {"relevance": [left.pop(0) for _ in sample.chunks]}

    return FunctionJudge(judge, name="fixed")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))


# --- labels ---------------------------------------------------------------------------------------


def test_labels_from_every_kind_of_table(save: Save, tmp_path: Path) -> None:
    table = pl.DataFrame(ROWS)
    table.write_parquet(tmp_path / "l.parquet")
    sources: list[object] = [
        ROWS,
        table,
        table.to_pandas() if hasattr(table, "to_pandas") else table,
        save("l.jsonl", LINES),
        save("l.csv", table.write_csv()),
        save("l.tsv", table.write_csv(separator="\t")),
        tmp_path / "l.parquet",
    ]
    expected = load_labels(ROWS)
    assert expected.labels == (3, 0, 2, 1)
    assert expected.columns == {"topic": ("cities", "cities", "people", "people")}
    for source in sources:
        found = load_labels(source)
        assert found.labels == expected.labels
        assert found.questions == expected.questions
        assert found.chunks == expected.chunks
        assert found.columns == expected.columns
    assert load_labels(expected) is expected


def test_labels_from_judgements_and_texts(save: Save) -> None:
    found = load_labels(
        save("qrels.txt", "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 -1\n"),
        corpus=save("corpus.jsonl", '{"_id": "d1", "text": "one"}\n{"_id": "d2", "text": "two"}\n'),
        questions=save("queries.tsv", "q1\tWhat?\nq2\tWho?\n"),
    )
    assert found.name == "qrels.txt"
    assert found.questions == ("What?", "What?", "Who?")
    assert found.chunks == ("one", "two", "one")
    assert found.labels == (2, 0, 0)
    assert found.queries == ("q1", "q1", "q2")


def test_judgements_that_say_what_was_asked_need_no_questions() -> None:
    gold = [{"query": "q1", "question": "What?", "gold": ["d1"], "topic": "x"}]
    found = load_labels(gold, corpus={"d1": "one"})
    assert (found.questions, found.labels) == (("What?",), (1,))
    assert found.columns == {"topic": ("x",)}


@pytest.mark.parametrize(
    ("label", "number"),
    [(0, 0), ("1", 1), (" 2 ", 2), (3.0, 3), (True, 1), ("Yes", 1), ("no", 0), (-2, 0), ("1.0", 1)],
)
def test_labels_as_people_write_them(label: object, number: int) -> None:
    assert load_labels([{"question": "q", "chunk": "c", "label": label}]).labels == (number,)


@pytest.mark.parametrize("label", [4, "maybe", 1.5, [1], "inf"])
def test_labels_that_are_none(label: object) -> None:
    with pytest.raises(InputError, match="is not a valid label") as error:
        load_labels([{"question": "q", "chunk": "c", "label": label}])
    assert "record 1" in str(error.value)


def test_a_judgement_that_is_no_label_is_named_with_its_query_and_document() -> None:
    with pytest.raises(InputError, match=r"'7\.0' is not a valid label") as error:
        load_labels({"q1": {"d1": 7}}, corpus={"d1": "one"}, questions={"q1": "?"})
    assert error.value.where == "labels, query q1, d1"


def test_pairs_without_a_label_are_left_out_and_counted() -> None:
    rows = [{**ROWS[0], "label": label} for label in (1, None, "", float("nan"))]
    found = load_labels(rows)
    assert (len(found), found.blank) == (1, 3)


def test_other_names_for_the_columns() -> None:
    row = {"user_input": "q", "passage": "c", "relevance": 1, "qid": 7, "note": [1, 2]}
    found = load_labels([row])
    assert (found.questions, found.chunks, found.labels, found.queries) == (
        ("q",),
        ("c",),
        (1,),
        ("7",),
    )
    assert not found.columns


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{"qestion": "q", "chunk": "c", "label": 1}], "no question; found 'qestion'"),
        ([{"question": "q", "chunk": "c"}], "no label"),
        ([{"question": " ", "chunk": "c", "label": 1}], "the question is ' ', not a text"),
        ([{"question": "q", "chunk": None, "label": 1}], "the chunk is 'None', not a text"),
        ([7], "a int, not an object"),
        ([], "no pair has a label"),
        ({"question": "q"}, "a dict holds no labels"),
        (7, "a int holds no labels"),
    ],
)
def test_what_holds_no_labels(data: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_labels(data)


def test_files_that_hold_no_labels(save: Save) -> None:
    with pytest.raises(InputError, match="line 2"):
        load_labels(save("a.jsonl", '{"question": "q", "chunk": "c", "label": 1}\n{"label": 1}\n'))
    with pytest.raises(InputError, match="no column of labels"):
        load_labels(save("qrels.txt", "q1 0 d1 1\nq1 0 d2 0\n"))
    with pytest.raises(InputError, match="the questions are missing"):
        load_labels(save("q.txt", "q1 0 d1 1\n"), corpus={"d1": "one"})
    with pytest.raises(InputError, match="the chunk 'd1' has no text"):
        load_labels(save("q.txt", "q1 0 d1 1\n"), corpus={"d2": "x"}, questions={"q1": "?"})
    with pytest.raises(InputError, match="the question of query 'q1' has no text"):
        load_labels(save("q.txt", "q1 0 d1 1\n"), corpus={"d1": "x"}, questions={"q2": "?"})


# --- figures --------------------------------------------------------------------------------------


def named(found: Sequence[CardFigure]) -> dict[str, CardFigure]:
    return {figure.statistic: figure for figure in found}


def test_figures_by_hand() -> None:
    said = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    true = np.array([1, 1, 0, 1, 0, 0, 0, 0])
    found = named(figures(said, true, "abcdefgh", rel=1, level=0.95))
    assert found["accuracy"].value == 6 / 8
    assert found["precision"].value == pytest.approx(2 / 3)
    assert found["recall"].value == pytest.approx(2 / 3)
    assert found["bias"].value == 0
    chance = 3 / 8 * 3 / 8 + 5 / 8 * 5 / 8
    assert found["kappa"].value == pytest.approx((6 / 8 - chance) / (1 - chance))
    assert "weighted kappa" not in found
    for figure in found.values():
        assert figure.low is not None
        assert figure.high is not None
        assert figure.value is not None
        assert figure.low <= figure.value <= figure.high


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40))
def test_kappa_is_that_of_two_lists_of_labels(pairs: list[tuple[int, int]]) -> None:
    said, true = (np.array(side) for side in zip(*pairs, strict=True))
    found = named(figures(said, true, [str(n) for n in range(len(said))], rel=1, level=0.95))
    plain = kappa((said > 0).tolist(), (true > 0).tolist())
    assert found["kappa"].value == (None if plain.value is None else pytest.approx(plain.value))
    if "weighted kappa" in found:
        weighted = kappa(said.tolist(), true.tolist(), weights="quadratic")
        assert found["weighted kappa"].value == pytest.approx(weighted.value)
        if weighted.low is not None:
            assert found["weighted kappa"].low == pytest.approx(weighted.low)


def test_the_weighted_kappa_forgives_near_misses() -> None:
    true = np.array([0, 1, 2, 3] * 5)
    near, far = true.copy(), true.copy()
    near[true == 2] = 3
    far[true == 0] = 3
    names = [str(number) for number in range(20)]
    weighted = [
        named(figures(said, true, names, rel=1, level=0.9))["weighted kappa"].value
        for said in (near, far)
    ]
    assert weighted[0] is not None
    assert weighted[1] is not None
    assert weighted[0] > weighted[1]


def test_pairs_of_one_question_count_as_one() -> None:
    rng = np.random.default_rng(3)
    true = rng.integers(0, 2, 200)
    said = np.where(rng.random(200) < 0.8, true, 1 - true)
    apart = named(figures(said, true, [str(n) for n in range(200)], rel=1, level=0.95))
    blocks = np.sort(np.where(said == true, 1, 0) * 1000 + np.arange(200))
    order = blocks % 1000  # right and wrong ones in questions of their own
    questions = [str(n // 20) for n in range(200)]
    together = named(figures(said[order], true[order], questions, rel=1, level=0.95))
    assert together["kappa"].value == pytest.approx(apart["kappa"].value)
    widths = [
        float(each["accuracy"].high or 0) - float(each["accuracy"].low or 0)
        for each in (apart, together)
    ]
    assert widths[1] > 1.5 * widths[0]


def test_figures_that_are_undefined_say_why() -> None:
    none = named(figures(np.zeros(3, int), np.zeros(3, int), "abc", rel=1, level=0.9))
    assert none["kappa"].value is None
    assert none["kappa"].reason == "all verdicts and labels are the same one"
    assert (none["precision"].value, none["precision"].reason) == (None, "the judge never says yes")
    assert (none["recall"].value, none["recall"].reason) == (None, "people never say yes")
    lone = named(figures(np.array([1, 0]), np.array([1, 0]), "aa", rel=1, level=0.9))
    assert (lone["kappa"].value, lone["kappa"].low) == (1.0, None)
    assert lone["kappa"].reason == "one question says nothing about the spread"


def test_a_judge_that_always_says_the_same_has_no_limits_of_kappa() -> None:
    said, true = np.ones(20, int), np.array([0, 1] * 10)
    found = named(figures(said, true, [str(n) for n in range(20)], rel=1, level=0.95))["kappa"]
    plain = kappa(said.tolist(), true.tolist())
    assert (found.value, found.low, found.reason) == (plain.value, plain.low, plain.reason)


def test_grades_of_an_aspect_of_your_own_may_be_higher_than_labels() -> None:
    said, true = np.array([5, 0, 4, 0]), np.array([3, 0, 2, 1])
    found = named(figures(said, true, "abcd", rel=1, level=0.9))["weighted kappa"]
    assert found.value == pytest.approx(
        kappa([5, 0, 4, 0], [3, 0, 2, 1], weights="quadratic").value
    )


def test_the_label_from_which_people_say_yes() -> None:
    said, true = np.array([3, 1, 0, 0]), np.array([2, 1, 1, 0])
    loose = named(figures(said, true, "abcd", rel=1, level=0.9))
    strict = named(figures(said, true, "abcd", rel=2, level=0.9))
    assert loose["recall"].value == pytest.approx(2 / 3)
    assert strict["recall"].value == 1.0
    assert (loose["bias"].value, strict["bias"].value) == (-0.25, 0.25)


# --- cards ----------------------------------------------------------------------------------------


def test_a_card() -> None:
    card = judge_card(ROWS, judge=says(3, 0, 0, 1), slices=["topic"])
    assert (card.judge, card.labels, card.aspect) == ("fixed", "labels", "relevance")
    assert (card.pairs, card.questions, card.failed, card.blank) == (4, 2, 0, 0)
    assert card["accuracy"].value == 0.75
    assert card["bias"].value == -0.25
    assert card.confusion.labels == (0, 1, 2, 3)
    assert card.confusion.counts[0] == (1, 0, 1, 0)
    assert [(part.value, part.pairs) for part in card.slices] == [("cities", 2), ("people", 2)]
    assert named(card.slices[0].figures)["accuracy"].value == 1.0
    assert named(card.slices[1].figures)["accuracy"].value == 0.5
    assert card.cite().startswith("fixed: κ 0.50")
    assert "on 4 labels of labels" in card.cite()


def test_failed_verdicts_are_counted_and_left_out() -> None:
    card = judge_card(ROWS, judge=says(3, 0, None, 1), slices=["topic"])
    assert (card.pairs, card.failed) == (3, 1)
    assert card["accuracy"].value == 1.0
    assert [part.pairs for part in card.slices] == [2, 1]
    with pytest.raises(InputError, match="no verdict at all"):
        judge_card(ROWS, judge=FunctionJudge(lambda _: None))


def test_all_chunks_of_a_question_are_judged_together_and_once() -> None:
    seen: list[Sample] = []

    def judge(sample: Sample) -> dict[str, Any]:
        seen.append(sample)
        return {"relevance": [len(chunk) % 4 for chunk in sample.chunks]}

    labels = load_labels([*ROWS, ROWS[0]])  # a second person's label
    found = verdicts(FunctionJudge(judge), labels, "relevance")
    assert [len(sample.chunks) for sample in seen] == [2, 2]
    assert found == [len(row["chunk"]) % 4 for row in [*ROWS, ROWS[0]]]


@pytest.mark.parametrize("aspect", ["relevance", "claims", "statements"])
def test_every_aspect_with_labels(aspect: str) -> None:
    rows = [
        {"question": "Rome is in Italy.", "chunk": "Rome is in Italy.", "label": 1},
        {"question": "Rome is in Italy.", "chunk": "Tea is brown.", "label": 0},
    ]
    card = judge_card(rows, judge="local:text", aspect=aspect)
    assert card.aspect == aspect
    assert card["accuracy"].value == 1.0


def test_a_statement_that_a_judge_has_cut_does_not_move_the_others() -> None:
    def judge(sample: Sample) -> dict[str, Any]:
        assert sample.chunks == ("one", "two", "three")
        texts = [["one"], ["tw", "o"], ["three"]]
        return {"statement_texts": texts, "statements": [[0], [0, 0], [1]]}

    rows = [{"question": "?", "chunk": chunk, "label": 1} for chunk in ("one", "two", "three")]
    assert verdicts(FunctionJudge(judge), load_labels(rows), "statements") == [0, None, 1]


def test_texts_that_suffice_are_lists_of_their_own() -> None:
    seen: list[tuple[str, ...]] = []

    def judge(sample: Sample) -> dict[str, Any]:
        seen.append(sample.chunks)
        return {"sufficiency": "Italy" in sample.chunks[0]}

    rows = [
        {"question": "Where is Rome?", "chunk": "Rome is in Italy. It is old.", "label": 1},
        {"question": "Where is Rome?", "chunk": "Rome is old.", "label": 0},
    ]
    card = judge_card(rows, judge=judge, aspect="sufficiency")
    assert seen == [("Rome is in Italy. It is old.",), ("Rome is old.",)]
    assert card["accuracy"].value == 1.0


def test_the_order_of_labels_changes_nothing() -> None:
    forth, back = (judge_card(rows, judge="local:text") for rows in (ROWS, ROWS[::-1]))
    assert {figure.statistic: figure.value for figure in forth.figures} == {
        figure.statistic: figure.value for figure in back.figures
    }
    assert forth.confusion == back.confusion


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"aspect": "entities"}, "unknown aspect with labels 'entities'"),
        ({"slices": ["topik"]}, "did you mean topic"),
        ({"level": 2}, "the level is 2"),
    ],
)
def test_choices_that_cannot_be(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(FindwellError, match=message):
        judge_card(ROWS, judge="local:text", **choices)


def test_progress_is_passed_on() -> None:
    steps: list[Progress] = []
    judge_card(ROWS, judge=says(3, 0, 0, 1), progress=steps.append)
    assert [step.done for step in steps] == [1, 2]


# --- on disk --------------------------------------------------------------------------------------


def test_a_card_is_found_under_the_name_of_its_judge(tmp_path: Path) -> None:
    card = judge_card(ROWS, judge="local:text(relevance=0.6)", slices="topic")
    path = card.save()
    assert path.parent == tmp_path / "cache" / "judge-cards"
    assert JudgeCard.load(path) == card
    assert find_cards("local:text(relevance=0.6)")[0] == card
    assert find_cards("local:text") == []


def test_the_newest_card_is_found_and_one_is_kept_for_each_set_of_labels() -> None:
    old = judge_card(ROWS, judge=says(3, 0, 0, 1))
    old.save()
    judge_card(ROWS[:2], judge=says(3, 0)).save()
    again = judge_card(ROWS, judge=says(0, 0, 0, 1))
    newer = JudgeCard(**{**_fields(again), "created": "2999-01-01T00:00:00+00:00"})
    assert newer.save() == newer.save()
    assert find_cards("fixed")[0] == newer
    assert len(list(newer.save().parent.iterdir())) == 2


def _fields(card: JudgeCard) -> dict[str, Any]:
    return {name: getattr(card, name) for name in JudgeCard.__slots__}


def test_a_result_cites_a_card_about_what_was_judged_and_in_the_same_way() -> None:
    def cited(measure: str) -> str:
        sample = {"question": "Where is Rome?", "contexts": ["Rome."], "reference": "In Italy."}
        return str(
            findwell.evaluate([sample], measures=measure, judge="local:text").judge.get("card")
        )

    rows = [{"question": row["question"], "chunk": row["chunk"], "label": 1} for row in ROWS]
    judge_card(ROWS, judge="local:text").save()
    judge_card(rows, judge="local:text", aspect="claims").save()
    chance = ", which may be chance"
    assert cited("context_precision").endswith(f"on 4 labels of labels, relevance{chance}")
    assert cited("context_recall").endswith(f"on 4 labels of labels, claims{chance}")
    assert cited("context_relevancy") == "None"
    [card] = find_cards("local:text", aspects={"relevance"})
    replace(card, about={**card.about, "version": 0}).save()  # with other weights
    assert cited("context_precision") == "None"


def test_a_card_of_other_questions_says_so_and_gives_way_to_one_of_these() -> None:
    def line(question: str, judge: JudgeProtocol | str) -> str:
        sample = {"question": question, "contexts": ["Rome."], "reference": "In Italy."}
        result = findwell.evaluate([sample], measures="context_precision", judge=judge)
        return judge_lines([result.judge])[0]

    def mine(sample: Sample) -> dict[str, Any]:
        return {"relevance": [1] * len(sample.chunks)}

    pump, judge = "How does a heat pump work?", FunctionJudge(mine, name="mine")
    for each in ("local:text", judge):
        judge_card(ROWS, judge=each).save()
    assert line(ROWS[0]["question"], judge).startswith("judge mine: κ 0.00 on 4 labels of labels")
    assert line(pump, judge).startswith(
        "judge mine: not checked on these questions; on others κ 0.00 on 4 labels of labels"
    )
    # what an embedded judge is worth elsewhere is known from public labels
    assert " on 4 labels" in line(ROWS[0]["question"], "local:text")
    assert "labels of" not in line(pump, "local:text")
    judge_card([row | {"question": pump} for row in ROWS[:3]], judge=judge).save()
    assert " on 3 labels" in line(pump, judge)
    assert " on 4 labels" in line(ROWS[0]["question"], judge)


def test_a_card_applies_where_it_shares_half_of_the_questions() -> None:
    def applies(*questions: str) -> bool:
        queries = pl.DataFrame({"query": questions, "question": questions})
        return find_card("local:text", {"relevance"}, card.about, queries)[1]

    names = [f"Where is town {number}?" for number in range(8)]
    card = judge_card(
        [{"question": name, "chunk": "Here.", "label": at % 2} for at, name in enumerate(names)],
        judge="local:text",
    )
    card.save()
    others = [f"Who is person {number}?" for number in range(9)]
    assert applies(*names, *others)  # the card is a part of the queries
    assert applies(names[0])  # the queries are a part of what it is about
    assert applies(*names[:4], *others)
    assert not applies(*names[:3], *others)
    assert not applies(*others)


def test_a_result_tells_that_the_judge_says_yes_too_often() -> None:
    rows = [
        {"question": f"Where is {number}?", "chunk": chunk, "label": int(chunk == "a")}
        for number in range(12)
        for chunk in ("a", "b", "c")
    ]
    judge = FunctionJudge(lambda sample: {"relevance": [1] * len(sample.chunks)}, name="kind")
    judge_card(rows, judge=judge).save()
    sample = {"question": "Where is 3?", "contexts": ["a", "b"]}
    found = findwell.evaluate([sample], measures="context_precision", judge=judge).findings
    (rate,) = (each for each in found if each.kind == "judge-yes-rate")
    assert rate.count == 36
    assert "says yes 67 points more often than people" in rate.message


def test_cards_in_a_place_of_your_own(tmp_path: Path) -> None:
    card = judge_card(ROWS, judge="local:text")
    assert JudgeCard.load(card.save(tmp_path / "new" / "card.json")) == card
    (tmp_path / "file").write_text("x")
    with pytest.raises(SaveError, match="could not be written"):
        card.save(tmp_path / "file" / "card.json")


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", '{"findwell": "judge-card", "layout": 1}', '{"findwell": 1, "layout": 1}'],
)
def test_files_that_are_no_cards(save: Save, content: str) -> None:
    with pytest.raises(InputError, match="this is not a judge card"):
        JudgeCard.load(save("card.json", content))


def test_cards_of_another_layout_and_damaged_ones_are_passed_over() -> None:
    card = judge_card(ROWS, judge="local:text")
    path = card.save()
    path.with_name(path.name.replace(".json", "x.json")).write_text("{}")
    assert find_cards("local:text")[0] == card
    path.write_text(path.read_text().replace('"layout": 1', '"layout": 99'))
    with pytest.raises(InputError, match="judge-card 99"):
        JudgeCard.load(path)
    assert find_cards("local:text") == []


# --- a threshold from labels ----------------------------------------------------------------------


def graded(count: int = 40) -> list[dict[str, Any]]:
    """Label chunks relevant only if they hold all four words of the question."""
    words = ["zebra", "okapi", "walrus", "gnu"]
    return [
        {
            "question": f"{' '.join(words)} {number}?",
            "chunk": f"{number} {' '.join(words[:held])} were seen.",
            "label": int(held == 4),
        }
        for number in range(count)
        for held in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize("panel", [False, True])
def test_no_card_from_the_labels_that_taught(tmp_path: Path, *, panel: bool) -> None:
    """Its κ would be that of labels which it has seen; the error tells the held-out one."""
    taught = teach_judge(graded(12), judge="local:text")
    judge: Any = str(taught.save(tmp_path / "judge.json"))
    held_out = find_judge(judge).about()["recalibrated"]["kappa_held_out"]
    asked = [judge, "local:text"] if panel else judge
    with pytest.raises(OptionError, match="12 of the 15 questions taught") as found:
        judge_card(graded(15), judge=asked)
    assert f"held-out κ is {held_out:.2f}" in str(found.value)
    others = [row for row in graded(20) if row not in graded(12)]
    assert judge_card(others, judge=asked)["kappa"].value is not None


# --- real labels ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("judge", "least"), [("local:text", 0.2), ("local", 0.3)])
def test_the_local_judge_on_labels_of_people(judge: str, least: float) -> None:
    folder = DATA / "noveleval"
    if not folder.is_dir():
        pytest.skip("the public labels are not here")
    labels = load_labels(
        folder / "qrels.txt", corpus=folder / "corpus.tsv", questions=folder / "queries.tsv"
    )
    card = judge_card(labels, judge=judge)
    assert (card.pairs, card.questions) == (420, 21)
    assert card["kappa"].value is not None
    assert card["kappa"].value >= least


def test_kept_cards_side_by_side(tmp_path: Path, cli: Findwell) -> None:
    rows = [
        {"question": f"Where is {name}?", "chunk": f"{name}: {text}", "label": label, "system": at}
        for name in ("Rome", "Bonn", "Oslo", "Bern")
        for at, text, label in (("a", "here", 1), ("b", "there", int(name > "C")), ("c", "no", 0))
    ]

    def strict(sample: Sample) -> dict[str, Any]:
        return {"relevance": ["here" in chunk.split() for chunk in sample.chunks]}

    def wrong(sample: Sample) -> dict[str, Any]:
        return {
            "relevance": [
                "no" in chunk or ("there" in chunk and "B" in chunk) for chunk in sample.chunks
            ]
        }

    for name, judge in (("strict", strict), ("wrong", wrong)):
        asked = FunctionJudge(judge, name=name)
        card = judge_card(rows, judge=asked, slices="system")
        assert card.seconds is not None
        kept = card.save(tmp_path / f"{name}.json")
        assert JudgeCard.load(kept) == card
    assert card.tau("system") == -1.0
    assert judge_card(rows, judge=FunctionJudge(strict, name="x")).tau("system") is None
    files = [str(tmp_path / f"{name}.json") for name in ("strict", "wrong")]
    told = cli("judge", "card", *files)
    assert told.code == 0
    head, first, second = (told.out.splitlines()[at] for at in (2, 4, 5))
    assert head.split()[:3] == ["judge", "labels", "kappa"]
    assert "tau by system" in head
    assert head.split()[-2:] == ["cost", "seconds"]
    assert first.split()[0] == "strict"
    assert " 0.8165 " in first  # two of three pairs of systems in the same order, one tied
    assert " -1.0000 " in second
    assert "different labels" not in told.out
    answer = cli("judge", "card", *files, "--format", "json").answer
    assert [each["judge"] for each in answer["judges"]] == ["strict", "wrong"]
    judge_card(rows[:9], judge=FunctionJudge(strict, name="less")).save(files[1])
    assert "measured on different labels" in cli("judge", "card", *files).out
    refused = cli("judge", "card", *files, "--judge", "local")
    assert (refused.code, "--judge has no effect on saved cards" in refused.err) == (2, True)
    assert cli("judge", "card", files[0], str(tmp_path / "none.json")).code == 2
