"""The labelled cases by which a check tells how well a model judges."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from findwell.judges.verdicts import Sample

if TYPE_CHECKING:
    from findwell.judges.verdicts import Judged

FILE = "cases.toml"
CHECKED = frozenset({"relevance", "claims"})  # the aspects that the cases are about


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """A sample, and what is right about it: grades of chunks, and claims that chunks support."""

    sample: Sample
    relevance: tuple[int, ...]
    claims: tuple[tuple[int, ...], ...]

    def pairs(self, judged: Judged) -> list[tuple[int | None, int]]:
        """Return what a judge said and what is right, as yes and no; None where it said nothing."""
        labels = {"relevance": (self.relevance,), "claims": self.claims}
        found: list[tuple[int | None, int]] = []
        for aspect, rows in labels.items():
            given = judged[aspect].rows
            for number, row in enumerate(rows):
                said = given[number] if number < len(given) else ()
                values = [verdict.value for verdict in said] or [None] * len(row)
                found += [
                    (None if value is None else int(value > 0), int(right > 0))
                    for value, right in zip(values, row, strict=True)
                ]
        return found


def load_cases() -> tuple[Sequence[LabelledCase], str]:
    """Return the cases, and the hash of their file."""
    content = (files("findwell.judges.llm") / FILE).read_bytes()
    given = tomllib.loads(content.decode())["case"]
    cases = []
    for case in given:
        chunks = tuple(case["chunks"])
        sample = Sample(
            case["name"],
            case["question"],
            chunks,
            " ".join(case["claims"]),
            {"claims": tuple(case["claims"])},
        )
        support = tuple(
            tuple(int(number in found) for number in range(1, len(chunks) + 1))
            for found in case["claims"].values()
        )
        cases.append(LabelledCase(sample, tuple(case["relevance"]), support))
    return cases, hashlib.sha256(content).hexdigest()
