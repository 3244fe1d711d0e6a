"""Cards on disk: written under the name of the judge, found again when results want to cite one."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from karat.errors import InputError, SaveError
from karat.judges.cards.card import LAYOUT, JudgeCard, Slice
from karat.judges.cards.figures import Figure
from karat.statistics.agreement import Confusion
from karat.storage.database import cache_folder
from karat.storage.files import write_text

FOLDER = "judge-cards"


def save_card(card: JudgeCard, path: str | os.PathLike[str] | None = None) -> Path:
    """Write a card to a file, by default to the folder where `find_card` looks.

    There a judge has one card for each set of labels; a new one replaces the old.
    """
    target = _place(card.judge, card.sha256) if path is None else Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SaveError(
            f"the card could not be written: {error.strerror}", where=str(target)
        ) from None
    write_text(target, json.dumps(card.as_dict(), indent=1, ensure_ascii=False) + "\n")
    return target


def load_card(path: str | os.PathLike[str]) -> JudgeCard:
    """Read a card."""
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
        kind: tuple[object, object] = (given.pop("karat"), given.pop("layout"))
        card = _card(given)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        kind, card = (reason, ""), None
    if card is None or kind != ("judge-card", LAYOUT):
        raise InputError(
            f"this is no judge card of layout {LAYOUT}: {' '.join(map(str, kind)).strip()}",
            where=str(path),
            fix="write it again with karat judge-card",
        )
    return card


def find_card(judge: str, folder: str | os.PathLike[str] | None = None) -> JudgeCard | None:
    """Return the newest card of a judge, None if it has none; damaged files are passed over."""
    found = []
    for path in _folder(folder).glob(f"*-{_short(judge)}-*.json"):
        try:
            card = load_card(path)
        except InputError:
            continue
        if card.judge == judge:
            found.append(card)
    return max(found, key=lambda card: card.created, default=None)


def _place(judge: str, labels: str) -> Path:
    readable = re.sub(r"[^a-z0-9.]+", "-", judge.casefold()).strip("-")[:60]
    return _folder(None) / f"{readable}-{_short(judge)}-{labels[:8]}.json"


def _folder(folder: str | os.PathLike[str] | None) -> Path:
    return cache_folder() / FOLDER if folder is None else Path(folder)


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def _card(given: dict[str, Any]) -> JudgeCard:
    table = given["confusion"]
    counts = tuple(tuple(row) for row in table["counts"])
    return JudgeCard(
        **{
            **given,
            "figures": tuple(Figure(**each) for each in given["figures"]),
            "confusion": Confusion(tuple(table["labels"]), counts, table["n"], table["left_out"]),
            "slices": tuple(
                Slice(**{**each, "figures": tuple(Figure(**it) for it in each["figures"])})
                for each in given["slices"]
            ),
        }
    )
