"""Claims of the local judge: lists and clauses cut apart, related words, worked examples."""

from __future__ import annotations

import importlib.util
import json

import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.judges.find import find_judge
from findwell.judges.local import LocalJudge
from findwell.judges.local.clauses import by_parse, by_rules, entries_of, find_decomposition
from findwell.judges.local.reading import base_of, root_of
from findwell.judges.local.terms import term_and_weight
from tests.judges.building import sample_of

TEXT = LocalJudge(None)
JUDGES = ["local:text", "local"]
MEASURES = [
    "context_precision",
    "context_recall",
    "context_entities_recall",
    "context_relevancy",
]
# the four worked examples that most tutorials of RAG evaluation show, and others of the same shape
EXAMPLES: dict[str, list[tuple[str, str, list[str], float]]] = {
    "context_precision": [
        (
            "What is the largest desert in the world?",
            (
                "The largest desert in the world is the Antarctic Desert, which spans about 14 "
                "million square kilometers."
            ),
            [
                (
                    "The Antarctic Desert is the largest desert by area, covering 14 million "
                    "square kilometers."
                ),
                "The Sahara Desert is a large desert in Africa.",
                "Deserts are dry regions with little rainfall.",
            ],
            1.0,
        ),
        (
            "What is the longest river in South America?",
            "The longest river in South America is the Amazon, which flows through Brazil.",
            [
                "The Amazon is the longest river of South America and flows through Brazil.",
                "Bread is baked from flour, water and salt.",
            ],
            1.0,
        ),
    ],
    "context_recall": [
        (
            "What are the primary causes of deforestation?",
            (
                "The primary causes of deforestation are logging, agriculture, urbanization, and "
                "wildfires."
            ),
            [
                "Logging is a major driver of deforestation worldwide.",
                "Agriculture and urban development contribute significantly to forest loss.",
            ],
            0.75,
        ),
        (
            "What are the main sources of air pollution?",
            "The main sources of air pollution are traffic, industry, heating, and agriculture.",
            [
                "Traffic remains a leading source of air pollution.",
                "Industrial plants and heated homes pollute the air as well.",
            ],
            0.75,
        ),
        (
            "Which symptoms does the infection cause?",
            "The infection causes fever, coughing, fatigue, and headaches.",
            ["An infection often shows by fever.", "Infected people cough a lot."],
            0.5,
        ),
    ],
    "context_entities_recall": [
        (
            "What is the capital of Brazil, and when was its current capital established?",
            "The capital of Brazil is Brasília, established on April 21, 1960.",
            ["Brasília is a city in Brazil, designed as the capital."],
            2 / 3,
        ),
        (
            "Who painted the Mona Lisa, and when did he die?",
            "Leonardo da Vinci, who died on May 2, 1519, painted the Mona Lisa.",
            ["The Mona Lisa was painted by Leonardo da Vinci in Florence."],
            2 / 3,
        ),
    ],
    "context_relevancy": [
        (
            "What are the benefits of drinking green tea?",
            "Green tea is healthy.",
            [
                "Green tea contains antioxidants that may reduce the risk of chronic diseases.",
                "Coffee is a popular beverage worldwide.",
                "Green tea can improve brain function due to its caffeine content.",
            ],
            2 / 3,
        ),
        (
            "What are the advantages of riding electric bicycles?",
            "Electric bicycles are quick.",
            [
                "Electric bicycles let their riders climb hills without sweat.",
                "Bananas are yellow.",
                "Riding electric bicycles is cheaper than driving.",
            ],
            2 / 3,
        ),
    ],
}


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("measure", MEASURES)
def test_the_worked_examples_come_out(judge: str, measure: str) -> None:
    samples = [
        {"question": question, "reference": reference, "contexts": contexts}
        for question, reference, contexts, _ in EXAMPLES[measure]
    ]
    result = findwell.evaluate(samples, measures=[measure], judge=judge)
    assert result.per_query["value"].to_list() == pytest.approx(
        [value for *_, value in EXAMPLES[measure]]
    )


CUT = {
    "Sensory systems are those for vision, hearing, and touch.": 3,
    "These are the tiger shark, the sandbar shark and the dogfish.": 3,
    "It is made in Rome, in Paris, and in Berlin.": 3,
    "She met Bach, Telemann and Quantz in Leipzig.": 1,  # who was met where?
    "The game is built around four pillars: exploration, survival, combat, and trading.": 4,
    "It is in Italy, Lazio, and Europe.": 3,
    "The members are family, friends, and neighbours.": 3,
    "Floods, storms, and fires cause most of the damage.": 3,
    # what is no list, or said of all entries together, stays whole
    "It is sold in red, green, or blue.": 1,
    "It is not sold in red, green, and blue.": 1,
    "It is a mixture of gin, rum, and lime.": 1,
    "After dinner with Brittany, Santana left and Brittany stayed.": 1,
    "On May 2, 1519, and later it rained.": 1,
    "Eric, a vampire, and Pam leave.": 1,
    "In some districts, school begins in August and July.": 1,
    "Bed, board and bath is included.": 1,
    "Il vend des pommes, des poires, et des prunes.": 1,
}


@pytest.mark.parametrize("sentence", CUT)
def test_lists_become_one_claim_each_and_nothing_else_does(sentence: str) -> None:
    (claims,) = find_decomposition("rules")([[sentence]])
    assert len(claims) == CUT[sentence], claims
    words = {word.strip(".,:") for word in sentence.split()}
    assert {word.strip(".,:") for claim in claims for word in claim.split()} <= words


needs_spacy = pytest.mark.skipif(
    importlib.util.find_spec("spacy") is None, reason="needs findwell[entities]"
)


@needs_spacy
def test_the_parse_sees_pairs_and_several_verbs() -> None:
    assert by_parse("HA-7302 fits the Trek and the Cargo.") == [
        "HA-7302 fits the Trek.",
        "HA-7302 fits the Cargo.",
    ]
    assert by_parse("The film was made in 1984 and filmed in Hebden Bridge.") == [
        "The film was made in 1984.",
        "The film was filmed in Hebden Bridge.",
    ]
    assert by_parse("The wall opened in 1989, and its demolition began in June.") == [
        "The wall opened in 1989.",
        "its demolition began in June.",
    ]
    for whole in ("Trade lies between Zambia and Zimbabwe.", "Accord and satisfaction is a term."):
        assert by_parse(whole) == by_rules(whole) == [whole]


def test_the_way_is_in_the_manifest_and_can_be_chosen() -> None:
    assert TEXT.about()["claims"] == "rules"
    plain = find_judge("local:text(decompose=no)")
    assert plain.name == "local:text(decompose=no)"
    assert plain.about()["claims"] == "sentences"
    sample = {
        "question": "What are the causes?",
        "reference": "The causes are logging, farming, and fires.",
        "contexts": ["Logging is a cause."],
    }
    counts = {
        judge: findwell.evaluate([sample], measures=["context_recall"], judge=judge).values
        for judge in ("local:text", "local:text(decompose=no)")
    }
    assert [each["context_recall"] for each in counts.values()] == [pytest.approx(1 / 3), 0.0]
    assert json.dumps(TEXT.about())
    with pytest.raises(OptionError, match="unknown way to find claims: 'clauses'"):
        find_judge("local(decompose=clauses)")


def test_a_splitter_of_ones_own_decides_what_a_claim_is() -> None:
    sample = {
        "question": "What are the causes?",
        "reference": "The causes are logging, farming, and fires.",
        "contexts": ["Logging is a cause."],
    }
    measure = "recall/claims(splitter=lines)"
    found = findwell.evaluate([sample], measures=[measure], judge="local:text")
    assert list(found.values.values()) == [0.0]


def test_a_chunk_with_all_but_the_entry_does_not_support_it() -> None:
    claims = by_rules("The primary causes of erosion are wind, rain, and grazing.")
    chunk = "The primary causes of erosion are wind and rain."
    (judged,) = TEXT.judge([sample_of("q", "", (chunk,), claims=claims)], frozenset({"claims"}))
    assert [row[0].value for row in judged["claims"].rows] == [1, 1, 0]
    assert entries_of(claims) == ["wind.", "rain.", "grazing."]
    assert entries_of([*claims[:1], "Something else is true."]) == ["", ""]
    assert entries_of(["", "a"]) == ["", ""]


FAMILIES = [
    "urban urbanization",
    "industry industrial industrialization",
    "pollution pollutant polluted",
    "economy economic",
    "infection infectious infected",
    "govern governor government",
    "agriculture agricultural",
    "electric electricity electrical",
]


def test_words_of_one_family_share_a_root_and_others_do_not() -> None:
    roots = [{root_of(term_and_weight(word)[0]) for word in family.split()} for family in FAMILIES]
    assert [len(each) for each in roots] == [1] * len(FAMILIES)
    assert len(set.union(*roots)) == len(FAMILIES)
    assert base_of("deforestation") == root_of("forest") != root_of("reforestation")
