"""Options for gates, and where a command reports the verdicts."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from findwell.cli import options
from findwell.core.errors import naming_files
from findwell.show.escape import printable
from findwell.show.tables import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from findwell.evaluation.comparison.gates import GateReport
    from findwell.evaluation.results.result import Result

GITHUB = "GITHUB_STEP_SUMMARY"  # the file whose Markdown GitHub shows beside a run
NOT_DECIDED = 3
SHOWN = ("table", "json", "markdown")  # formats that have room for verdicts


decision_options = options.option_set(
    click.option(
        "--undecided",
        type=click.Choice(["error", "pass", "fail"]),
        default="error",
        help="What an undecided gate counts as; error is exit code 3.",
    ),
    click.option(
        "--decide",
        type=click.Choice(["interval", "value"]),
        default="interval",
        help="What decides a gate: the interval, or the value alone.",
    ),
    click.option("--junit", metavar="FILE", help="Write the verdicts as JUnit XML."),
)
gate_options = options.option_set(
    click.option(
        "--require",
        multiple=True,
        metavar="REQUIREMENT",
        help="Gate that the result must pass, such as recall@5>=0.8, P@5>=baseline-0.02, "
        "judged@10>=0.9, failed<=0, p90<=300ms or errors<=1%, in quotes; may be repeated.",
    ),
    click.option("--baseline", metavar="DIR", help="Saved result that gates compare with."),
    click.option(
        "--update-baseline",
        is_flag=True,
        help="Save the result as the new baseline, unless something is worse or lost.",
    ),
    decision_options,
)


def take_decisions(choices: dict[str, Any]) -> dict[str, str]:
    """Take out of the options of a command how gates are decided, for `findwell.gate`."""
    return {name: choices.pop(name) for name in ("decide", "undecided")}


def report_verdicts(
    gate: GateReport, how: str, output: str | None, junit: str | None, tables: Callable[[], str]
) -> int:
    """Report the verdicts everywhere but on standard output; return the exit code."""
    from findwell.show.gate import advice, as_junit, lines  # noqa: PLC0415

    if how not in SHOWN or output is not None:
        for line in lines(gate):
            options.note(line)
    if gate.exit_code == NOT_DECIDED:
        options.note(f"undecided: {advice(gate)}")
    if how != "json":
        options.print_findings(gate.findings)
    if junit is not None:
        options.write(as_junit(gate), junit)
    append_summary(gate, tables)
    return gate.exit_code


def with_verdicts(
    text: str, gate: GateReport | None, how: str, **screen: Unpack[options.Screen]
) -> str:
    """Add the verdicts to what is printed, if there are any and the format has room for them."""
    if how not in SHOWN or gate is None or not gate.verdicts:
        return text
    from findwell.show import render  # noqa: PLC0415

    if how == "json":
        shown: dict[str, Any] = json.loads(text) | gate.as_dict()
        shown["findings"] += [finding.as_dict() for finding in gate.findings]
        return to_json(shown)
    return text + ("\n" if how == "markdown" else "") + render(gate, how, **screen)


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


def _baseline(folder: str, *, update: bool) -> Result | None:
    """Load the saved result to compare with; where it is to be replaced, it may be missing."""
    from findwell.evaluation.results.store import load  # noqa: PLC0415
    from findwell.io.storage.folders import is_folder, refuse_foreign  # noqa: PLC0415

    if not update:
        return load(folder)
    refuse_foreign(folder)
    return load(folder) if is_folder(folder) else None


@dataclass(frozen=True, slots=True)
class Requirements:
    """What the result of `findwell score` must meet, and the baseline that goes with it."""

    texts: tuple[str, ...]
    folder: str | None
    update: bool
    before: Result | None
    decisions: dict[str, str]
    junit: str | None

    @classmethod
    def take(cls, choices: dict[str, Any]) -> Requirements:
        """Take the options out of those of the command, and check them before anything is read."""
        names = ("require", "baseline", "update_baseline", "junit")
        texts, folder, update, junit = (choices.pop(name) for name in names)
        requirements = []
        if texts:
            from findwell.evaluation.comparison.requirements import parse_requirement  # noqa: PLC0415

            requirements = [parse_requirement(text) for text in texts]
        if junit is not None and not texts:
            raise click.UsageError("--junit needs a --require")
        if folder is None and update:
            raise click.UsageError("--update-baseline needs --baseline DIR")
        compared = update or any(each.factor is not None for each in requirements)
        if folder is not None and not compared:
            raise click.UsageError(
                'nothing is compared with the baseline: add --require "recall@5>=baseline-0.02"'
                " or --update-baseline"
            )
        before = None if folder is None else _baseline(folder, update=update)
        return cls(texts, folder, update, before, take_decisions(choices), junit)

    @property
    def measures(self) -> list[str]:
        """The measures that requirements name."""
        if not self.texts:
            return []
        from findwell.evaluation.comparison.requirements import parse_requirement  # noqa: PLC0415

        asked = (parse_requirement(text) for text in self.texts)
        return [each.subject for each in asked if each.is_of_measure]

    def hold(self, result: Result) -> GateReport | None:
        """Hold the result against the requirements; None: there are none."""
        if not self.texts and not self.update:
            return None
        from findwell.evaluation.comparison.gates import gate  # noqa: PLC0415

        with naming_files({"baseline": self.folder or ""}):
            return gate(
                result,
                self.texts,
                baseline=self.before,
                no_baseline="pass" if self.update else "error",
                **self.decisions,
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
        return self._update(result, code, slices) if self.update else code

    def _update(self, result: Result, code: int, slices: Sequence[str]) -> int:
        from findwell.evaluation.comparison.gates import EXIT, check_update  # noqa: PLC0415
        from findwell.show.gate import sentence  # noqa: PLC0415

        folder = str(self.folder)
        if self.before is not None:
            found = check_update(result, self.before, slices)
            for verdict in found.worse:
                options.note(printable(f"worse than the baseline: {sentence(verdict)}"))
            options.print_findings(found.findings)
            if code or not found.allowed:
                options.note(f"the baseline stays as it is: {folder}")
                if not found.allowed:
                    options.note(f"to replace it all the same: --save {folder}")
                return code or EXIT["fail"]
            if found.added:
                names = ", ".join(map(str, found.added))
                options.note(f"measured as well, as the baseline has it: {names}")
            result = found.result
        elif code:
            options.note(f"no baseline is saved: {folder}")
            return code
        result.save(folder)
        options.note(f"baseline saved: {folder}")
        return 0
