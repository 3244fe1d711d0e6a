"""The local judge: worked examples, the same verdicts in any company, odd input."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import OptionError
from findwell.judges.embeddings import find_embedder
from findwell.judges.find import find_judge
from findwell.judges.local import LocalJudge
from findwell.judges.local.calibration import MODELS, logit
from findwell.judges.local.judge import negation
from findwell.judges.local.reading import LONGEST_PIECE
from findwell.judges.verdicts import Judged, Judgement, Sample
from tests.judges.building import FOUR, sample_of
from tests.strategies import examples

if TYPE_CHECKING:
    from findwell.core.progress import Progress

ALL = FOUR

BRAZIL = sample_of(
    "brazil",
    "What is the capital of Brazil?",
    (
        "Brasília has been the capital of Brazil since the government left Rio.",
        "Bananas are rich in potassium and easy to peel.",
        "Chess is a game for two players.",
    ),
    reference="The capital of Brazil is Brasília, established on April 21, 1960.",
    claims=(
        "Brasília is the capital of Brazil.",
        "The government was in Rio before.",
        "Brasília has 3 million inhabitants.",
    ),
    statements=(
        ("Brasília has been the capital of Brazil.", "It is windy."),
        ("Bananas are rich in potassium.",),
        ("Chess is a game for two players.",),
    ),
)
TEXT = LocalJudge(None, entities="rules")


def one(sample: Sample, judge: LocalJudge = TEXT, aspects: frozenset[str] = ALL) -> Judged:
    (judged,) = judge.judge([sample], aspects)
    return judged


def relevance(question: str, *chunks: str, judge: LocalJudge = TEXT) -> list[int | None]:
    judged = one(Sample("q", question, chunks), judge, frozenset({"relevance"}))
    return [verdict.value for verdict in judged["relevance"].row]


def supports(claim: str, chunk: str, judge: LocalJudge = TEXT) -> Judgement:
    judged = one(sample_of("q", "", (chunk,), claims=(claim,)), judge, frozenset({"claims"}))
    return judged["claims"].rows[0][0]


def counted(texts: list[str]) -> list[list[float]]:
    """Embed by counting letters: quick, and unlike any model."""
    return [[1.0, *(text.casefold().count(letter) for letter in "etaoinshrdlu")] for text in texts]


def letters() -> LocalJudge:
    return LocalJudge(find_embedder(counted, name="letters"), entities="rules", remember=False)


@pytest.fixture(scope="module")
def minilm() -> LocalJudge:
    return LocalJudge("minilm", entities="rules", remember=False)


# --- worked examples ------------------------------------------------------------------------------


def test_the_worked_example_of_every_aspect() -> None:
    judged = one(BRAZIL)
    assert [bool(verdict.value) for verdict in judged["relevance"].row] == [True, False, False]
    assert judged["claims"].items == BRAZIL.items["claims"]
    assert [[verdict.value for verdict in row] for row in judged["claims"].rows] == [
        [1, 0, 0],
        [1, 0, 0],
        [0, 0, 0],
    ]
    assert judged["entities"].items == ("Brazil", "Brasília", "April 21, 1960")
    held = [any(verdict.value for verdict in row) for row in judged["entities"].rows]
    assert held == [True, True, False]  # 2/3
    assert judged["statements"].parts == BRAZIL.parts["statements"]
    assert [[verdict.value for verdict in row] for row in judged["statements"].rows] == [
        [1, 0],
        [0],
        [0],
    ]
    assert not judged.failures


def test_with_minilm_the_same_example_comes_out(minilm: LocalJudge) -> None:
    judged = one(BRAZIL, minilm)
    assert [bool(verdict.value) for verdict in judged["relevance"].row] == [True, False, False]
    assert [row[0].value for row in judged["claims"].rows] == [1, 1, 0]
    assert [[verdict.value for verdict in row] for row in judged["statements"].rows] == [
        [1, 0],
        [0],
        [0],
    ]


def test_minilm_sees_what_shares_no_word(minilm: LocalJudge) -> None:
    question = "How do I fix a flat tire?"
    chunks = ("Repairing a punctured bicycle tube, in 5 steps.", "Taxes are due by the end of May.")
    sample = Sample("q", question, chunks)
    aspect = frozenset({"relevance"})
    assert len({each.probability for each in one(sample, TEXT, aspect)["relevance"].row}) == 1
    alike, other = (each.probability or 0 for each in one(sample, minilm, aspect)["relevance"].row)
    assert alike > other + 0.1


def test_only_what_is_asked_for_is_judged() -> None:
    judged = one(BRAZIL, aspects=frozenset({"entities"}))
    assert judged["entities"].rows
    assert set(judged.verdicts) == {"entities"}
    assert one(BRAZIL, aspects=frozenset()) == Judged()


@pytest.mark.parametrize("judge", [TEXT, letters()], ids=["text", "model"])
def test_every_verdict_has_a_reason_and_quotes_the_chunk(judge: LocalJudge) -> None:
    judged = one(BRAZIL, judge)
    rows = [judged["relevance"].row, *judged["claims"].rows]
    for row in rows:
        for verdict, chunk in zip(row, BRAZIL.chunks, strict=True):
            assert verdict.quote
            assert verdict.quote in chunk
            assert "score" in verdict.reason
            assert not verdict.unproven
    for row in judged["entities"].rows:
        for verdict, chunk in zip(row, BRAZIL.chunks, strict=True):
            assert bool(verdict.quote) == bool(verdict.value)
            assert verdict.quote in chunk


def test_the_quote_is_the_sentence_that_shares_most() -> None:
    chunk = "The museum opens at nine. The café on its roof closes at noon. Dogs must stay outside."
    verdict = one(Sample("q", "When does the café close?", (chunk,)))["relevance"].row[0]
    assert verdict.quote == "The café on its roof closes at noon."


def test_more_of_the_question_is_a_higher_grade() -> None:
    question = "Which battery powers the cargo bicycle?"
    chunks = ("The battery is blue.", "The cargo bicycle battery powers the motor.")
    partly, wholly = relevance(question, *chunks)
    assert partly is not None
    assert wholly == 3
    assert partly < wholly


# --- what speaks against a claim ------------------------------------------------------------------

TEA = "In 1773 Parliament taxed tea in Boston. The tax on coffee came later."


@pytest.mark.parametrize(
    ("claim", "value", "against"),
    [
        ("In 1773 Parliament taxed tea in Boston.", 1, ""),
        ("In 1774 Parliament taxed tea in Boston.", 0, "lacks 1774"),
        ("In 1773 Parliament taxed tea in Salem.", 0, "lacks Salem"),
        ("In 1773 Parliament did not tax tea in Boston.", 0, "the claim denies"),
    ],
)
def test_other_facts_and_negations_undo_support(claim: str, value: int, against: str) -> None:
    verdict = supports(claim, TEA)
    assert verdict.value == value
    assert against in verdict.reason
    assert verdict.quote in TEA


def test_a_chunk_that_denies_the_claim_does_not_support_it() -> None:
    assert supports("The warranty covers batteries.", "The warranty covers batteries.").value == 1
    denied = supports("The warranty covers batteries.", "The warranty does not cover batteries.")
    assert denied.value == 0
    assert "the chunk denies" in denied.reason


def test_negations_of_both_sides_agree() -> None:
    assert not negation("It is not sold.", "It was never sold.")
    assert not negation("It is never taxed.", "There is no tax on it.")


def test_a_negation_in_another_sentence_is_not_about_the_claim() -> None:
    chunk = "The shop rents no bicycles. The shop sells electric bicycles. It never closes."
    assert supports("The shop sells electric bicycles.", chunk).value == 1
    denied = supports("The shop does not sell electric bicycles.", chunk)
    assert (denied.value, denied.reason.partition(";")[0]) == (
        0,
        "the claim denies what the chunk does not",
    )


def test_a_unit_may_be_written_in_other_ways() -> None:
    chunk = "At sea level water boils at 100 °C, and the lake lies 5 kilometres away."
    for claim in ("Water boils at 100 degrees Celsius.", "Water boils at 100°C."):
        assert supports(claim, chunk).value == 1
    assert supports("The lake lies 5 km away.", chunk).value == 1
    for claim in ("Water boils at 101 degrees Celsius.", "Water boils at 100 °F."):
        assert supports(claim, chunk).value == 0
    assert supports("The lake lies 6 km away.", chunk).value == 0


# --- the same in any company ----------------------------------------------------------------------


def varied(count: int) -> list[Sample]:
    listed = "battery charger motor brake light saddle Brazil 1960 capital river 東京 maison"
    words = listed.split()
    rng = np.random.default_rng(7)

    def text(length: int) -> str:
        return " ".join(rng.choice(words, length)) + "."

    return [
        sample_of(
            str(number),
            text(5) if number % 7 else "",
            tuple(dict.fromkeys(text(int(rng.integers(1, 40))) for _ in range(number % 6))),
            reference=text(8),
            claims=(text(4), text(6)),
            statements=(),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("make", [lambda: TEXT, letters], ids=["text", "model"])
def test_verdicts_do_not_depend_on_company_or_order(make: Any) -> None:
    judge = make()
    samples = [
        replace(sample, parts={"statements": tuple((it, it[:9]) for it in sample.chunks)})
        for sample in varied(40)
    ]
    alone = [one(sample, judge) for sample in samples]
    assert judge.judge(samples, ALL) == alone
    backwards = judge.judge(samples[::-1], ALL)
    assert backwards[::-1] == alone
    assert judge.judge(samples * 2, ALL) == alone * 2


def test_more_samples_than_are_judged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = varied(30)
    together = TEXT.judge(samples, frozenset({"relevance"}))
    monkeypatch.setattr("findwell.judges.local.judge.TOGETHER", {True: 4, False: 7})
    steps: list[Progress] = []
    assert TEXT.judge(samples, frozenset({"relevance"}), steps.append) == together
    assert [step.done for step in steps] == [7, 14, 21, 28, 30]
    assert {step.total for step in steps} == {30}


def test_minilm_judges_a_sample_the_same_alone_and_among_others(minilm: LocalJudge) -> None:
    others = [
        Sample("a", "How long does the battery last?", ("It lasts four years.", *BRAZIL.chunks)),
        Sample("b", "Who was Bach?", ("Bach was a composer.",)),
    ]
    aspects: frozenset[str] = frozenset({"relevance"})
    assert minilm.judge([others[0], BRAZIL, others[1]], aspects)[1] == one(BRAZIL, minilm, aspects)


def test_a_chunk_is_judged_the_same_beside_any_others() -> None:
    alone = [relevance(BRAZIL.question, chunk)[0] for chunk in BRAZIL.chunks]
    assert relevance(BRAZIL.question, *BRAZIL.chunks) == alone
    assert relevance(BRAZIL.question, *BRAZIL.chunks[::-1]) == alone[::-1]


def test_vectors_kept_on_disk_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path))
    remembering = LocalJudge(find_embedder(counted, name="letters"), entities="rules")
    fresh, again = one(BRAZIL, remembering), one(BRAZIL, remembering)
    assert fresh == again == one(BRAZIL, letters())
    assert any(tmp_path.iterdir())


# --- odd input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["", "  \n", "???", "—"])
def test_a_question_without_words_cannot_be_judged(question: str) -> None:
    judged = one(sample_of("q", question, ("Some text.",), statements=(("Some text.",),)))
    for verdict in (judged["relevance"].row[0], judged["statements"].rows[0][0]):
        assert verdict.value is None
        assert str(verdict.failure) == "no words to judge by: the question"


def test_a_question_of_function_words_only_can() -> None:
    assert relevance("What is it?", "It is what it is.", "Nothing here.") == [3, 0]


def test_no_reference_no_entities_no_claims() -> None:
    judged = one(sample_of("q", "Why?", ("Because.",), statements=((),)))
    assert not any((judged["entities"].items, judged["entities"].rows, judged["claims"].rows))
    assert judged["statements"].rows == ((),)
    assert not judged.failures


def test_a_blank_claim_cannot_be_judged() -> None:
    verdict = supports("…", "Some text.")
    assert verdict.value is None
    assert str(verdict.failure) == "no words to judge by: the claim"


def test_nothing_retrieved_and_nothing_asked() -> None:
    judged = one(sample_of("q", "Why?", (), reference="Rome.", claims=("Rome.",)))
    assert not any((judged["relevance"].row, judged["statements"].rows))
    assert judged["claims"].rows == ((),)
    assert judged["entities"].rows == ((),)
    assert TEXT.judge([], ALL) == []


@pytest.mark.parametrize("judge", [TEXT, letters()], ids=["text", "model"])
def test_chunks_without_words_are_of_no_use(judge: LocalJudge) -> None:
    found = one(Sample("q", "Where is Rome?", ("—", "🚲🚲", " ")), judge)["relevance"].row
    assert [verdict.value for verdict in found] == [0, 0, 0]


def test_two_hundred_chunks() -> None:
    chunks = tuple(f"Chunk {number} is about Rome." for number in range(200))
    found = relevance("What about Rome?", *chunks, "Something else.")
    assert len(found) == 201
    assert all(found[:200])
    assert found[-1] == 0


@pytest.mark.parametrize("text", ["hay stack ", "hay. ", "乾草。", "x"])
def test_a_chunk_of_a_hundred_thousand_words_is_searched_to_its_end(text: str) -> None:
    chunk = text * 100_000 + " The lost needle is in the barn."
    verdict = one(Sample("q", "Where is the needle?", (chunk,)))["relevance"].row[0]
    assert verdict.value
    assert "needle" in verdict.quote
    assert verdict.quote in chunk
    assert len(verdict.quote) <= LONGEST_PIECE


def test_of_a_long_chunk_the_model_reads_the_part_that_matters() -> None:
    read: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        read.extend(texts)
        return counted(texts)

    judge = LocalJudge(find_embedder(embed, name="reads"), remember=False, entities="rules")
    chunk = "Hay is dried grass for animals. " * 20_000 + "The lost needle is in the barn."
    judge.judge([Sample("q", "Where is the needle?", (chunk,))], frozenset({"relevance"}))
    assert len(read) == 2  # the question, and one window
    assert "needle" in read[1]
    assert len(read[1]) < 1200


def test_duplicate_chunks_and_samples_get_equal_verdicts() -> None:
    sample = Sample("q", "Where is Rome?", ("Rome is in Italy.", "Rome is in Italy."))
    first, second = TEXT.judge([sample, sample], frozenset({"relevance"}))
    assert first == second
    assert first["relevance"].row[0] == first["relevance"].row[1]


@pytest.mark.parametrize(
    ("question", "good", "bad"),
    [
        ("日本の首都はどこですか", "東京は日本の首都です。", "富士山は高い山です。"),
        ("中国的首都在哪里？", "北京是中国的首都。", "长江是一条很长的河。"),
        ("ما هي عاصمة مصر؟", "القاهرة هي عاصمة مصر.", "النيل نهر طويل."),
        ("מהי בירת ישראל?", "ירושלים היא בירת ישראל.", "הים כחול."),
        ("เมืองหลวงของไทยคืออะไร", "กรุงเทพเป็นเมืองหลวงของไทย", "แม่น้ำยาวมาก"),
        ("Wie lange hält der Akku?", "Der Akku hält etwa vier Jahre.", "Die Lampe ist hell."),
        ("Où se trouve la gare ?", "La gare se trouve au centre.", "Il fait beau."),
        ("Где столица России?", "Столица России — Москва.", "Волга — длинная река."),
    ],
)
def test_other_scripts_and_languages(question: str, good: str, bad: str) -> None:
    found, missed = relevance(question, good, bad)
    assert found
    assert missed == 0


def test_half_a_surrogate_pair_is_no_crash() -> None:
    judged = one(
        Sample(
            "q",
            "a\ud800b",
            ("c\ud800d",),
            "\ud800 Rome",
            {"claims": ("x\ud800",)},
            {"statements": (("\udfff",),)},
        )
    )
    assert judged["relevance"].row[0].value == 0
    assert judged["entities"].items == ("Rome",)


@examples(60)
@given(st.text(max_size=80), st.lists(st.text(max_size=200), max_size=4), st.text(max_size=80))
def test_any_text_can_be_judged(question: str, chunks: list[str], reference: str) -> None:
    sample = sample_of(
        "q",
        question,
        tuple(chunks),
        reference,
        claims=(reference,),
        statements=((chunk, chunk[: len(chunk) // 2]) for chunk in chunks),
    )
    judged = one(sample)
    assert len(judged["relevance"].row) == len(chunks)
    for verdict, chunk in zip(judged["relevance"].row, chunks, strict=True):
        assert verdict.value in (None, 0, 1, 2, 3)
        assert verdict.quote in chunk
    for matrix in (judged["claims"].rows, judged["entities"].rows, judged["statements"].rows):
        assert {verdict.value for row in matrix for verdict in row} <= {None, 0, 1}
    assert judged == one(sample)


# --- thresholds, names, what it says of itself ----------------------------------------------------


def test_a_threshold_moves_the_line_and_the_name() -> None:
    strict = LocalJudge(None, thresholds={"relevance": 0.95, "claims": 0.6})
    assert strict.name == "local:text(relevance=0.95,claims=0.6)"
    assert relevance(BRAZIL.question, BRAZIL.chunks[0]) != [0]
    assert relevance(BRAZIL.question, BRAZIL.chunks[0], judge=strict) == [0]
    own, usual = (judge.about()["thresholds"] for judge in (strict, TEXT))
    assert own["relevance"][0] == 0.95
    assert own["statements"] == usual["statements"]


def test_the_thresholds_of_higher_grades_move_along() -> None:
    model = MODELS["text"]["relevance"]
    moved = model.at(0.3)
    steps, before = (
        [logit(high) - logit(low) for low, high in pairwise(each.thresholds)]
        for each in (moved, model)
    )
    assert steps == pytest.approx(before)
    assert moved.grades(np.array([logit(0.29), logit(0.31), 9.0])).tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"relevance": 0.0}, "the threshold of relevance must be between 0 and 1, not 0.0"),
        ({"relevance": 1.5}, "the threshold of relevance must be between 0 and 1, not 1.5"),
        (
            {"relevance": float("nan")},
            "the threshold of relevance must be between 0 and 1, not nan",
        ),
        ({"relevanse": 0.5}, "did you mean relevance"),
        ({"entities": 0.5}, "unknown aspect with a threshold 'entities'"),
    ],
)
def test_thresholds_that_cannot_be(thresholds: dict[str, float], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        LocalJudge(None, thresholds=thresholds)


def test_scores_are_what_verdicts_are_made_of() -> None:
    for aspect in ("relevance", "claims"):
        least = TEXT.about()["thresholds"][aspect][0]
        said = [verdict for row in one(BRAZIL)[aspect].rows for verdict in row]
        assert {bool(each.value) for each in said} == {True, False}
        above = [(each.probability or 0) >= least for each in said]
        assert above == [bool(each.value) for each in said]


def test_only_words_count_for_entities_too_whatever_is_installed() -> None:
    assert LocalJudge(None).about()["entities"] == "rules"
    assert LocalJudge(None).name == LocalJudge(None, entities="rules").name == "local:text"
    assert find_judge("local:text(entities=auto)").name == "local:text(entities=auto)"


def test_what_it_says_of_itself_can_be_written_down(minilm: LocalJudge) -> None:
    about = json.loads(json.dumps(minilm.about()))
    assert minilm.name == about["judge"] == "local(entities=rules)"
    assert about["embedder"].startswith("minilm:")
    assert about["entities"] == "rules"
    assert about["weights"]["relevance"].keys() == {"intercept", "cover", "similarity"}
    assert TEXT.about()["embedder"] is None
    assert letters().name == "local:letters(entities=rules)"
