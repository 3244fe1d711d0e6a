"""The prompts: files of the package, each with a version, or files of the user's in their place.

A file begins with a line `version: N`. `$ids`, `$grades` and `$attempt` are filled in: never data,
which stands between marks of its own (see `karat.judges.llm.fence`).
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from karat.errors import InputError, nearest
from karat.judges.verdicts import GRADES

# what each file may fill in; all but $grades must be there
NAMES: dict[str, frozenset[str]] = {
    "judge": frozenset(),
    "relevance": frozenset({"ids", "grades"}),
    "claims": frozenset({"ids"}),
    "entities": frozenset({"ids"}),
    "statements": frozenset({"ids"}),
    "again": frozenset({"attempt"}),
    "list-entities": frozenset(),
    "list-claims": frozenset(),
    "list-statements": frozenset({"ids"}),
}
OPTIONAL = frozenset({"grades"})
HEAD = re.compile(r"version: *(\S[^\n]*)\n+(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The text of a file, and what tells it from any other."""

    name: str
    version: str
    text: str
    sha256: str
    own: bool = False  # not the package's

    def fill(self, **parts: object) -> str:
        """Return the text with ids and the like in it."""
        grades = "\n".join(f"{grade}: {meaning}" for grade, meaning in GRADES.items())
        return Template(self.text).substitute(parts, grades=grades)

    def about(self) -> dict[str, Any]:
        """Return what the manifest says."""
        return {"version": self.version, "sha256": self.sha256, "own": self.own}


def load_prompts(folder: str | os.PathLike[str] | None = None) -> dict[str, Prompt]:
    """Read all prompts; files of the same name in a folder take the place of the package's."""
    package = files("karat.judges.llm") / "prompts"
    found = {
        name: _prompt(name, (package / f"{name}.md").read_bytes(), f"{name}.md") for name in NAMES
    }
    if folder is None:
        return found
    for path in _own(Path(folder)):
        found[path.stem] = _prompt(path.stem, _read(path), str(path), own=True)
    return found


def _own(folder: Path) -> list[Path]:
    paths = sorted(folder.glob("*.md"))
    if not paths:
        raise InputError(
            "there are no prompts in this folder",
            where=str(folder),
            fix=f"put files there to take the place of {', '.join(f'{name}.md' for name in NAMES)}",
        )
    for path in paths:
        if path.stem not in NAMES:
            known = f"(known: {', '.join(NAMES)})"
            raise InputError(
                "no prompt has this name",
                where=str(path),
                fix=f"{nearest(path.stem, NAMES)} {known}".strip(),
            )
    return paths


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _prompt(name: str, content: bytes, where: str, *, own: bool = False) -> Prompt:
    try:
        head = HEAD.match(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error}", where=where) from None
    if head is None or not head[2].strip():
        raise InputError(
            "a prompt begins with its version, then comes its text",
            where=where,
            fix="write 'version: 1' into the first line",
        )
    text = head[2].strip()
    _check(Template(text), NAMES[name], where)
    return Prompt(name, head[1].strip(), text, hashlib.sha256(content).hexdigest(), own)


def _check(template: Template, known: frozenset[str], where: str) -> None:
    """See that all that must be filled in is, and nothing else."""
    names = set(template.get_identifiers())
    if not template.is_valid() or names - known:
        wrong = ", ".join(sorted(f"${name}" for name in names - known)) or "a single $"
        fix = f"known: {', '.join(f'${each}' for each in sorted(known)) or 'none'}; $$ is a dollar"
        raise InputError(f"the prompt has {wrong}", where=where, fix=fix)
    if missing := known - names - OPTIONAL:
        raise InputError(
            f"the prompt lacks ${', $'.join(sorted(missing))}", where=where, fix="see the package's"
        )
