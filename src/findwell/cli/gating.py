"""Options for gates, and where a command reports the verdicts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findwell.cli import envelope, options
from findwell.cli.command import option, option_set
from findwell.core.errors import naming_files
from findwell.show.escape import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from findwell.core.requirement import Requirement
    from findwell.evaluation.comparison.gates import GateReport
    from findwell.evaluation.results.result import Result
    from findwell.show.document import Document

GITHUB = "GITHUB_STEP_SUMMARY"  # the file whose Markdown GitHub shows next to a run
NOT_DECIDED = 3
VERDICT_FORMATS = ("table", "json", "markdown")  # formats that have room for verdicts


decision_options = option_set(
    option(
        "--undecided error|pass|fail",
        "What an undecided gate counts as; error is exit code 3.",
        default="error",
        rare=True,
    ),
    option(
        "--decide interval|value",
        "What decides a gate: the interval, or the value alone.",
        default="interval",
        rare=True,
    ),
    option("--junit FILE", "Write the verdicts as JUnit XML."),
    group="Gates",
)


gate_options = option_set(  # the command gets them as one object `gates`
    option(
        "--require REQUIREMENT...",
        'Gate, such as "recall@5>=0.8". Also: P@5>=baseline-0.02, judged@10>=0.9, '
        "failed<=0, p90<=300ms or errors<=1%, in quotes; may be repeated.",
    ),
    option("--baseline DIR", "What to compare with: a saved result."),
    option(
        "--update-baseline",
        "Save the result as the new baseline, unless something is worse or lost.",
        rare=True,
    ),
    decision_options,
    group="Gates",
    make=lambda **given: {"gates": Requirements(**given)},
)


def report_verdicts(
    gate: GateReport, how: str, output: str | None, junit: str | None, tables: Callable[[], str]
) -> int:
    """Report the verdicts everywhere but on standard output; return the exit code."""
    from findwell.show.gate import advice, as_junit, lines  # noqa: PLC0415

    if how not in VERDICT_FORMATS or output is not None:
        for line in lines(gate):
            options.note(line)
    if gate.exit_code == NOT_DECIDED:
        options.note(f"undecided: {advice(gate)}")
        envelope.fail("GateUndecided", _sentences(gate, "undecided"), fix=advice(gate))
    elif gate.exit_code:
        envelope.fail("GateFailed", _sentences(gate, "fail"))
    if how != "json":
        options.print_findings(gate.findings)
    if junit is not None:
        options.write(as_junit(gate), junit)
    append_summary(gate, tables)
    return gate.exit_code


def _sentences(gate: GateReport, outcome: str) -> str:
    """Return what is said about the requirements with an outcome."""
    from findwell.show.gate import sentence  # noqa: PLC0415

    return "; ".join(sentence(each) for each in gate.verdicts if each.outcome == outcome)


def shown_with(gate: GateReport | None, how: str) -> list[Document]:
    """Return what is shown of the verdicts, if there are any and the format has room for them."""
    if how not in VERDICT_FORMATS or gate is None or not gate.verdicts:
        return []
    from findwell.show.document import document_of  # noqa: PLC0415

    return [document_of(gate)]


def append_summary(gate: GateReport, tables: Callable[[], str]) -> None:
    """Append a summary for the pull request to the file that GitHub names, where it does."""
    path = os.environ.get(GITHUB)
    if not path:
        return
    from findwell.show.gate import summary  # noqa: PLC0415

    try:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(summary(gate, tables()))
    except OSError as error:  # the numbers are right, and the exit code says so
        reason = f"{GITHUB}: {error.strerror}"
        options.note(printable(f"note: the summary could not be written to ${reason}"))


@dataclass(frozen=True)
class Requirements:
    """What the result of `findwell score` must meet, and the baseline that goes with it."""

    require: tuple[str, ...]
    baseline: str | None
    update_baseline: bool
    undecided: str
    decide: str
    junit: str | None
    load: Callable[[str], Result] | None = None  # reads a baseline that is not a saved result

    def check(self) -> None:
        """Refuse what does not go together, before anything is read."""
        if self.junit is not None and not self.require:
            raise click.UsageError("--junit needs a --require")
        if self.baseline is None and self.update_baseline:
            raise click.UsageError("--update-baseline needs --baseline DIR")
        compared = self.update_baseline or any(each.factor is not None for each in self._parsed)
        if self.baseline is not None and not compared:
            raise click.UsageError(
                'nothing is compared with the baseline: add --require "recall@5>=baseline-0.02"'
                " or --update-baseline"
            )
        _ = self.before

    @cached_property
    def before(self) -> Result | None:
        """The saved result to compare with; where it is to be replaced, it may be missing."""
        if self.baseline is None:
            return None
        if self.load is not None:
            return self.load(self.baseline)
        from findwell.evaluation.results.store import load  # noqa: PLC0415
        from findwell.io.storage.folders import is_folder, refuse_foreign  # noqa: PLC0415

        if self.update_baseline:
            refuse_foreign(self.baseline)
        return load(self.baseline) if not self.update_baseline or is_folder(self.baseline) else None

    @cached_property
    def _parsed(self) -> list[Requirement]:
        if not self.require:
            return []
        from findwell.evaluation.comparison.requirements import parse_requirement  # noqa: PLC0415

        return [parse_requirement(text) for text in self.require]

    @property
    def measures(self) -> list[str]:
        """The measures that requirements name."""
        return [each.subject for each in self._parsed if each.is_of_measure]

    def hold(self, result: Result) -> GateReport | None:
        """Compare the result with the requirements; None if there are no requirements."""
        if not self.require and not self.update_baseline:
            return None
        from findwell.evaluation.comparison.gates import gate  # noqa: PLC0415

        with naming_files({"baseline": self.baseline or ""}):
            return gate(
                result,
                self.require,
                baseline=self.before,
                no_baseline="pass" if self.update_baseline else "error",
                undecided=self.undecided,
                decide=self.decide,
            )

    def finish(
        self,
        gate: GateReport | None,
        result: Result,
        how: str,
        output: str | None,
        *,
        slices: Sequence[str],
        lacking: int,
    ) -> int:
        """Report the verdicts, update the baseline if asked to, return the exit code.

        `lacking` is the exit code for what was not measured; passing every gate does not change it.
        """
        if gate is None:
            return lacking
        from findwell.show import render  # noqa: PLC0415

        tables = partial(render, result, "markdown")
        code = report_verdicts(gate, how, output, self.junit, tables) or lacking
        return self._update(result, code, slices) if self.update_baseline else code

    def _update(self, result: Result, code: int, slices: Sequence[str]) -> int:
        from findwell.evaluation.comparison.gates import EXIT, check_update  # noqa: PLC0415
        from findwell.show.gate import sentence  # noqa: PLC0415

        folder = str(self.baseline)
        if self.before is not None:
            found = check_update(result, self.before, slices)
            for verdict in found.worse:
                options.note(printable(f"worse than the baseline: {sentence(verdict)}"))
            options.print_findings(found.findings)
            if code or not found.allowed:
                options.note(f"the baseline stays as it is: {folder}")
                if not code:
                    worse = [sentence(each) for each in found.worse] or ["a part of it is missing"]
                    envelope.fail("BaselineKept", f"worse than the baseline: {'; '.join(worse)}")
                if not found.allowed:
                    options.note(f"to replace it all the same: --save {folder}")
                return code or EXIT["fail"]
            if found.added:
                names = ", ".join(map(str, found.added))
                options.note(f"also measured, because the baseline has it: {names}")
            result = found.result
        elif code:
            options.note(f"no baseline is saved: {folder}")
            return code
        result.save(folder)
        envelope.wrote(folder)
        options.note(f"baseline saved: {folder}")
        return 0
