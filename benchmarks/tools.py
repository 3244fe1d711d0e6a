"""The tools that are compared, one adapter each.

An adapter says what the tool calls the six measures and how its documentation has it read
files, take dicts and evaluate what it has in memory. Whatever is not to be timed is done before
the `work` of a `Task` or, turning what the work returned into numbers, after it.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from benchmarks.data import read_dicts
from benchmarks.reference_program import PROGRAM, program

if TYPE_CHECKING:
    from benchmarks.data import Files

MEASURES = ("nDCG@10", "AP", "RR", "P@10", "recall@10", "recall@100")
FILES, DICTS, KERNEL, TABLES = "files", "dicts", "kernel", "tables"

Numbers: TypeAlias = dict[str, float]


@dataclass(frozen=True, slots=True)
class Task:
    """The work to time, and how to read the aggregated numbers from what it returns."""

    work: Callable[[], Any]
    numbers: Callable[[Any], Numbers]


class Tool(ABC):
    """One tool."""

    name: ClassVar[str]
    package: ClassVar[str]  # as it is installed
    module: ClassVar[str]  # as it is imported
    spelling: ClassVar[tuple[str, ...]] = MEASURES  # the tool's names of the measures
    tolerance: ClassVar[float] = 1e-6  # how far its numbers may lie from findwell's
    environment: ClassVar[Mapping[str, str]] = {}
    cores: ClassVar[int] = 0  # on how many it may run; 0: all
    script: ClassVar[str] = ""  # for python -c: run, judgements and names as arguments, prints JSON

    def absent(self) -> str:
        """Say why the tool cannot run here; nothing if it can."""
        return "" if importlib.util.find_spec(self.module) else "not installed"

    def version(self) -> str:
        """Return the version that is installed."""
        return metadata.version(self.package)

    def task(self, stage: str, files: Files) -> Task:
        """Prepare the work of a stage."""
        stages = {
            FILES: self.from_files,
            DICTS: self.from_dicts,
            KERNEL: self.kernel,
            TABLES: self.from_tables,
        }
        return stages[stage](files)

    @abstractmethod
    def from_files(self, files: Files) -> Task:
        """From TREC files to aggregated numbers."""

    def from_dicts(self, files: Files) -> Task:
        """From dicts in memory to aggregated numbers."""
        raise NotImplementedError

    def kernel(self, files: Files) -> Task:
        """From the tool's own structures to a value for each query and measure."""
        raise NotImplementedError

    def from_tables(self, files: Files) -> Task:
        """From the tool's own unsorted, unmatched structures to aggregated numbers."""
        raise NotImplementedError

    def command(self, files: Files) -> list[str]:
        """Return the command that prints the numbers, as a user would write it."""
        paths = (str(files.run), str(files.gold))
        return [sys.executable, "-c", self.script, *paths, *self.spelling]

    def printed(self, text: str) -> Numbers:
        """Read what the command printed."""
        return self.named(json.loads(text))

    def named(self, values: Mapping[str, Any]) -> Numbers:
        """Return values under findwell's names of the measures."""
        return {
            measure: float(values[spelled])
            for measure, spelled in zip(MEASURES, self.spelling, strict=True)
        }


class Findwell(Tool):
    """This library."""

    name = package = module = "findwell"

    def from_files(self, files: Files) -> Task:
        """Hand over the paths."""
        return self._evaluate(files.run, files.gold)

    def from_dicts(self, files: Files) -> Task:
        """Hand over the dicts."""
        return self._evaluate(*read_dicts(files))

    def from_tables(self, files: Files) -> Task:
        """Hand over a `Run` and a `Gold`: sorting, matching and measuring are left to do."""
        import findwell

        return self._evaluate(
            findwell.io.load_run(files.run).collect(), findwell.io.load_gold(files.gold)
        )

    def kernel(self, files: Files) -> Task:
        """Measure a relation that remembers nothing."""
        import numpy as np

        import findwell

        result = findwell.evaluate(files.run, files.gold, MEASURES)
        (relation,) = result.relations.values()

        def work() -> list[Any]:
            fresh = replace(relation)
            return [measure.values(fresh) for measure in result.measures]

        def numbers(arrays: list[Any]) -> Numbers:
            return dict(zip(MEASURES, (float(np.mean(array)) for array in arrays), strict=True))

        return Task(work, numbers)

    def _evaluate(self, run: Any, gold: Any) -> Task:  # noqa: ANN401
        import findwell

        return Task(lambda: findwell.evaluate(run, gold, MEASURES).values, self.named)


class FindwellOneCore(Findwell):
    """This library, kept to one core: reading ahead is a thread of its own."""

    name = "findwell, one core"
    environment: ClassVar = {"POLARS_MAX_THREADS": "1"}
    cores = 1


class PytrecEval(Tool):
    """trec_eval's C code behind Python dicts."""

    name = package = "pytrec-eval-terrier"
    module = "pytrec_eval"
    spelling = ("ndcg_cut_10", "map", "recip_rank", "P_10", "recall_10", "recall_100")
    script = """
import json, sys
from statistics import fmean
import pytrec_eval
run, gold, *names = sys.argv[1:]
with open(gold) as judgements, open(run) as lines:
    judged, retrieved = pytrec_eval.parse_qrel(judgements), pytrec_eval.parse_run(lines)
rows = pytrec_eval.RelevanceEvaluator(judged, set(names)).evaluate(retrieved).values()
print(json.dumps({name: fmean(row[name] for row in rows) for name in names}))
"""

    def from_files(self, files: Files) -> Task:
        """Parse with its own parsers."""
        import pytrec_eval

        def work() -> Numbers:
            with files.gold.open() as gold, files.run.open() as run:
                judged, retrieved = pytrec_eval.parse_qrel(gold), pytrec_eval.parse_run(run)
            return self._mean(self._evaluator(judged).evaluate(retrieved))

        return Task(work, self.named)

    def from_dicts(self, files: Files) -> Task:
        """Make the evaluator, evaluate, take the means."""
        run, gold = read_dicts(files)
        return Task(lambda: self._mean(self._evaluator(gold).evaluate(run)), self.named)

    def kernel(self, files: Files) -> Task:
        """Evaluate with an evaluator that has read the judgements."""
        run, gold = read_dicts(files)
        evaluator = self._evaluator(gold)
        return Task(lambda: evaluator.evaluate(run), lambda raw: self.named(self._mean(raw)))

    def _evaluator(self, gold: Mapping[str, Mapping[str, int]]) -> Any:  # noqa: ANN401
        import pytrec_eval

        return pytrec_eval.RelevanceEvaluator(gold, self.spelling)

    def _mean(self, by_query: Mapping[str, Mapping[str, float]]) -> Numbers:
        return {name: fmean(row[name] for row in by_query.values()) for name in self.spelling}


class IrMeasures(Tool):
    """Several tools behind one interface; these measures come from pytrec_eval."""

    name = package = "ir-measures"
    module = "ir_measures"
    spelling = ("nDCG@10", "AP", "RR", "P@10", "R@10", "R@100")
    script = """
import json, sys
import ir_measures
run, gold, *names = sys.argv[1:]
measures = [ir_measures.parse_measure(name) for name in names]
judged, retrieved = ir_measures.read_trec_qrels(gold), ir_measures.read_trec_run(run)
found = ir_measures.calc_aggregate(measures, judged, retrieved)
print(json.dumps({str(measure): value for measure, value in found.items()}))
"""

    def from_files(self, files: Files) -> Task:
        """Hand over its lazy readers."""
        import ir_measures

        return self._aggregate(
            lambda: ir_measures.read_trec_qrels(str(files.gold)),  # type: ignore[no-untyped-call]
            lambda: ir_measures.read_trec_run(str(files.run)),  # type: ignore[no-untyped-call]
        )

    def from_dicts(self, files: Files) -> Task:
        """Hand over the dicts."""
        run, gold = read_dicts(files)
        return self._aggregate(lambda: gold, lambda: run)

    def _aggregate(self, gold: Callable[[], object], run: Callable[[], object]) -> Task:
        import ir_measures

        measures = [ir_measures.parse_measure(name) for name in self.spelling]
        return Task(
            lambda: ir_measures.calc_aggregate(measures, gold(), run()),
            lambda raw: self.named({str(measure): value for measure, value in raw.items()}),
        )


class Ranx(Tool):
    """Numba kernels over typed dicts."""

    name = package = module = "ranx"
    spelling = ("ndcg@10", "map", "mrr", "precision@10", "recall@10", "recall@100")
    script = """
import json, sys
from ranx import Qrels, Run, evaluate
run, gold, *names = sys.argv[1:]
judged, retrieved = Qrels.from_file(gold, kind="trec"), Run.from_file(run, kind="trec")
found = evaluate(judged, retrieved, names)
print(json.dumps({name: float(value) for name, value in found.items()}))
"""

    def from_files(self, files: Files) -> Task:
        """Parse with its own parsers."""
        from ranx import Qrels, Run

        def work() -> Numbers:
            gold = Qrels.from_file(str(files.gold), kind="trec")
            return self._evaluate(gold, Run.from_file(str(files.run), kind="trec"))

        return Task(work, self.named)

    def from_dicts(self, files: Files) -> Task:
        """Make Qrels and Run, then evaluate."""
        from ranx import Qrels, Run

        run, gold = read_dicts(files)
        return Task(lambda: self._evaluate(Qrels(gold), Run(run)), self.named)

    def kernel(self, files: Files) -> Task:
        """Evaluate Qrels and Run, without writing the values of each query into the run."""
        from ranx import Qrels, Run

        run, gold = read_dicts(files)
        ready = Qrels(gold), Run(run)
        return Task(lambda: self._evaluate(*ready, save_results_in_run=False), self.named)

    def _evaluate(self, gold: object, run: object, **options: bool) -> Numbers:
        from ranx import evaluate

        numbers: Numbers = evaluate(gold, run, list(self.spelling), **options)
        return numbers


class TrecEval(Tool):
    """The reference program, in C; prints four decimals."""

    name = package = module = "trec_eval"
    spelling = PytrecEval.spelling
    tolerance = 1e-4

    def absent(self) -> str:
        """Look for the program."""
        return "" if program() else f"not on PATH, nor {PROGRAM} set"

    def version(self) -> str:
        """Ask the program."""
        asked = [str(program()), "--version"]
        said = subprocess.run(asked, capture_output=True, text=True, check=False)
        return (said.stdout or said.stderr).strip().removeprefix("trec_eval version ")

    def from_files(self, files: Files) -> Task:
        """Run the program."""
        command = self.command(files)

        def work() -> str:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        return Task(work, self.printed)

    def command(self, files: Files) -> list[str]:
        """Return the program with the measures that are asked for."""
        asked = ("ndcg_cut.10", "map", "recip_rank", "P.10", "recall.10,100")
        options = [part for name in asked for part in ("-m", name)]
        return [str(program()), *options, str(files.gold), str(files.run)]

    def printed(self, text: str) -> Numbers:
        """Read `measure all value`."""
        return self.named(_columns(text.splitlines()))


def _columns(lines: Iterable[str]) -> dict[str, str]:
    """Read `measure all value`."""
    rows = (line.split() for line in lines)
    return {row[0]: row[2] for row in rows if len(row) == 3}


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (Findwell(), FindwellOneCore(), TrecEval(), PytrecEval(), IrMeasures(), Ranx())
}
