"""The prompts: files of the package, each with a version, or what users give in their place.

A file begins with a line `version: N`. `$ids`, `$grades`, `$values` and `$attempt` are filled in:
never data, which has marks around it (see `findwell.judges.llm.prompt_items`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from findwell.core.errors import InputError, nearest
from findwell.core.texts.languages import ENGLISH
from findwell.judges.aspects import ASPECTS, Aspect, VerdictShape
from findwell.judges.llm.contract import example_entry

SHARED = {"judge": frozenset[str](), "again": frozenset({"attempt"})}
SHARED_SINGLE = {
    "single": frozenset[str](),
    "single-again": frozenset({"attempt"}),
    "single-quote": frozenset[str](),
}
SINGLE = (
    "single",
    "grades-",
    "lines-",
)  # how the names of prompts begin that ask for one verdict at a time
OPTIONAL = frozenset({"grades", "values"})
HEAD = re.compile(r"version: *(\S[^\n]*)\n+(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The text of a file, and what tells it from any other."""

    name: str
    version: str = ""
    text: str = ""
    sha256: str = ""
    fills: frozenset[str] = frozenset()  # what is filled in; all but $grades must be there
    grades: str = ""  # what each grade means
    own: bool = False  # not the package's

    def fill(self, **parts: object) -> str:
        """Return the text with ids and the like in it."""
        return Template(self.text).substitute(parts, grades=self.grades)

    def with_text(self, content: bytes, where: str, *, own: bool = False) -> Prompt:
        """Return the prompt with the version and the text of a file."""
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
        version, text = head[1].strip(), head[2].strip()
        _check(Template(text), self.fills, where)
        return replace(self, version=version, text=text, sha256=_hash(content), own=own)

    def about(self) -> dict[str, Any]:
        """Return what the manifest says."""
        return {"version": self.version, "sha256": self.sha256, "own": self.own}


def load_prompts(
    folder: str | os.PathLike[str] | None = None,
    others: Iterable[str] = (),
    *,
    language: str = ENGLISH,
) -> dict[str, Prompt]:
    """Read all prompts; files of the same name in a folder take the place of the package's.

    The folder may also hold `others`, which are not read here. Prompts that are not there in a
    language are in English.
    """
    found = packaged_prompts("findwell.judges.llm", SHARED | SHARED_SINGLE, language=language)
    for aspect in ASPECTS.values():
        found |= aspect_prompts(aspect, language=language)
    return replace_prompts(found, folder, others)


def packaged_prompts(
    package: str, fills: Mapping[str, frozenset[str]], *, language: str = ENGLISH
) -> dict[str, Prompt]:
    """Read prompts of a package by their names; each says what is filled in."""
    return {
        name: _packaged(package, Prompt(name, fills=each), language) for name, each in fills.items()
    }


def replace_prompts(
    prompts: dict[str, Prompt], folder: str | os.PathLike[str] | None, others: Iterable[str] = ()
) -> dict[str, Prompt]:
    """Return prompts with those of a folder in their place; it may also hold `others`."""
    if folder is None:
        return prompts
    mine = [path for path in _own(Path(folder), [*prompts, *others]) if path.stem in prompts]
    own = {
        path.stem: prompts[path.stem].with_text(_read(path), str(path), own=True) for path in mine
    }
    return prompts | own


def aspect_prompts(aspect: Aspect, *, language: str = ENGLISH) -> dict[str, Prompt]:
    """Return the prompt of an aspect and, if a model lists its items or parts, that for listing."""
    grades = "\n".join(f"{grade}: {meaning}" for grade, meaning in aspect.grades.items())
    fills = frozenset({"ids", "grades"} if aspect.is_graded else {"ids"})
    blank = {aspect.name: (Prompt(aspect.name, fills=fills, grades=grades), _own_task(aspect))}
    if aspect.listing is not None:
        inside = frozenset({"ids"} if aspect.shape is VerdictShape.PARTS else ())
        name = f"list-{aspect.name}"
        blank[name] = (Prompt(name, fills=inside), _own_listing(aspect))
    blank |= _single_prompts(aspect, grades)
    return {
        name: _packaged("findwell.judges.aspects", prompt, language)
        if text is None
        else replace(prompt, version="own", text=text, sha256=_hash(text.encode()), own=True)
        for name, (prompt, text) in blank.items()
    }


def _single_prompts(aspect: Aspect, grades: str) -> dict[str, tuple[Prompt, str | None]]:
    """Return the prompts that ask for one verdict, and for a list with one thing per line."""
    single, graded = f"single-{aspect.name}", f"grades-{aspect.name}"
    with_grades = Prompt(graded, fills=frozenset({"grades", "values"}), grades=grades)
    found = (
        {}
        if aspect.is_graded and aspect.prompt
        else {single: (Prompt(single), _own_single(aspect))}
    )
    if aspect.is_graded:
        found[graded] = (with_grades, _own_single(aspect))
    if aspect.listing is not None:
        lines = f"lines-{aspect.name}"
        own = aspect.list_prompt
        text = None if own is None else f"{_plain(own)} Write one per line and nothing else."
        found[lines] = (Prompt(lines), text)
    return found


def _own_single(aspect: Aspect) -> str | None:
    """Return the prompt for one verdict about an aspect that a user added."""
    if aspect.prompt is None:
        return None
    about = {
        VerdictShape.ITEMS: f" Decide about this {aspect.unit} and this chunk alone.",
        VerdictShape.PARTS: f" Decide about this {aspect.unit} alone.",
    }.get(aspect.shape, "")
    form = (
        "\n$grades\nAnswer with one digit: $values." if aspect.is_graded else " Answer yes or no."
    )
    return f"{_plain(aspect.prompt)}{about}{form}"


def _own_task(aspect: Aspect) -> str | None:
    """Return the prompt of an aspect that a user added, with the ids and the form of the answer."""
    if aspect.prompt is None:
        return None
    example = json.dumps(example_entry(aspect), ensure_ascii=False)
    task = f'"{aspect.name}": {_plain(aspect.prompt)} One entry for each of $ids:\n{example}'
    return f"{task}\nGrades:\n$grades" if aspect.is_graded else task


def _own_listing(aspect: Aspect) -> str | None:
    """Return the prompt that lists the items of an aspect that a user added."""
    if aspect.list_prompt is None:
        return None
    example = json.dumps({aspect.name: ["…", "…"]}, ensure_ascii=False)
    return (
        f'"{aspect.name}": {_plain(aspect.list_prompt)} The entries are texts; [] if there are '
        f"none: {example}"
    )


def _plain(text: str) -> str:
    """Return a text of the user's in which nothing is filled in."""
    return text.strip().replace("$", "$$")


def _packaged(package: str, prompt: Prompt, language: str) -> Prompt:
    folder, name = files(package) / "prompts", f"{prompt.name}.md"
    file = folder / name
    if language != ENGLISH and (own := folder / language / name).is_file():
        file = own
    return prompt.with_text(file.read_bytes(), file.name)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _own(folder: Path, known: Collection[str]) -> list[Path]:
    paths = sorted(folder.glob("*.md"))
    if not paths:
        raise InputError(
            "there are no prompts in this folder",
            where=str(folder),
            fix=f"put files there to take the place of {', '.join(f'{name}.md' for name in known)}",
        )
    for path in paths:
        if path.stem not in known:
            raise InputError(
                "no prompt has this name",
                where=str(path),
                fix=f"{nearest(path.stem, known)} (known: {', '.join(known)})".strip(),
            )
    return paths


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None


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
