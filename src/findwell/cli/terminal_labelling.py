"""Label in a terminal: the keys of the page, read one by one, or line by line from a pipe.

In a line that is piped every letter is a key, but for `n TEXT` and `m WORDS`, which take the rest
of the line.
"""

from __future__ import annotations

import getpass
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from findwell.cli.options import use_color
from findwell.core.errors import FindwellError, OptionError, SaveError
from findwell.loop.labels.labels import GradeChoice, annotator_name, scale_of
from findwell.relations.spans.locate import place_of
from findwell.show.escape import multiline, printable

if TYPE_CHECKING:
    from findwell.loop.labels.labels import Labels, Pair

WIDTH = 80
SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*(?:\s+|$)")
NUMBERS = re.compile(r"(\d+)(?:\s*-\s*(\d+))?")
HELP = """\
?  unsure: it is counted, and decided later
s  skip: left to others
u  undo: take the last label back
{note}  note: saved with the label
m  mark the words that answer: sentences (2 or 2-3), or the words themselves
d  disagreements: settle them, or go back to labelling
g  guidelines
q  quit; everything is saved, and goes on from here next time"""


def label_in_terminal(labels: Labels, annotator: str) -> None:
    """Label until nothing is left, the input ends, or `q`."""
    name = annotator_name(annotator or _login_name())
    keys = _typed() if sys.stdin.isatty() else _piped()
    _TerminalSession(labels, name, keys).run()


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise OptionError("no annotator is named", fix="add --annotator NAME") from None


@dataclass(frozen=True, slots=True)
class _Key:
    """A key, and what was written behind it in a piped line; None if it has to be asked for."""

    name: str
    rest: str | None = None


def _typed() -> Iterator[_Key]:
    while True:
        try:
            key = click.getchar()
        except EOFError:
            return
        yield _Key(key)


def _piped() -> Iterator[_Key]:
    for line in sys.stdin:
        text = line.strip()
        if text[:1] in ("n", "N", "m") and text[1:2] in ("", " "):
            yield _Key(text[0], text[1:].strip())
        else:
            yield from (_Key(letter) for letter in text if not letter.isspace())


class _TerminalSession:
    """One annotator at a terminal."""

    def __init__(self, labels: Labels, name: str, keys: Iterator[_Key]) -> None:
        self._labels = labels
        self._name = name
        self._keys = keys
        self._scale = scale_of(labels.highest)
        self._grades: dict[str, GradeChoice] = {str(each.grade): each for each in self._scale}
        self._grades |= {each.key: each for each in self._scale}
        self._note_key = "N" if labels.highest == 1 else "n"
        self._deciding = False
        self._settled = 0  # in this session: only these are taken back
        self._passed: set[tuple[str, str]] = set()  # disagreements that were skipped
        width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
        self._console = Console(
            width=width, highlight=False, markup=False, emoji=False, no_color=not use_color(),
            force_terminal=use_color(), soft_wrap=False,
        )  # fmt: skip
        self._note = ""
        self._mark: tuple[int, int] | None = None
        self._again: Pair | None = None  # what was taken back is shown again

    def run(self) -> None:
        """Show pair after pair and do what the keys say, until nothing is left or they end."""
        while True:
            pair = self._following()
            if pair is None and self._deciding:
                self._say("No disagreements are left.")
                self._deciding = False
            elif pair is None:
                busy = self._labels.progress(self._name).left
                rest = f"Other annotators have the last {busy} open: come back later."
                self._say(rest if busy else "Nothing is left to label.")
                if waiting := len(self._labels.disagreements()):
                    self._say(f"{waiting} to settle: key d")
                if not self._finish():
                    return
            elif not self._label(pair):
                self._say("Everything is saved.")
                return

    def _following(self) -> Pair | None:
        self._note, self._mark = "", None
        pair, self._again = self._again, None
        if pair is not None:
            return pair
        if not self._deciding:
            return self._labels.next(self._name)
        for found in self._labels.disagreements():
            if (found.query, found.doc) not in self._passed:
                return self._labels.pair(found.query, found.doc, annotator=self._name)
        return None

    def _label(self, pair: Pair) -> bool:
        """Have a pair labelled; False if there are no more keys."""
        self._show(pair)
        for key in self._keys:
            if key.name == "q":
                return False
            try:
                if self._press(key, pair):
                    return True
            except SaveError as error:  # nothing was saved: the same key may be pressed again
                self._say(f"Not saved. {error}")
            except FindwellError as error:
                self._say(str(error))
        return False

    def _finish(self) -> bool:
        """Where nothing is left, the last label can be taken back and disagreements be settled."""
        for key in self._keys:
            if key.name == "u" and self._undo():
                return True
            if key.name == "d" and self._switch():
                return True
            if key.name == "q":
                return False
        return False

    # what is shown

    def _show(self, pair: Pair) -> None:
        known = self._labels.progress(self._name)
        head = f"{known.total - known.left} of {known.total} done"
        if known.seconds_left is not None:
            head += f" · about {_duration(known.seconds_left)} left"
        if self._deciding:
            count = len(self._labels.disagreements())
            head = f"{count} disagreement{'s' * (count != 1)}"
        console = self._console
        console.print()
        console.print(Rule(f"{head} · {printable(self._name)}", align="left", style="dim"))
        self._wrapped(Text(multiline(pair.question), style="bold"), indent=0)
        console.print()
        self._wrapped(Text(printable(pair.doc), style="dim"))
        self._wrapped(Text(multiline(pair.text)))
        console.print()
        if self._deciding:
            self._show_opinions(pair)
        elif pair.state:
            self._say(f"before: {self._described(pair.state, pair.grade)}")
        self._show_keys()

    def _wrapped(self, text: Text, *, indent: int = 2) -> None:
        for line in text.wrap(self._console, self._console.width - indent):
            line.rstrip()
            self._console.print(Text(" " * indent) + line if line else Text(""))

    def _show_opinions(self, pair: Pair) -> None:
        for found in self._labels.disagreements():
            if (found.query, found.doc) == (pair.query, pair.doc):
                for name, grade in found.grades.items():
                    said = self._described("unsure" if grade is None else "labelled", grade)
                    note = found.notes.get(name, "")
                    self._say(f"{name}: {said}" + (f" ({note})" if note else ""))

    def _show_keys(self) -> None:
        grades = "  ".join(f"{each.key} {each.name}" for each in self._scale)
        self._console.print(Text(grades))
        unsure = "" if self._deciding else "i unsure  "
        others = f"{unsure}s skip  u undo  {self._note_key} note  m mark  ? help  q quit"
        self._console.print(Text(others, style="dim"))

    def _show_help(self) -> bool:
        for each in self._scale:
            self._say(f"{each.key}  {each.name}: {each.about}".rstrip(": "))
        return self._say(HELP.format(note=self._note_key))

    def _described(self, state: str, grade: float | None) -> str:
        if state != "labelled" or grade is None:
            return state
        return next((each.name for each in self._scale if each.grade == grade), f"{grade:g}")

    def _say(self, text: str) -> bool:
        """Print a text; no other pair is to be shown because of it."""
        self._console.print(Text(multiline(text)))
        return False

    # what keys do

    def _press(self, key: _Key, pair: Pair) -> bool:
        """Do what a key says; True if another pair is to be shown then."""
        acts: dict[str, Callable[[], bool]] = {
            "s": lambda: self._record(pair, "skip"),
            "u": self._undo,
            "d": self._switch,
            "N": lambda: self._take_note(key),
            self._note_key: lambda: self._take_note(key),
            "m": lambda: self._take_mark(key, pair),
            "g": lambda: self._say(self._labels.guidelines or "There are no guidelines yet."),
            "?": self._show_help,
        }
        if not self._deciding:
            acts["i"] = lambda: self._record(pair, "unsure")
        choice = self._grades.get(key.name)
        if choice is not None:
            return self._record(pair, "adjudicate" if self._deciding else "label", choice)
        if key.name in acts:
            return acts[key.name]()
        if key.name.strip():
            self._say(f"{printable(key.name)} is not a key here; ? shows the keys")
        return False

    def _record(self, pair: Pair, kind: str, choice: GradeChoice | None = None) -> bool:
        """Save what is said about a pair, unless it was labelled elsewhere in the meantime."""
        if self._deciding and kind == "skip":
            self._passed.add((pair.query, pair.doc))
            return True
        grade = None if choice is None else choice.grade
        start, end = (None, None) if choice is None or self._mark is None else self._mark
        with self._labels.at_once():
            if self._changed(pair):
                return True
            self._labels.say(
                kind, pair.query, pair.doc, grade, annotator=self._name, note=self._note,
                start=start, end=end,
            )  # fmt: skip
        self._settled += self._deciding
        self._say(f"saved: {kind if choice is None else f'{choice.key} {choice.name}'}")
        return True

    def _changed(self, pair: Pair) -> bool:
        """Tell whether the pair was labelled elsewhere since it was shown, and say so."""
        if self._deciding:
            open_ = {(found.query, found.doc) for found in self._labels.disagreements()}
            if (pair.query, pair.doc) in open_:
                return False
            self._say("not saved: this pair was decided elsewhere in the meantime")
            return True
        now = self._labels.pair(pair.query, pair.doc, annotator=self._name)
        if (now.state, now.grade) == (pair.state, pair.grade):
            return False
        said = self._described(now.state, now.grade) or "undone"
        self._say(f"not saved: elsewhere you labelled this pair in the meantime: {said}")
        return True

    def _undo(self) -> bool:
        if self._deciding and not self._settled:
            self._say("There is nothing to undo here.")
            return False
        self._settled -= self._deciding
        undone = self._labels.undo(self._name)
        if undone is None:
            self._say("There is nothing to undo.")
            return False
        self._say("taken back")
        self._again = undone
        return True

    def _switch(self) -> bool:
        """Go from labelling to disagreements, and back."""
        if not self._deciding and not self._labels.disagreements():
            self._say("There are no disagreements.")
            return False
        self._deciding = not self._deciding
        self._passed.clear()
        return True

    def _rest(self, key: _Key, prompt: str) -> str:
        """Return what was written behind a key, or ask for it."""
        if key.rest is not None:
            return key.rest
        try:
            return self._console.input(Text(prompt)).strip()
        except EOFError:
            return ""

    def _take_note(self, key: _Key) -> bool:
        self._note = self._rest(key, "note: ")
        return self._say(f"note: {self._note}" if self._note else "no note")

    def _take_mark(self, key: _Key, pair: Pair) -> bool:
        places = [found.span() for found in SENTENCE.finditer(pair.text) if found[0].strip()]
        if key.rest is None:
            for number, (start, end) in enumerate(places, 1):
                self._say(f"{number:>2}  {pair.text[start:end].strip()}")
        wanted = self._rest(key, "mark (2 or 2-3, or words of the passage): ")
        numbers = NUMBERS.fullmatch(wanted)
        if not wanted:
            self._mark = None
        elif numbers is None:
            self._mark = place_of(wanted, pair.text)
        else:
            first, last = int(numbers[1]), int(numbers[2] or numbers[1])
            inside = 1 <= first <= last <= len(places)
            self._mark = (places[first - 1][0], places[last - 1][1]) if inside else None
        if self._mark is None:
            missing = "that is not in the passage; nothing is marked"
            return self._say(missing if wanted else "no mark")
        start, end = self._mark
        quoted = pair.text[start:end]
        start += len(quoted) - len(quoted.lstrip())
        self._mark = start, start + len(quoted.strip())
        return self._say(f"marked: {quoted.strip()}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
