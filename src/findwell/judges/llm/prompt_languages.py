"""The languages that prompts are shipped in, and the words around what a prompt fills in.

A language is a folder of prompts beside the English ones, `prompts/CODE/NAME.md`, and an entry
here. JSON keys, ids and marks are the same in all of them: answers are read alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from findwell.core.texts.languages import ENGLISH, languages_of


@dataclass(frozen=True, slots=True)
class PromptWords:
    """What stands before the task, and between the first and the last of some ids."""

    task: str = "Task:"
    to: str = " to "


WORDS = {
    ENGLISH: PromptWords(),
    "de": PromptWords("Aufgabe:", " bis "),
    "fr": PromptWords("Tâche :", " à "),
    "es": PromptWords("Tarea:", " a "),
    "zh": PromptWords("任务：", " 至 "),
    "ja": PromptWords("課題：", "～"),
}


def prompt_languages(questions: Sequence[str]) -> dict[str, str]:
    """Return the language of the prompts about each question: its own, English where unsure.

    >>> prompt_languages(["Wo ist der Schlüssel?", "Rome", "Где ключ?"])
    {'Wo ist der Schlüssel?': 'de', 'Rome': 'en', 'Где ключ?': 'en'}
    """
    distinct = list(dict.fromkeys(questions))
    codes = languages_of(distinct)
    return {
        question: code if code in WORDS else ENGLISH
        for question, code in zip(distinct, codes, strict=True)
    }
