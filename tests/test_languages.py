"""Which language a text is in, and what is left of its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.texts.languages import known, languages_of, without_accents
from tests.strategies import examples

TEXTS = {
    "en": ["How long does it take?", "The head office of the company is in Leeds."],
    "de": ["Wie lange dauert das Laden des Akkus?", "Der Motor darf nicht heiß werden."],
    "fr": ["Combien d'habitants compte la ville ?", "Le pont a été inauguré en 1932."],
    "es": ["¿Quién descubrió América?", "La sede de la empresa está en Sevilla."],
    "it": ["Chi è il responsabile dell'impianto?", "La sede si trova nel centro di Torino."],
    "pt": [
        "Quanto tempo demora a carregar uma bateria?",
        "A empresa não tem sede em Lisboa, mas no Porto.",
    ],
    "nl": ["Hoe lang duurt het opladen?", "Het hoofdkantoor van het bedrijf is in Utrecht."],
    "sv": ["Hur lång tid tar det att ladda batteriet?", "Det är inte så länge sedan."],
    "da": ["Hvor lang tid tager det at oplade?", "Jeg har ikke været der."],
    "pl": ["Jak długo trwa ładowanie, które jest konieczne?", "Nie ma go, ponieważ jest w domu."],
    "ru": ["Где находится главный офис?", "Мост был открыт в 1932 году."],
    "ja": ["会社の本社はどこにありますか？", "橋は1932年に開通しました。"],
    "zh": ["公司的总部在哪里？", "电池充电需要四个小时。"],
    "ko": ["본사는 어디에 있습니까?", "배터리 충전에는 네 시간이 걸립니다."],
    "th": ["แบตเตอรี่ใช้เวลาชาร์จกี่ชั่วโมง"],
    "el": ["Πού βρίσκεται η έδρα;"],
    "ar": ["أين يقع المقر الرئيسي؟"],
    "he": ["היכן נמצא המטה?"],
    "hi": ["मुख्यालय कहाँ है?"],
    "other": ["სად არის სათაო ოფისი?"],
    "": ["Rome", "42", "", "São Paulo", "los angeles rams", "—", "Die Hard 2"],
}


def test_languages_are_told_separate_calls() -> None:
    texts = [(text, code) for code, each in TEXTS.items() for text in each]
    found = languages_of([text for text, _ in texts])
    assert [(text, code) for (text, _), code in zip(texts, found, strict=True)] == texts


def test_names_of_other_languages_do_not_make_a_text_foreign() -> None:
    texts = [
        "Where is the Museo de la Ciudad in Los Angeles?",
        "Did Ludwig van Beethoven and Wolfgang von Goethe ever meet?",
        "What does 東京 mean?",
        "Is the film Die Welle about a war?",
    ]
    assert languages_of(texts) == ["en"] * 4


@examples(30)
@given(st.lists(st.text() | st.sampled_from([each[0] for each in TEXTS.values()]), max_size=8))
def test_a_text_is_in_the_same_language_in_any_company(texts: list[str]) -> None:
    found = languages_of(texts)
    assert found == [languages_of([text])[0] for text in texts]
    for code in found:
        assert known(code).name or not code


@pytest.mark.parametrize(
    ("code", "forms"),
    [
        ("de", "kostet kosten kostete"),
        ("de", "Fahrkarte Fahrkarten"),
        ("de", "Stadt Städte"),
        ("de", "storniert stornieren"),
        ("fr", "commande commandes"),
        ("fr", "annuler annulée annulées"),
        ("es", "habitante habitantes"),
        ("it", "batteria batterie"),
        ("pt", "instalação instalações"),
        ("nl", "opladen opladen"),
        ("nl", "duurt duur"),
        ("ru", "зарядка зарядки зарядку"),
        ("sv", "batteri batteriet batterier"),
        ("ko", "배터리는 배터리를 배터리"),
    ],
)
def test_forms_of_a_word_have_one_stem(code: str, forms: str) -> None:
    words = [without_accents(form.casefold()) for form in forms.split()]
    assert len({known(code).stem(word) for word in words}) == 1


def test_a_question_of_nothing_but_asking_stays_as_it_is() -> None:
    for code, question in (("ja", "なぜですか"), ("de", "Wie lange?"), ("zh", "为什么？")):
        assert known(code).bare(question) == question
