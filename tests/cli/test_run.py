"""`findwell run`: real retrievers, some of them in processes that are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import findwell
from tests.conftest import Findwell

SOURCE = Path(findwell.__file__).parents[1]
COUNT = 200
APP = """
import time

class Search:
    def retrieve(self, question: str, k: int = 3):
        number = int(question.split()[-1])
        with open("asked.txt", "a") as file:
            file.write(f"{number}\\n")
        time.sleep(WAIT)
        if number % 10 == 0:
            raise ConnectionError(f"no answer to {number}")
        return [{"id": f"d{number}", "text": f"Text {number}", "score": 1.0}] + ["x"] * (k - 1)

retriever = Search()
WAIT = 0.0
def broken(question): return 1 / 0
class Nothing: pass
def make(size=1, name="x"): return lambda question: [f"{name}{number}" for number in range(size)]
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "search.py").write_text(APP)
    records = (
        {"query": f"q{n}", "question": f"question {n}", "gold": [f"d{n}"]}
        for n in range(1, COUNT + 1)
    )
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    return tmp_path


def ask(app: Path, cli: Findwell, *more: str, target: str = "shop.search:retriever") -> Any:
    return cli(
        *("run", target, "--queries", "gold.jsonl", "-k", "2", "-o", "run.jsonl"), *more, cwd=app
    )


def read(app: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (app / "run.jsonl").read_text().splitlines()]


def test_one_setting_of_a_retriever_by_name(app: Path, cli: Findwell) -> None:
    done = ask(app, cli, target="shop.search:make(size=2, name='y')")
    assert done.code == 0, done.err
    assert [each["doc"] for each in read(app)[0]["retrieved"]] == ["y0", "y1"]
    for target, message in (
        ("shop.search:make(2)", "the arguments are not names with values"),
        ("shop.search:make(size=two)", "the arguments are not names with values"),
        ("shop.search:make(size=2", "the arguments are not names with values"),
        ("shop.search:make(sizes=2)", "the retriever cannot be made: TypeError"),
    ):
        refused = ask(app, cli, target=target)
        assert refused.code == 2
        assert message in refused.err
        assert "fix:" in refused.err


@pytest.mark.parametrize("concurrency", ["1", "8"])
def test_a_retriever_that_raises_on_every_tenth_question(
    app: Path, cli: Findwell, concurrency: str
) -> None:
    done = ask(app, cli, "--concurrency", concurrency)
    assert done.code == 0, done.err
    records = read(app)
    assert [record["query"] for record in records] == [f"q{n}" for n in range(1, COUNT + 1)]
    failed = [record for record in records if record["retrieved"] is None]
    assert [record["query"] for record in failed] == [f"q{n}" for n in range(10, COUNT + 1, 10)]
    assert failed[0]["error"] == "ConnectionError: no answer to 10"
    assert "latency_ms" not in failed[0]
    assert records[0]["retrieved"][0] == {"doc": "d1", "score": 1.0, "text": "Text 1"}
    assert f"{COUNT // 10} queries failed in the retriever" in done.err
    assert not (app / "run.jsonl.part").exists()

    scored = cli(
        *("score", "run.jsonl", "--gold", "gold.jsonl", "-m", "success@1", "--format", "json"),
        *("--require", "errors<=10%", "--require", "p90<=30s", "--require", "throughput>=1/s"),
        cwd=app,
    )
    assert scored.code == 0, scored.err
    found = scored.answer
    assert found["summary"][0]["value"] == 0.9
    assert found["timing"][0]["error_rate"] == 0.1
    assert found["timing"][0]["concurrency"] == int(concurrency)
    assert "failed-query" in {each["kind"] for each in found["findings"]}
    strict = ("score", "run.jsonl", "--gold", "gold.jsonl", "--require", "errors<=1%")
    assert cli(*strict, cwd=app).code == 1


@pytest.mark.skipif(os.name == "nt", reason="nothing is killed like that there")
@pytest.mark.parametrize("concurrency", [pytest.param("1", marks=pytest.mark.slow), "4"])
def test_killed_and_started_again(app: Path, cli: Findwell, concurrency: str) -> None:
    source = app / "shop" / "search.py"
    source.write_text(APP.replace("WAIT = 0.0", "WAIT = 0.01"))
    command = [sys.executable, "-m", "findwell", "run", "shop.search:retriever", "-k", "2"]
    command += ["--queries", "gold.jsonl", "-o", "run.jsonl", "--concurrency", concurrency]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    part = app / "run.jsonl.part"
    for enough in (20, 80):
        with subprocess.Popen(
            command, cwd=app, env=environment, stderr=subprocess.DEVNULL
        ) as started:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                if part.exists() and part.read_bytes().count(b"\n") >= enough:
                    break
                time.sleep(0.005)
            os.kill(started.pid, signal.SIGKILL)
            assert started.wait() == -signal.SIGKILL
        assert not (app / "run.jsonl").exists()
    answered = sum('"error": null' in line for line in part.read_text().splitlines())
    before = len((app / "asked.txt").read_text().splitlines())
    done = ask(app, cli, "--concurrency", concurrency)
    assert done.code == 0, done.err
    asked = len((app / "asked.txt").read_text().splitlines()) - before
    assert asked == COUNT - answered  # what was answered is kept, what failed is asked again
    assert "kept from before" in done.err
    records = read(app)
    assert [record["query"] for record in records] == [f"q{n}" for n in range(1, COUNT + 1)]
    assert sum(record["retrieved"] is None for record in records) == COUNT // 10
    assert not part.exists()


def test_fresh_asks_everything(app: Path, cli: Findwell) -> None:
    assert ask(app, cli).code == 0
    (app / "run.jsonl.part").write_text("not of findwell\n")
    assert ask(app, cli).code == 2
    assert ask(app, cli, "--fresh").code == 0


def test_without_a_file_the_run_goes_to_standard_output(app: Path, cli: Findwell) -> None:
    done = cli("run", "shop.search:retriever", "--queries", "gold.jsonl", cwd=app)
    assert len([json.loads(line) for line in done.out.splitlines()]) == COUNT
    assert "latency p50" in done.err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("shop.search", "'shop.search' is not a retriever"),
        ("shop.serach:retriever", "no module 'shop.serach'"),
        ("shop.search:retreiver", "did you mean retriever?"),
        ("shop.search:Nothing", "is a class, not a retriever"),
        ("shop.search:WAIT", "a float is not a retriever"),
        ("shop.search:broken", "failed for 10 of 10 questions, the last time with ZeroDivision"),
    ],
)
def test_mistakes(app: Path, cli: Findwell, target: str, message: str) -> None:
    done = ask(app, cli, target=target)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not (app / "run.jsonl").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("import no_such_package", "No module named 'no_such_package'"),
        ("def search(q: return []", "SyntaxError"),
        ("import os\nKEY = os.environ['NO_SUCH_KEY']", "KeyError: 'NO_SUCH_KEY'"),
        ("from os import no_such_name", "cannot import name 'no_such_name'"),
        ("raise SystemExit('no key')", "SystemExit: no key"),
    ],
)
def test_a_module_that_cannot_be_imported_is_a_mistake_with_its_reason(
    app: Path, cli: Findwell, content: str, message: str
) -> None:
    (app / "broken_app.py").write_text(content + "\n")
    (app / "space.toml").write_text("[knobs]\nk = [1, 2]\n")
    line = 1 + content.count("\n")
    for command in (
        ("run", "broken_app:search", "--queries", "gold.jsonl"),
        ("tune", "broken_app:search", "--gold", "gold.jsonl", "--space", "space.toml"),
    ):
        done = cli(*command, cwd=app)
        assert done.code == 2
        assert "broken_app:search: the module 'broken_app' cannot be imported: " in done.err
        assert message in done.err
        assert f"{app / 'broken_app.py'}, line {line})" in done.err
        assert "fix: " in done.err
        assert "report it" not in done.err
        assert "Traceback" not in done.err
    assert "Traceback" in cli("--debug", *command, cwd=app).err


def test_options_of_addresses_need_an_address(app: Path, cli: Findwell) -> None:
    done = ask(app, cli, "--hits", "a.b")
    assert done.code == 2
    assert "--hit" in done.err
