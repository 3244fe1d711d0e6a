"""Tags and notes that people give to a saved result: a file next to its folder.

The folder itself is sealed, and saving again replaces it as a whole; so the notes about
`results/monday` are in `results/monday.notes.json`. They name the result that they are about.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from findwell.core.errors import OptionError, SaveError
from findwell.io.storage.files import open_regular, write_text

ENDING = ".notes.json"
MARK, LAYOUT = "notes about a result", 1  # by which the file is known
LARGEST_FILE = 100_000  # bytes of a file
TAGS, TAG, NOTE = 20, 40, 4_000  # how many tags, and letters of each and of the note


@dataclass(frozen=True, slots=True)
class ResultNotes:
    """What people say about a result."""

    tags: tuple[str, ...] = ()
    note: str = ""
    about: str = ""  # the id of the result that they were written about

    @classmethod
    def of(cls, tags: Iterable[str], note: str, about: str = "") -> ResultNotes:
        """Check what a person wrote: tags are short, in one line, and each is there once.

        >>> ResultNotes.of([" nightly ", "nightly", ""], "as before\\n").tags
        ('nightly',)
        """
        tidy = tuple(dict.fromkeys(filter(None, (" ".join(tag.split()) for tag in tags))))
        note = note.replace("\r\n", "\n").strip()
        for what, size, most in (
            ("tags", len(tidy), TAGS),
            ("characters in a tag", max(map(len, tidy), default=0), TAG),
            ("characters in the note", len(note), NOTE),
        ):
            if size > most:
                raise OptionError(f"there are {size:,} {what}", fix=f"{most:,} are allowed")
        return cls(tidy, note, about)

    def __bool__(self) -> bool:
        return bool(self.tags or self.note)


def notes_file(folder: Path) -> Path:
    """Return where the notes about the result in a folder are.

    >>> notes_file(Path("results/monday")).as_posix()
    'results/monday.notes.json'
    """
    return folder.with_name(folder.name + ENDING)


def read_notes(folder: Path) -> ResultNotes | None:
    """Return the notes about the result in a folder; None if what is there is not ours."""
    path = notes_file(folder)
    try:
        with open_regular(path) as file:
            text = file.read(LARGEST_FILE + 1)
        return None if len(text) > LARGEST_FILE else _checked(json.loads(text.decode()))
    except FileNotFoundError:
        return ResultNotes()
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None


def write_notes(folder: Path, notes: ResultNotes) -> None:
    """Write the notes, whole or not at all; none at all leave no file behind."""
    path = notes_file(folder)
    if read_notes(folder) is None:
        raise SaveError(
            "the file for notes is there already, and findwell did not write it",
            where=path.name,
            fix="move it away",
        )
    if not notes:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            reason = f"the notes could not be deleted: {error.strerror}"
            raise SaveError(
                reason, where=path.name, fix="look at the rights of the folder"
            ) from error
        return
    told = {
        "findwell": MARK,
        "layout": LAYOUT,
        "result": notes.about,
        "tags": list(notes.tags),
        "note": notes.note,
    }
    write_text(path, json.dumps(told, indent=1, ensure_ascii=False) + "\n", private=True)


def _checked(found: dict[str, Any]) -> ResultNotes | None:
    tags, note, about = found["tags"], found["note"], found["result"]
    texts = isinstance(tags, list) and all(isinstance(each, str) for each in (*tags, note, about))
    if (found["findwell"], found["layout"]) != (MARK, LAYOUT) or not texts:
        return None
    return ResultNotes(tuple(tags), note, about)
