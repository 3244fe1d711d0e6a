"""Reading what models write: tolerant of wrapping, strict about content, never an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findwell.judges.llm.answers import Unreadable, extract_object

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), VALUES, min_size=1, max_size=5)
PROSE = st.text(st.characters(exclude_characters="{}[]"), max_size=40)
WORDS = st.text("abc äöü 日本 ,:{}[]", max_size=12)


def reason(text: str) -> str:
    found = extract_object(text)
    assert isinstance(found, Unreadable)
    return found.reason


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '  \n{"a": 1}\n ',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}```',
        'Sure, here you are: {"a": 1}. Anything else?',
        'It says {x} and {1}, so {"a": 1}',
        "{'a': 1}",
        '{"a": 1,}',
        '{\n  "a" : 1 , \n}',
        '<think>first {"a": 2}, no</think>{"a": 1}',
        '{"a": 1} I repeat: {"a": 1}',
        '\ufeff{"a": 1}',
    ],
)
def test_wrapping_is_taken_off(text: str) -> None:
    assert extract_object(text) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': 'he said \"no\"'}", {"a": 'he said "no"'}),
        ("{'a': 'it\\'s'}", {"a": "it's"}),
        ("{'a': \"it's\"}", {"a": "it's"}),
        ("{'a': True, 'b': None, 'c': [False,]}", {"a": True, "b": None, "c": [False]}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ('{"a": "}{][,", "b": {}}', {"a": "}{][,", "b": {}}),
        ('{"a": "\\u00e9\\n\\\\"}', {"a": "é\n\\"}),
        ("{}", {}),
    ],
)
def test_what_can_mean_one_thing_only_is_read(text: str, value: object) -> None:
    assert extract_object(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "an empty text"),
        ("<think>nothing</think>", "an empty text"),
        ("I cannot judge this.", "no JSON object"),
        ("{verdict: 1}", "no JSON object"),
        ("[1, 2]", "a JSON array"),
        ('[{"a": 1}]', "a JSON array"),
        ('The list is [{"a": 1}]', "a JSON array"),
        ("3", "a JSON number"),
        ('"yes"', "a JSON string"),
        ("null", "a JSON null"),
        ("true", "a JSON boolean"),
        ('{"a": 1, "a": 2}', "a key is given twice"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a": -Infinity}', "-Infinity is not a number"),
        ('{"a": 1e999}', "1e999 is not a number"),
        ('{"a": 1} or {"a": 2}', "several different JSON objects"),
        ('{"a": {"b": 1}, "c": "cut', "the object is cut off"),
        ('{"a": {"b": 1}', "the object is cut off"),
        ("{'a': 'it's'}", "cut off"),
        ('{"a": 1,, "b": 2}', "not JSON"),
        ('{"a": [,]}', "not JSON"),
        ('{"a": 1 "b": 2}', "not JSON"),
        ('{"a": yes}', "not JSON"),
        ('{"a": 1]', "not JSON"),
        ('{"a": ' * 100_000, "cut off"),
        ('{"a": ' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_anything_else_is_a_reason(text: str, why: str) -> None:
    assert why in reason(text)


@settings(deadline=None)
@given(OBJECTS, PROSE, PROSE, st.sampled_from(["", "```json\n", "```"]))
def test_an_object_survives_prose_and_fences(
    value: dict[str, Any], before: str, after: str, fence: str
) -> None:
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)
        assert extract_object(f"{before}{fence}{text}{fence}{after}") == value


@settings(deadline=None)
@given(OBJECTS, st.data())
def test_no_beginning_of_an_object_is_an_object(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    end = data.draw(st.integers(0, len(text) - 1))
    assert isinstance(extract_object(text[:end]), Unreadable)


@settings(deadline=None)
@given(st.dictionaries(WORDS, WORDS | st.booleans() | st.none() | st.lists(WORDS), min_size=1))
def test_the_text_of_a_python_dict_is_read(value: dict[str, Any]) -> None:
    assert extract_object(repr(value)) == value


@settings(deadline=None)
@given(st.text() | st.text("{}[]\"'\\,:ab1 \n"))
def test_no_text_raises(text: str) -> None:
    assert isinstance(extract_object(text), dict | Unreadable)


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("text", ["{}" * 50_000, '[{"a"' * 20_000, "{'" * 50_000, "[ " * 100_000])
def test_hostile_texts_end(text: str) -> None:
    extract_object(text)
