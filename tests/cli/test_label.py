"""`findwell labels serve` on the command line: in a terminal, from a pipe, and what it refuses."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.cli.labels import FILE_FORMATS
from findwell.loop.labels.exchange import EXPORTS
from findwell.loop.labels.labels import Labels
from tests import hostile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from findwell.loop.labels.labels import Pair
    from tests.conftest import Findwell, Outcome

TEXTS = {
    "a": "The reset button is at the back. Press it for three seconds.\nThen wait.",
    "b": "Charging takes four hours.",
    "c": "Call us. " * 40,
}
RUNS = {"one": {"q1": ["a", "c"], "q2": ["b"]}, "two": {"q1": ["c"], "q2": ["b", "a"]}}
QUESTIONS = {"q1": "Where is the reset button?", "q2": "How long does charging take?"}


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    findwell.labels.pool(
        RUNS, tmp_path / "pool", queries=QUESTIONS, corpus=TEXTS, overlap=1.0, guidelines="Be fair."
    )
    return tmp_path / "pool"


@pytest.fixture
def typed(cli: Findwell, pool: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    def call(text: str, *arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        return cli("labels", "serve", pool, "--terminal", *(arguments or ("--annotator", "ann")))

    return call


def test_keys_from_a_pipe(typed: Callable[..., Outcome], pool: Path) -> None:
    done = typed("2\nn not all\n1\nis\n")
    assert done.code == 0, done.err
    assert done.out.count("saved: ") == 4
    assert "Nothing is left to label." in done.out
    with Labels.open(pool) as labels:
        frame = labels.frame()
    assert frame.select("grade", "note", "state").rows() == [
        (2.0, "", "labelled"),
        (1.0, "not all", "labelled"),
        (None, "", "unsure"),
        (None, "", "skipped"),
    ]


def test_a_label_from_elsewhere_is_not_overwritten(
    typed: Callable[..., Outcome], pool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same annotator labels in a browser what the terminal shows: neither is lost."""
    usual = Labels.next

    def shown(self: Labels, annotator: str | None = None) -> Pair | None:
        pair = usual(self, annotator)
        if pair is not None and not len(self):
            with Labels.open(pool) as other:
                other.set(pair.query, pair.doc, 3, annotator="ann")
        return pair

    monkeypatch.setattr(Labels, "next", shown)
    done = typed("0\n1\n")
    assert "not saved: elsewhere you labelled this pair in the meantime: Fully answers" in done.out
    with Labels.open(pool) as labels:
        assert labels.frame()["grade"].to_list() == [3.0, 1.0]


def test_it_fits_80_columns_and_goes_on_where_it_stopped(typed: Callable[..., Outcome]) -> None:
    first = typed("? g 1\n")
    assert max(map(len, first.out.splitlines())) <= 80
    assert "Be fair." in first.out
    assert "0 of 4 done" in first.out
    assert "1 of 4 done" in first.out
    assert "Everything is saved." in first.out
    second = typed("")
    assert "0 of 4 done" not in second.out
    assert "1 of 4 done" in second.out


def test_undo_shows_the_pair_again(typed: Callable[..., Outcome], pool: Path) -> None:
    done = typed("3u")
    assert "taken back" in done.out
    assert done.out.count("0 of 4 done") == 2
    with Labels.open(pool) as labels:
        assert labels.frame().is_empty()
    assert "nothing to undo" in typed("u", "--annotator", "bob").out
    done = typed("0000u1\n")  # also where nothing is left
    assert "Nothing is left" in done.out
    with Labels.open(pool) as labels:
        assert labels.frame()["grade"].to_list() == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("mark", "marked"),
    [
        ("m 2", "Press it for three seconds."),
        ("m 2-3", "Press it for three seconds.\nThen wait."),
        ("m reset  BUTTON", "reset button"),
        ("m nothing like it", None),
        ("m 4", None),
        ("m 0", None),
        ("m 3-2", None),
        ("m 1\nm", None),
    ],
)
def test_marks(mark: str, marked: str | None, typed: Callable[..., Outcome], pool: Path) -> None:
    with Labels.open(pool, "bob") as labels:  # until the text with several sentences comes
        for _ in range(4):
            pair = labels.next("ann")
            assert pair is not None
            if (pair.query, pair.doc) == ("q1", "a"):
                break
            labels.set(pair.query, pair.doc, 0, annotator="ann")
    typed(f"{mark}\n3\n")
    with Labels.open(pool) as labels:
        row = labels.frame().filter(doc="a", query="q1").row(0, named=True)
    found = None if row["start"] is None else TEXTS["a"][row["start"] : row["end"]]
    assert (found, row["grade"]) == (marked, 3.0)


def test_disagreements_are_settled_here_too(typed: Callable[..., Outcome], pool: Path) -> None:
    typed("3333", "--annotator", "ann")
    done = typed("1333d", "--annotator", "bob")
    assert "1 to settle" in done.out
    assert "1 disagreement · bob" in done.out
    assert "ann: Fully answers" in done.out
    done = typed("d2", "--annotator", "cleo")
    assert "saved: 2 Relevant" in done.out
    with Labels.open(pool) as labels:
        assert labels.disagreements() == []
        assert sorted(labels.gold().rows()["grade"].to_list()) == [2.0, 3.0, 3.0, 3.0]
        states = labels.frame().filter(annotator="cleo")["state"].to_list()
    assert states == ["adjudicated"]
    assert "There are no disagreements" in typed("d", "--annotator", "dora").out


def test_what_others_look_at_is_told(typed: Callable[..., Outcome], tmp_path: Path) -> None:
    del typed
    folder = tmp_path / "one"
    findwell.labels.pool([{"q": ["a"]}], folder, queries={"q": "Why?"}, corpus=TEXTS)
    with Labels.open(folder) as labels:
        assert labels.next("ann") is not None
        run = subprocess.run(
            [
                *(sys.executable, "-m", "findwell", "labels", "serve", folder),
                *("--terminal", "--annotator", "bob"),
            ],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert "Other annotators have the last 1" in run.stdout


def test_yes_and_no(cli: Findwell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    findwell.labels.pool(RUNS, tmp_path / "p", queries=QUESTIONS, corpus=TEXTS, highest=1)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\nN really\nn\n2\n"))
    done = cli("labels", "serve", tmp_path / "p", "--terminal", "--annotator", "ann")
    assert "2 is not a key here" in done.out
    with Labels.open(tmp_path / "p") as labels:
        assert labels.frame().select("grade", "note").rows() == [(1.0, ""), (0.0, "really")]


def test_nothing_steers_the_terminal(
    cli: Findwell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attacks = [*hostile.ATTACKS, "[bold]rich[/bold] :smile:"]
    runs = [{attack: [f"d{attack}"] for attack in attacks}]
    texts = {f"d{attack}": attack for attack in attacks}
    asked = {attack: f"{attack}?" for attack in attacks}
    findwell.labels.pool(runs, tmp_path / "p", queries=asked, corpus=texts, guidelines="\x1b[2J")
    monkeypatch.setattr(sys, "stdin", io.StringIO("g" + "n \x1b[31m\n1\n" * len(attacks)))
    done = cli("labels", "serve", tmp_path / "p", "--terminal", "--annotator", "ann")
    assert done.code == 0, done.err
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e\u2066]", done.out)
    assert "[bold]rich[/bold] :smile:" in done.out


def test_one_key_at_a_time_in_a_terminal(pool: Path) -> None:
    """A real terminal: no line end is needed, notes are asked for, Ctrl-D ends it."""
    screen, stdin = pty.openpty()
    command = [sys.executable, "-m", "findwell", "labels", "serve", str(pool), "--terminal"]
    run = subprocess.Popen(
        [*command, "--annotator", "ann"], stdin=stdin, stdout=stdin, stderr=stdin, close_fds=True
    )
    shown = ""
    until = time.monotonic() + 60

    def press(key: bytes) -> None:
        """Press a key once the program waits for one: what is typed before is thrown away."""
        while termios.tcgetattr(stdin)[3] & termios.ICANON:
            assert time.monotonic() < until, shown
            time.sleep(0.01)
        os.write(screen, key)

    def wait_for(text: str) -> None:
        nonlocal shown
        while text not in shown:
            assert time.monotonic() < until, shown
            if select.select([screen], [], [], 10)[0]:
                shown += os.read(screen, 65536).decode(errors="replace")
        shown = shown.partition(text)[2]

    try:
        wait_for("q quit")
        press(b"n")
        wait_for("note: ")
        os.write(screen, b"by hand\n")
        wait_for("note: by hand")
        press(b"3")
        wait_for("saved: 3")
        wait_for("q quit")
        press(b"\x04")
        wait_for("Everything is saved.")
        assert run.wait(timeout=30) == 0
    finally:
        run.kill()
        run.wait()
        os.close(stdin)
        os.close(screen)
    with Labels.open(pool) as labels:
        assert labels.frame().select("grade", "note").row(0) == (3.0, "by hand")


def test_what_cannot_be_labelled(cli: Findwell, tmp_path: Path, pool: Path) -> None:
    for arguments, told in (
        (("serve", tmp_path / "nowhere"), "no labels here"),
        (("serve", tmp_path), "no labels here"),
        (("serve", pool, "--terminal", "--port", "1"), "--port has no effect with --terminal"),
        (("serve", pool, "--terminal", "--open"), "--open has no effect with --terminal"),
        (("export", pool, "x.csv", "--add"), "unknown option --add"),
        (("serve", pool, "--format", "csv"), "unknown option --format"),
        (("export", pool, tmp_path / "x.csv"), "no label to export"),
        (("import", pool, tmp_path / "nothing.csv"), "nothing.csv"),
        (("serve", pool, "--terminal", "--annotator", "a\x1b"), "not a valid name of an annotator"),
        (("serve", pool, "--annotator", "x" * 81), "not a valid name of an annotator"),
    ):
        done = cli("labels", *arguments)
        assert (done.code, told in done.err) == (2, True), done.err


def test_labels_go_out_and_come_back(
    typed: Callable[..., Outcome], cli: Findwell, pool: Path, tmp_path: Path
) -> None:
    typed("3210")
    told = cli("labels", "export", pool, tmp_path / "labels.csv")
    assert (told.code, told.out) == (0, "")
    assert "4 labelled pairs written" in told.err
    assert cli("labels", "export", pool, tmp_path / "beir", "--format", "beir").code == 0
    assert (tmp_path / "beir" / "qrels" / "test.tsv").is_file()
    findwell.labels.pool(RUNS, tmp_path / "new", queries=QUESTIONS, corpus=TEXTS)
    told = cli("labels", "import", tmp_path / "new", tmp_path / "labels.csv")
    assert (told.code, "4 labels added" in told.err) == (0, True), told.err
    with Labels.open(pool) as old, Labels.open(tmp_path / "new") as new:
        columns = ("query", "doc", "grade", "annotator")
        assert new.frame().select(columns).rows() == old.frame().select(columns).rows()


def test_the_formats_of_the_option_are_all_there_are() -> None:
    assert set(FILE_FORMATS) == set(EXPORTS)


def test_without_the_web_extra_the_terminal_is_offered(
    cli: Findwell, pool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    for name in (
        "findwell.show.web.labelling",
        "findwell.show.web.server",
        "starlette.applications",
    ):
        monkeypatch.delitem(sys.modules, name, raising=False)
    done = cli("labels", "serve", pool)
    assert done.code == 2
    assert ".[web]" in done.err
    assert "--terminal" in done.err
