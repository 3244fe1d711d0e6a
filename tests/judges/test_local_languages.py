"""The local judge on texts that are not in English: what it reads, and what it says it cannot."""

from __future__ import annotations

import pytest

import findwell
from findwell.judges.embeddings import find_embedder
from findwell.judges.local import LocalJudge
from findwell.judges.verdicts import Sample
from tests.judges.building import sample_of

TEXT = LocalJudge(None, entities="rules")
# questions, answers in their words (but for endings), and what else a manual says
PAIRS = {
    "en": [
        ("How long does charging the battery take?", "Charging the battery takes four hours."),
        ("What does a ticket for children cost?", "Tickets for children cost three euros."),
        ("Why is the red lamp on?", "The red lamp is on when the water level is too low."),
    ],
    "de": [
        ("Wie lange dauert das Laden des Akkus?", "Das Laden des Akkus dauert vier Stunden."),
        ("Was kostet eine Fahrkarte für Kinder?", "Fahrkarten für Kinder kosten drei Euro."),
        ("Wie hoch ist die monatliche Grundgebühr?", "Die monatliche Grundgebühr beträgt 12 Euro."),
        ("Kann ich meine Bestellung stornieren?", "Bestellungen können storniert werden."),
        ("Warum leuchtet die rote Lampe?", "Die rote Lampe leuchtet bei niedrigem Wasserstand."),
    ],
    "fr": [
        ("Combien de temps dure la charge de la batterie ?", "La charge de la batterie dure 4 h."),
        ("Combien d'habitants compte la ville ?", "La ville compte environ 40 000 habitants."),
        ("Puis-je annuler ma commande ?", "Les commandes peuvent être annulées pendant 14 jours."),
        (
            "Où se trouve le siège de l'entreprise ?",
            "Le siège de cette entreprise se trouve à Lyon.",
        ),
    ],
    "es": [
        ("¿Cuánto tiempo tarda en cargarse la batería?", "La batería tarda 4 horas en cargarse."),
        ("¿Cuánto cuesta un billete para niños?", "Los billetes para niños cuestan tres euros."),
        ("¿Cuándo se inauguró el puente?", "El puente se inauguró en 1932."),
    ],
    "ja": [
        (
            "バッテリーの充電にはどのくらい時間がかかりますか？",
            "バッテリーの充電には4時間かかります。",
        ),
        ("会社の本社はどこにありますか？", "会社の本社は大阪にあります。"),
        ("赤いランプが点灯するのはなぜですか？", "水位が低すぎると赤いランプが点灯します。"),
        ("この町の人口は何人ですか？", "この町の人口は約4万人です。"),
    ],
    "zh": [
        ("电池充电需要多长时间？", "电池充电需要四个小时。"),
        ("公司的总部在哪里？", "公司的总部在上海。"),
    ],
    "ru": [
        ("Сколько времени занимает зарядка аккумулятора?", "Зарядка аккумулятора занимает 4 часа."),
        ("Где находится главный офис компании?", "Главный офис компании находится в Казани."),
    ],
}
MANUAL = {
    "en": "Please read the instructions carefully before you put the device into operation. "
    "Keep them so that you can look things up later. Our customer service will be happy to help. ",
    "de": "Bitte lesen Sie die Anleitung aufmerksam durch, bevor Sie das Gerät in Betrieb nehmen. "
    "Bewahren Sie sie auf, damit Sie nachschlagen können. Unser Kundendienst hilft Ihnen gern. ",
    "fr": "Veuillez lire attentivement le mode d'emploi avant de mettre l'appareil en service. "
    "Conservez-le afin de pouvoir le consulter. Notre service client vous aidera volontiers. ",
    "es": "Lea atentamente las instrucciones antes de poner en marcha el aparato. Guárdelas para "
    "poder consultarlas más tarde. Nuestro servicio le ayudará con mucho gusto. ",
    "ja": "ご使用の前に取扱説明書をよくお読みください。お読みになった後は大切に保管してください。"
    "ご不明な点がございましたら、お客様サービスまでお問い合わせください。",
    "zh": "使用前请仔细阅读说明书。阅读后请妥善保管，以便日后查阅。如有疑问，请与客户服务部联系。",
    "ru": "Перед вводом прибора в эксплуатацию внимательно прочитайте инструкцию. Сохраните её, "
    "чтобы обращаться к ней в дальнейшем. Наша служба поддержки охотно вам поможет. ",
}


@pytest.mark.parametrize("pages", [0, 1, 4])
@pytest.mark.parametrize("language", PAIRS)
def test_an_answer_in_the_words_of_the_question_is_relevant(language: str, pages: int) -> None:
    around = MANUAL[language] * pages
    pairs = PAIRS[language]
    samples = [
        Sample(question, question, (around + answer, around + pairs[number - 1][1]))
        for number, (question, answer) in enumerate(pairs)
    ]
    judged = TEXT.judge(samples, frozenset({"relevance"}))
    own, other = ([each["relevance"].row[place].value for each in judged] for place in (0, 1))
    assert all(own), own
    assert not any(other), other


COMPOUNDS = [  # a question, a chunk that answers it in compounds or their parts, and another
    ("Wie lange dauert das Laden des Akkus?", "Die Akkuladezeit beträgt vier Stunden."),
    ("Wie hoch ist die Versandkostenpauschale?", "Der Versand kostet pauschal 4,90 Euro."),
    ("Welche Garantie gilt für den Rahmen?", "Die Rahmengarantie beträgt fünf Jahre."),
    ("Wie kündige ich den Vertrag?", "Die Vertragskuendigung erfolgt schriftlich."),
    ("Wann werden die Bremsbeläge gewechselt?", "Bremsbelaege wechseln Sie nach 1000 km."),
    ("Wo ist die Fahrradwerkstatt?", "Die Werkstatt für Fahrräder liegt am Markt."),
    ("Hoe lang duurt het opladen van de accu?", "De oplaadtijd van de accu is vier uur."),
]


@pytest.mark.parametrize("number", range(len(COMPOUNDS)))
def test_compounds_and_their_parts_are_the_same_words(number: int) -> None:
    question, answer = COMPOUNDS[number]
    others = (COMPOUNDS[number - 1][1], MANUAL["de"])
    (judged,) = TEXT.judge([Sample("q", question, (answer, *others))], frozenset({"relevance"}))
    own, *rest = [verdict.value for verdict in judged["relevance"].row]
    assert own
    assert rest == [0, 0]


def supports(claim: str, chunk: str) -> int | None:
    sample = sample_of("q", "", (chunk,), claims=(claim,))
    return TEXT.judge([sample], frozenset({"claims"}))[0]["claims"].rows[0][0].value


@pytest.mark.parametrize(
    ("claim", "chunk", "expected"),
    [
        ("Das Laden der Akkus dauert vier Stunden.", "Der Akku dauert beim Laden vier Stunden.", 1),
        ("Die Brücke wurde 1932 eröffnet.", "Die Brücke wurde im Jahr 1932 eröffnet.", 1),
        ("Die Brücke wurde 1933 eröffnet.", "Die Brücke wurde im Jahr 1932 eröffnet.", 0),
        ("Der Tee wird nicht besteuert.", "Der Tee wird besteuert.", 0),
        ("Der Tee wird besteuert.", "Der Tee wird nicht besteuert.", 0),
        ("Der Tee wird nicht besteuert.", "Der Tee wird in Europa nicht besteuert.", 1),
        ("Le thé n'est pas taxé.", "Le thé est taxé.", 0),
        ("Los clientes no pagan por el té.", "Los clientes pagan por el té.", 0),
    ],
)
def test_claims_in_other_languages(claim: str, chunk: str, expected: int) -> None:
    assert supports(claim, chunk) == expected


def found(language: str, judge: object) -> list[tuple[str, int, tuple[str, ...]]]:
    samples = [
        {"question": question, "retrieved_contexts": [answer], "reference": answer}
        for question, answer in PAIRS[language]
    ]
    result = findwell.evaluate(samples, measures=["context_precision"], judge=judge)
    return [(each.kind, each.count, each.examples) for each in result.findings]


def test_what_the_judge_cannot_read_is_told() -> None:
    assert found("en", "local:text") == []
    assert found("de", "local:text") == [("unmeasured-language", 5, ("German",))]
    assert found("ja", "local:text") == [("unmeasured-language", 4, ("Japanese",))]
    english = find_embedder(lambda texts: [[1.0] for _ in texts])
    english.reads = "en"  # type: ignore[attr-defined]
    assert found("de", LocalJudge(english)) == [("unread-language", 5, ("German",))]
    other = find_embedder(lambda texts: [[1.0] for _ in texts])
    assert found("de", LocalJudge(other)) == [("unmeasured-language", 5, ("German",))]


def test_minilm_reads_english() -> None:
    assert getattr(find_embedder("minilm"), "reads", "") == "en"
    assert found("en", "local") == []
    assert found("fr", "local") == [("unread-language", 4, ("French",))]


def test_a_language_that_nothing_is_known_of() -> None:
    sample = {"question": "Πού είναι η έδρα;", "retrieved_contexts": ["Στην Αθήνα."]}
    result = findwell.evaluate([sample], measures=["context_precision"], judge="local:text")
    assert [(each.kind, each.examples) for each in result.findings] == [
        ("unread-language", ("Greek",))
    ]


def test_a_question_in_english_about_texts_that_are_not() -> None:
    sample = {"question": "How long does it take?", "retrieved_contexts": [PAIRS["de"][0][1]] * 2}
    sample["retrieved_contexts"] = [MANUAL["de"]]
    result = findwell.evaluate([sample], measures=["context_precision"], judge="local:text")
    assert [each.examples for each in result.findings] == [("German",)]


def test_verdicts_do_not_depend_on_the_languages_beside() -> None:
    samples = [
        Sample(f"{language} {number}", question, (answer, MANUAL[language]))
        for language, pairs in PAIRS.items()
        for number, (question, answer) in enumerate(pairs)
    ]
    together = TEXT.judge(samples, frozenset({"relevance"}))
    alone = [TEXT.judge([sample], frozenset({"relevance"}))[0] for sample in samples]
    assert together == alone
