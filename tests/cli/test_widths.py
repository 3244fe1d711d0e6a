"""What commands print fits the terminal, whatever its width; tried on a real pseudo-terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

import findwell
from tests.members import quick
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from tests.conftest import Findwell

DEMO = Path(findwell.__file__).parent / "demo"
RUNS = (str(DEMO / "bm25.trec"), str(DEMO / "minilm.trec"))
GOLD = ("--gold", str(DEMO / "questions.jsonl"))
COLOR = re.compile(r"\x1b\[[0-9;]*m")
COMMANDS = {
    "score": ("score", *RUNS, *GOLD),
    "score one run": ("score", RUNS[0], *GOLD, "--slice", "topic", "--per-query"),
    "score with a gate": ("score", *RUNS, *GOLD, "--require", "recall@5>=0.9"),
    "compare": ("compare", *RUNS, *GOLD, "--slice", "wording"),
    "explain": ("explain", RUNS[0], *GOLD, "--query", "q57"),
    "curve": ("curve", *RUNS, *GOLD, "-m", "recall", "--at", "1,2,3,5,10,20,50,100"),
    "measures": ("measures",),
    "tune": ("tune", *RUNS, *GOLD, "-m", "nDCG@10", "--engine", "weaviate-relative"),
    "fuse": ("fuse", "--list"),
    "fuse one": ("fuse", "--list", "--engine", "langchain-ensemble"),
    "power": ("power", *RUNS, *GOLD, "-m", "recall@5"),
}
PROSE = {  # sentences, which a terminal would break inside of words
    "demo": ("demo",),
    "check": ("check", *RUNS, *GOLD),
    "an error": ("score", *RUNS, *GOLD, "-m", "ndgc@10"),
    "an error with a long fix": ("score", *RUNS, *GOLD, "--judge", "locl", "-m", "context_recall"),
    "a mistake in the usage": ("score", *RUNS, *GOLD, "--" + "-".join(["no-such-option"] * 3)),
    "compare": ("compare", *RUNS, *GOLD, "--slice", "kind"),
    "tune": ("tune", *RUNS, *GOLD, "-m", "nDCG@10", "--engine", "weaviate-relative"),
    "signals": ("monitor", "show", "--list"),
    "help": ("--help",),
    "help of a command": ("tune", "--help"),
    "a gate without a baseline": ("score", *RUNS, *GOLD, "--baseline", "there"),
}


def lines(shown: str) -> list[str]:
    """Return the lines of a screen without colours, and without what progress wrote over."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-ln-z]", "", COLOR.sub("", shown))
    return [line.rpartition("\r")[2] for line in plain.splitlines()]


@pytest.mark.parametrize("columns", quick([80, 60, 120, 200], 80))
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_wider_than_the_terminal(name: str, columns: int) -> None:
    shown, code = on_terminal(COMMANDS[name], columns)
    assert code in (0, 1, 3), shown
    words = {word for line in lines(shown) for word in line.split()}
    longest = max(columns, *map(cell_len, words))  # a path or an id may be longer than a line
    wide = [line for line in lines(shown) if cell_len(line) > longest]
    assert not wide
    assert len(shown) > 100


@pytest.mark.parametrize("columns", quick([80, 60], 80))
@pytest.mark.parametrize("name", PROSE)
def test_no_word_is_broken(name: str, columns: int, tmp_path: Path) -> None:
    """A terminal breaks what is wider than it; only a single word may be, such as a path."""
    shown, code = on_terminal(PROSE[name], columns, FINDWELL_CACHE_DIR=str(tmp_path))
    assert code in (0, 2), shown
    wide = [line for line in lines(shown) if cell_len(line) > columns]
    assert not [line for line in wide if len(line.split()) > 1]
    assert len(shown) > 100


def test_every_number_is_there_at_any_width() -> None:
    shown = {columns: on_terminal(COMMANDS["compare"], columns)[0] for columns in (60, 200)}
    numbers = {
        columns: set(re.findall(r"[+−]?\d\.\d{3,4}", "\n".join(lines(each))))
        for columns, each in shown.items()
    }
    assert numbers[60] == numbers[200]
    assert len(numbers[60]) > 40


def test_colours_and_their_absence() -> None:
    colored, _ = on_terminal(COMMANDS["compare"], 120)
    assert "\x1b[32mbetter\x1b[0m" in colored
    gated, code = on_terminal(COMMANDS["score with a gate"], 120)
    assert code == 1
    assert "\x1b[31m" in gated
    assert "\x1b[33mnote:" in gated
    plain, _ = on_terminal(COMMANDS["compare"], 120, NO_COLOR="1")
    assert not COLOR.search(plain)


def test_what_was_written_is_no_warning(tmp_path: Path) -> None:
    shown, code = on_terminal(("score", *RUNS, *GOLD, "--save", str(tmp_path / "saved")), 120)
    assert code == 0
    assert "saved: " in shown
    assert "\x1b[33mnote:" in shown
    assert "\x1b[33msaved" not in shown


@pytest.mark.parametrize("columns", quick([60, 80], 60))
def test_a_comparison_that_is_too_wide_stands_on_its_side(columns: int, tmp_path: Path) -> None:
    """All about a measure is in one table, as with score, however many systems and slices."""
    names = [f"system-{at}-of-nine" for at in range(1, 9)]
    for at, name in enumerate(names):
        (tmp_path / f"{name}.trec").write_text(Path(RUNS[at % 2]).read_text("utf-8"), "utf-8")
    runs = (RUNS[0], *(str(tmp_path / f"{name}.trec") for name in names))
    command = ("compare", *runs, *GOLD, "-m", "recall@5", "-m", "RR", "--slice", "topic")
    shown, _ = on_terminal(command, columns)
    assert not [line for line in lines(shown) if cell_len(line) > columns and " " in line.strip()]
    tables = "\n".join(lines(shown)).split("\n\n")
    verdicts = [table for table in tables if "\n verdict " in table]
    for table in verdicts:
        assert table.lstrip().startswith(("measure ", "slice "))
        assert "\n won/tied/lost " in table
    assert len([table for table in verdicts if " slice " not in table]) >= 4
    said = " ".join(tables)
    gold = Path(GOLD[1]).read_text("utf-8").splitlines()
    topics = len({json.loads(line)["topic"] for line in gold})
    assert said.count("system-8-of-nine") >= 2 * (1 + topics)
    moved = tables[-2] if tables[-1].startswith("note") else tables[-1]
    assert {"before", "after", "difference"} <= set(moved.splitlines()[0].split())


def test_what_is_printed_while_a_bar_is_shown(tmp_path: Path) -> None:
    judged = ("-m", "context_recall@5", "--judge", "openai:some-model", "--dry-run")
    corpus = ("--corpus", str(DEMO / "passages.jsonl"))
    shown, code = on_terminal(("score", *RUNS, *GOLD, *corpus, *judged), 80, OPENAI_API_KEY="none")
    assert code == 0, shown
    assert "calls" in "\n".join(lines(shown))
    pool = str(tmp_path / "pool")
    queries = ("--queries", GOLD[1])
    assert (
        on_terminal(("labels", "pool", *RUNS, *queries, *corpus, "--depth", "3", "-o", pool), 80)[1]
        == 0
    )
    with findwell.labels.Labels.open(pool) as labels:
        for _ in range(12):
            pair = labels.next("anna")
            assert pair is not None
            labels.set(pair.query, pair.doc, 1, annotator="anna")
    shown, code = on_terminal(("compare", *RUNS, "-m", "P@3", "--labels", pool), 80)
    assert code == 0, shown
    assert "differences: each system − bm25" in lines(shown)


def test_a_pipe_gets_whole_lines(cli: Findwell) -> None:
    assert max(map(len, cli(*COMMANDS["compare"]).out.splitlines())) > 110
