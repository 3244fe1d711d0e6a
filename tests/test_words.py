"""The prose is plain international English: turns that a stranger stumbles over stay out."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "RECIPES.md",
    "ARCHITECTURE.md",
    "Makefile",
    "pyproject.toml",
    ".ci/run",
)
ENDINGS = {".py", ".html", ".j2", ".js", ".toml", ".md", ".yml"}
# prompts are versioned: another word would be another judge; decisions are a record of their day
LEFT_ALONE = ("/prompts/", "docs/decisions/")

# A space stands for any white space, also between lines and between the parts of a string.
COMPARED = "longer|better|more|less|worse|farther|different"  # "is no longer" is English
GOLD_NOUNS = "items?|spans?|texts?|documents?|entry|entries|labels?|records?"
TURNS = {  # a word of each turn: the turn, and what to write instead
    "none": (r"(?<!there )\bis (?-i:none)\b(?! %})", "is missing, is invalid, is not a …"),
    "no": (rf"(?<!there )(?<!where )\b(?:is|are) no (?:(?!{COMPARED})[a-z]+|\{{)", "is not a …"),
    "what": (r"\bwhat of ", "which part of, what about"),
    "late": (r"\bof late\b", "recently"),
    "place": (r"\bin the place of\b", "instead of"),
    "beside": (r"\bbeside\b", "next to, in addition to, compared with"),
    "anew": (r"\banew\b", "again, new"),
    "whoever": (r"\bwhoever\b", "the caller, a system that, those who"),
    "held": (r"\bheld against\b", "compared with"),
    "told": (r"\btold apart\b", "distinguished"),
    "shown": (
        r"(?:\b(?:is|are|was|were)|\d) not shown\b",
        "unclear (a verdict), hidden (on a page)",
    ),
    "nobody": (r"\bnobody\b", "no one"),
    "somebody": (r"\bsomebody\b", "a person, another person"),
    "so": (r"\bso (?:many|much)\b", "this many, this much"),
    "mend": (r"\bmend(?:s|ed|ing)?\b", "fix, repair, solve"),
    "gold": (rf"\ba (?-i:gold)\b(?! (?:{GOLD_NOUNS})\b)", "gold labels, the gold"),
}
ALLOWED = {
    "src/findwell/judges/llm/cases.toml": "nobody",  # a text that a judge is tried on
    "src/findwell/judges/local/judge.py": "nobody",  # a word of negation that the judge knows
}

COMPILED = {
    word: (re.compile(turn.replace(" ", r"\s"), re.IGNORECASE), better)
    for word, (turn, better) in TURNS.items()
}
BREAK = re.compile(r"\n[ \t]*(?:f?[\"'](?=\w)|#+ |// |> )?")  # indent, string or comment goes on


def found_turns(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, words and better words of each turn in a text."""
    plain = BREAK.sub("\n", text.replace(' "\n', "\n"))
    lower = plain.lower()
    for turn, better in (each for word, each in COMPILED.items() if word in lower):
        for match in turn.finditer(plain):
            yield plain.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), better


def written_files() -> Iterator[tuple[str, Path]]:
    """Yield the files with prose that users and contributors read."""
    folders = ("src", "docs", "website", ".github", "examples/ci")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    for path in [*found, *(ROOT / page for page in PAGES)]:
        name = path.relative_to(ROOT).as_posix()
        if (path.suffix in ENDINGS or name in PAGES) and not any(
            left in name for left in LEFT_ALONE
        ):
            yield name, path


def test_no_turn_is_in_the_prose() -> None:
    wrong = [
        f"{name}:{line}: {words!r}: write {better}"
        for name, path in written_files()
        for line, words, better in found_turns(path.read_text(encoding="utf-8"))
        if ALLOWED.get(name) != words
    ]
    assert not wrong, "\n".join(["turns of phrase to replace:", *wrong])


def test_what_is_allowed_is_still_there() -> None:
    for name, words in ALLOWED.items():
        found = {each for _, each, _ in found_turns((ROOT / name).read_text(encoding="utf-8"))}
        assert words in found, f"{name} has no {words!r} any more: take it off the list"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("A list that is none.", 1, "is none"),
        ("one\n# this is\n# no table\n", 2, "is no table"),
        ('x = (\n    "it is "\n    "no text"\n)', 2, "is no text"),
        ('f"which is no {name}"', 1, "is no {"),
        ("blanks are no part of it", 1, "are no part"),
        ("1 better, 1 not shown", 1, "1 not shown"),
        ("Nobody knows", 1, "Nobody"),
        ("compared with a gold.", 1, "a gold"),
        ("what of\na text counts", 1, "what of"),
    ],
)
def test_a_turn_is_found(text: str, line: int, words: str) -> None:
    assert [found[:2] for found in found_turns(text)] == [(line, words)]


@pytest.mark.parametrize(
    "text",
    [
        "if value is None:",
        "where there is none",
        "Then there\n    is no number",
        "it is no longer than the window",
        "runs that share no query",
        "{% if k is none %}",
        "if not shown: # text",
        "a gold document, a gold\n    text",
        "besides, this many",
    ],
)
def test_plain_words_pass(text: str) -> None:
    assert not list(found_turns(text))
