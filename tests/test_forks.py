"""Processes that are forked: an error instead of a wait for ever, where polars lost its threads."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from findwell.core.namespaces import NAMESPACES, names_of
from findwell.io.native import SWITCH, kernel
from tests.members import quick

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

HEAD = """
import multiprocessing, sys
import findwell, polars as pl

RUN, GOLD = {"q": ["a", "b"]}, {"q": ["b"]}

def evaluated(answers):
    try:
        answers.put(findwell.evaluate(RUN, GOLD, ["RR"])["RR"])
    except findwell.FindwellError as error:
        answers.put(f"{type(error).__name__}: {error}")

def in_a_process(how):
    context = multiprocessing.get_context(how)
    answers = context.SimpleQueue()
    process = context.Process(target=evaluated, args=(answers,))
    process.start()
    answer = answers.get()
    process.join()
    return answer

if __name__ == "__main__":
"""


def run(code: str, folder: Path) -> str:
    """Run a script; one that waits for ever fails."""
    script = folder / "script.py"
    script.write_text(HEAD + "".join(f"    {line}\n" for line in code.splitlines()))
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


EVALUATION = "findwell.evaluate(RUN, GOLD, ['RR'])"
READ = f"{EVALUATION}.per_query"  # a frame, for which polars starts its threads
USES = {
    "a result that is read": READ,
    "texts": "findwell.evaluate(RUN, GOLD, ['RR'], by='rouge', corpus={'a': 'one', 'b': 'two'})",
    "records": "findwell.evaluate([{'query': 'q', 'retrieved': ['a'], 'gold': ['a']}])",
    "polars alone": "pl.DataFrame({'a': [2, 1]}).sort('a')",
}


@pytest.mark.parametrize("use", quick(USES, next(iter(USES))))
def test_forked_after_use(use: str, tmp_path: Path) -> None:
    # threads that still hold a lock of the allocator would hang any child, whatever findwell does
    rest = "import time; time.sleep(0.3)"
    out = run(f"{USES[use]}\n{rest}\nprint(in_a_process('fork'))", tmp_path)
    assert out.startswith("ForkError: this process was forked after findwell or polars was used")
    assert "fix: start processes by spawn or forkserver" in out


@pytest.mark.skipif(kernel() is None, reason="the native kernel is not built")
@pytest.mark.parametrize("use", quick([EVALUATION, "findwell.io.load_gold(GOLD)"], EVALUATION))
@pytest.mark.parametrize("switch", ["", "0"])
def test_forked_after_the_kernel_was_used(use: str, switch: str, tmp_path: Path) -> None:
    """It needs no threads of polars: the child starts its own; without it, they are missed."""
    code = (
        "import os, time\n"
        f"os.environ[{SWITCH!r}] = {switch!r}\n"
        f"{use}\n"
        "time.sleep(0.3)\n"
        "print(str(in_a_process('fork'))[:9], flush=True)\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        f"        print({READ}.height, flush=True)\n"
        "    except findwell.FindwellError as error:\n"
        "        print(type(error).__name__, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()"
    )
    expected = ["ForkError", "ForkError"] if switch else ["0.5", "1"]
    assert run(code, tmp_path).split() == expected


@pytest.mark.slow
def test_other_ways_to_start_after_use(tmp_path: Path) -> None:
    code = f"{READ}\nprint(in_a_process('spawn'), in_a_process('forkserver'))"
    assert run(code, tmp_path).split() == ["0.5", "0.5"]


@pytest.mark.parametrize(
    "before",
    quick(
        [
            "",
            "findwell.evaluate, findwell.compare, findwell.report, findwell.load",  # not called
            "findwell.plugins.parse_measure('nDCG@10'), findwell.plugins.known_measures()",
            "findwell.plugins.find_matcher('rouge')",
            "pl.DataFrame({'a': [1]})",  # needs no threads
        ],
        "",
    ),
)
def test_forked_before_use(before: str, tmp_path: Path) -> None:
    code = f"{before}\nprint(in_a_process('fork'))\nprint({EVALUATION}['RR'])"
    assert run(code, tmp_path).split() == ["0.5", "0.5"]


@pytest.mark.slow
def test_forked_again(tmp_path: Path) -> None:
    """The child of a child has no threads either; nor has one whose parent began after a fork."""
    code = (
        "import os, sys\n"
        "if os.fork() == 0:\n"
        f"    {READ}\n"
        "    print(in_a_process('fork')[:9], flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        f"{READ}\n"
        "if os.fork() == 0:\n"
        "    print(in_a_process('fork')[:9], flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()"
    )
    assert run(code, tmp_path).split() == ["ForkError"] * 2


LATE = """
import multiprocessing, sys, time
import polars as pl

def evaluated():
    import findwell
    try:
        print(findwell.evaluate({{"q": ["a", "b"]}}, {{"q": ["b"]}}, ["RR"])["RR"], flush=True)
    except findwell.FindwellError as error:
        print(type(error).__name__, flush=True)

if __name__ == "__main__":
    {}
    time.sleep(0.3)  # a thread of polars that holds a lock would hang any child
    for how in ("fork", "spawn"):
        process = multiprocessing.get_context(how).Process(target=evaluated)
        process.start()
        process.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use", "found"),
    [("pl.DataFrame({'a': [2, 1]}).sort('a')", ["ForkError", "0.5"]), ("pass", ["0.5", "0.5"])],
)
def test_findwell_is_imported_after_the_fork(use: str, found: list[str], tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(LATE.format(use))
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == found


# with what each public function that works on data is called
CALLS = {
    "retrieve": "len, {'q': 'a question'}",
    "labels.agree": "RUN, RUN",
    "labels.anchor": "GOLD, {'b': 'text'}",
    "io.check": "RUN, GOLD",
    "compare": "result, result",
    "judges.compare": "[{'question': '?', 'chunk': 'a', 'label': 1}], ['local', len]",
    "statistics.curve": "result",
    "labels.drift": "GOLD, {'b': 'text'}",
    "evaluate": "RUN, GOLD",
    "explain": "result",
    "tuning.fuse": "[RUN, RUN], 'course-rrf'",
    "gate": "result, 'RR>=0.1'",
    "judges.judge": "[{'question': '?', 'contexts': ['a']}]",
    "judges.card": "[{'question': '?', 'chunk': 'a', 'label': 1}]",
    "judges.check": "'openai:m'",
    "judges.teach": "[{'question': '?', 'chunk': 'a', 'label': 1}], judge='local:text'",
    "load": "folder",
    "io.doctor": "RUN, GOLD",
    "io.load_corpus": "{'b': 'text'}",
    "io.load_gold": "GOLD",
    "io.load_run": "RUN",
    "labels.pool": "[RUN], folder",
    "statistics.power": "result, result",
    "labels.questions": "{'b': 'text'}, judge='openai:some-model'",
    "labels.ppi": "RUN, GOLD",
    "report": "result",
    "statistics.smallest_k": "result, 'recall', 0.9",
    "tuning.convex_combination": "[RUN, RUN], [0.5, 0.5]",
    "tuning.reciprocal_rank_fusion": "[RUN, RUN]",
    "tuning.tune_rrf_k": "[RUN, RUN], GOLD, 'RR'",
    "tuning.tune_weight": "[RUN, RUN], GOLD, 'RR'",
    "tuning.tune": "[RUN, RUN], GOLD, engine='course-rrf'",
}
# these only name and register
NAMES = {
    "judges.find_embedder",
    "judges.find_judge",
    "plugins.find_matcher",
    "plugins.known_dialects",
    "plugins.known_measures",
    "plugins.parse_measure",
    "plugins.register_aspect",
    "plugins.register_dialect",
    "plugins.register_engine",
    "plugins.register_format",
    "plugins.register_matcher",
    "plugins.register_measure",
    "plugins.register_shape",
    "plugins.register_signal",
    "plugins.register_source",
    "statistics.choose",
    "tuning.find_engine",
}
RESULT = [
    "result.summary",
    "result.per_query",
    "result.values",
    "result.by('query')",
    "result.where('query', 'q')",
    "result.only('run')",
    "result.save(folder)",
    "result._repr_html_()",
    "repr(result)",
]


def test_every_public_function_says_so(tmp_path: Path) -> None:
    calls = [f"findwell.{name}({arguments})" for name, arguments in CALLS.items()] + RESULT
    functions = {
        f"{namespace}.{name}".removeprefix("findwell.")
        for namespace in NAMESPACES
        for name in names_of(namespace)
        if namespace != "findwell.spark"  # which needs pyspark
        if inspect.isfunction(getattr(importlib.import_module(namespace), name))
    }
    assert functions == CALLS.keys() | NAMES
    code = (
        "import json, os\n"
        "result = findwell.evaluate(RUN, GOLD, ['RR'])\n"
        f"folder = findwell.evaluate(RUN, GOLD).save({str(tmp_path / 'saved')!r})\n"
        "found = {}\n"
        "if os.fork() == 0:\n"
        f"    for call in {calls!r}:\n"
        "        try:\n"
        "            found[call] = str(eval(call))\n"
        "        except BaseException as error:\n"
        "            found[call] = type(error).__name__\n"
        "    print(json.dumps(found), flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()"
    )
    found: dict[str, Any] = json.loads(run(code, tmp_path))
    assert found == dict.fromkeys(calls, "ForkError")


def test_where_threads_have_no_names_the_use_of_findwell_counts(tmp_path: Path) -> None:
    """Other systems than Linux do not list them."""
    code = (
        "from findwell.core import forks\n"
        "forks.PROCESSES = '/nowhere'\n"
        "print(in_a_process('fork'))\n"
        f"{EVALUATION}\n"
        "print(in_a_process('fork'))"
    )
    first, second, *_ = run(code, tmp_path).splitlines()
    assert first == "0.5"
    assert second.startswith("ForkError")
