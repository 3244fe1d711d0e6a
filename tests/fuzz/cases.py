"""Cases: files of which one is spoilt, and a command; the same cases for the same seed."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import PurePosixPath

from findwell.evaluation.results.store import _own_hash
from tests.fuzz.originals import Plan, plans
from tests.fuzz.spoiling import change_value, parquet_changed, spoil


@dataclass(frozen=True, slots=True)
class Case:
    """Files, and a command over them."""

    name: str
    files: dict[str, bytes]
    command: tuple[str, ...]
    target: str  # the file that was spoilt
    kind: str
    codes: frozenset[int]

    @property
    def spoilt(self) -> bytes:
        """The content of the file that was spoilt."""
        return self.files[self.target]


def cases(seed: int, *, only: str = "") -> Iterator[Case]:
    """Go on making cases: every plan once, in random order, then all of them again."""
    order = [plan for plan in plans() if only in plan.name]
    for number in count():
        rng = random.Random(f"{seed}-{number}")
        turn = order.copy()
        rng.shuffle(turn)
        for at, plan in enumerate(turn):
            yield make(plan, f"{seed}-{number}-{at}")


def make(plan: Plan, seed: str) -> Case:
    """Spoil the target of a plan."""
    rng = random.Random(seed)
    whole = plan.files[plan.target]
    if plan.kind.startswith("sealed-"):
        way, files = "sealed", sealed(plan, rng)
    else:
        way, content = spoil(whole, plan.kind, rng)
        files = {**plan.files, plan.target: content}
    name = f"{plan.name}-{way}-{seed}"
    return Case(name, files, plan.command, plan.target, plan.kind, plan.codes)


def sealed(plan: Plan, rng: random.Random) -> dict[str, bytes]:
    """Spoil a file of a saved result and write the hashes anew, as a tool that edits it would."""
    folder = str(PurePosixPath(plan.target).parent)
    manifest = json.loads(plan.files[f"{folder}/manifest.json"])
    manifest.pop("sha256")
    content = plan.files[plan.target]
    if plan.kind == "sealed-parquet":
        content = parquet_changed(content, rng)
        manifest["files"][PurePosixPath(plan.target).name] = hashlib.sha256(content).hexdigest()
    else:
        manifest = change_value(manifest, rng)
    if isinstance(manifest, dict):
        manifest |= {"sha256": _own_hash(json.loads(json.dumps(manifest)))}
    written = json.dumps(manifest).encode()
    return {**plan.files, plan.target: content, f"{folder}/manifest.json": written}
