"""The systems of a comparison: results, result folders, run files or records, each with a name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from findwell.evaluation.evaluate import execute
from findwell.evaluation.inputs import Stages, asks_retrievers, unique_names
from findwell.evaluation.plan import Plan
from findwell.evaluation.results.result import Result, as_result, refuse_inputs, same_dialect
from findwell.io.read import Kind, each_input, kind_of, path_of
from findwell.io.read.format import Source
from findwell.io.storage.folders import is_folder
from findwell.judges.find import find_judge, on_server
from findwell.judges.settings import Judge
from findwell.measures import DEFAULTS
from findwell.measures.dialects import dialect, expand_measures, resolve_measures

if TYPE_CHECKING:
    from findwell.core.findings import Finding
    from findwell.io.read import GoldLike, RunLike
    from findwell.measures import Measure
    from findwell.retrievers.retriever import RetrieverLike

Measures: TypeAlias = "Iterable[str | Measure] | str | None"
SystemLike: TypeAlias = (
    "Result | RunLike | RetrieverLike | Mapping[str, Result | RunLike | RetrieverLike]"
)

HARMLESS_OPTIONS = ("cluster", "dialect", "level", "progress")  # mean something for results as well


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """One run of a result, under the name it has in the comparison."""

    name: str
    result: Result
    run: str
    given: str = ""  # the path, if it was given as one

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Problems in its input; what is about another run of the result is left out."""
        return tuple(
            replace(found, run=self.name if found.run else "")
            for found in self.result.findings
            if found.run in ("", self.run)
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """What was given as one system: where it came from, and the result once there is one."""

    name: str | None
    data: Any
    result: Result | None

    @property
    def path(self) -> str:
        return path_of(self.data)

    def spellings(self, run: str) -> list[str]:
        """Return names for a run of the result, from short to long, all of them valid Unicode."""
        return [name.encode("utf-8", "backslashreplace").decode() for name in self._spellings(run)]

    def _spellings(self, run: str) -> list[str]:
        several = self.result is not None and len(self.result.runs) > 1
        if self.name is not None:
            return [f"{self.name}/{run}" if several else self.name]
        if not self.path:
            return [run]
        folder = is_folder(self.path)
        own = Path(self.path).resolve().name if folder else Source(Path(self.path)).name
        parents = Path(self.path).parent.parts[::-1]
        longer = [own]
        for parent in parents:
            longer.append(f"{parent.strip(os.sep)}/{longer[-1]}")
        return [run, *(f"{name}/{run}" for name in longer)] if several else longer


def gather(
    systems: Sequence[object],
    gold: GoldLike | None = None,
    measures: Measures = None,
    *,
    rel: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[System]:
    """Return every run of what was given, measured alike.

    A system is a `Result`, the folder of one, or whatever `findwell.evaluate` takes; a dict of
    these names them. What is not a result yet is evaluated with these options, by default as the
    first result was. Without measures those of the first result are taken.
    """
    chosen = dict(options or {})
    if isinstance(chosen.get("judge"), Judge):  # one for all systems: so the budget is one
        chosen["judge"] = find_judge(on_server(chosen["judge"], chosen.get("base_url"))[0])
    given = [each for data in systems for each in _given(data)]
    results = [each.result for each in given if each.result is not None]
    if results and len(results) == len(given):
        idle = [name for name in chosen if name not in HARMLESS_OPTIONS]
        refuse_inputs([*idle, "gold"] if gold is not None else idle)
    first = results[0] if results else None
    as_first: dict[str, Any] = {}
    if first is not None:  # evaluate a run as this result was
        as_first = {
            "dialect": first.dialect,
            "by": first.provenance.drawn_by,
            "ids": first.provenance.ids,
            "missing": first.provenance.policy.missing,
        }
    chosen_dialect = dialect((as_first | chosen).get("dialect", "findwell"))
    if measures is None:
        names = DEFAULTS if first is None else [str(measure) for measure in first.measures]
        wanted = resolve_measures(names, chosen_dialect, rel)
    else:
        wanted = expand_measures(measures, chosen_dialect, rel)
    found, spelled = [], []
    for each in _evaluated(given, gold, wanted, as_first | chosen):
        if each.result is not None:
            same_dialect(each.result, chosen_dialect.name, each.path)
            same = each.result.measures == wanted  # then its values are not computed again
            scored = each.result if same else each.result.score(wanted)
            found += [System("", scored, run, each.path) for run in scored.runs]
            spelled += [each.spellings(run) for run in scored.runs]
    named = zip(found, unique_names(spelled), strict=True)
    return [replace(system, name=name) for system, name in named]


def take_gold(
    systems: Sequence[object], gold: GoldLike | None
) -> tuple[Sequence[object], GoldLike | None]:
    """Return the systems, and the gold, which may stand behind retrievers that are to be asked.

    A retriever cannot be compared without gold labels, so a last argument that cannot be asked is
    taken as the gold.
    """
    *others, last = systems or [None]
    asked = any(map(asks_retrievers, others))
    is_system = asks_retrievers(last) or kind_of(last) is Kind.RESULT
    if gold is not None or not asked or is_system:
        return systems, gold
    return others, last  # type: ignore[return-value]


def _given(data: object) -> list[_Given]:
    """Return the systems of one argument; a dict by name holds several."""
    named = each_input(data) if kind_of(data) is Kind.NAMED else [(None, data)]
    return [_Given(name, each, as_result(each)) for name, each in named]


def _evaluated(
    given: list[_Given],
    gold: GoldLike | None,
    measures: tuple[Measure, ...],
    options: dict[str, Any],
) -> list[_Given]:
    """Evaluate what is not a result yet; run files together, so that the gold is read once."""
    files = [each for each in given if each.result is None and each.path and gold is not None]
    together: dict[int, Result] = {}
    alone = [each for each in given if each.result is None and each not in files]
    stages = Stages(options.get("progress"), len(alone) + bool(files))

    def evaluated(data: Any, phase: str) -> Result:  # noqa: ANN401
        report = stages.begin(phase) if options.get("progress") else None
        return execute(Plan.of(measures, **options), data, gold, report)

    if files:
        names = unique_names([each.spellings("") for each in files])
        whole = evaluated({name: each.data for name, each in zip(names, files, strict=True)}, "")
        together = {id(each): whole.only(name) for name, each in zip(names, files, strict=True)}
    return [
        each
        if each.result is not None
        else replace(each, result=together.get(id(each)) or evaluated(each.data, each.name or ""))
        for each in given
    ]
