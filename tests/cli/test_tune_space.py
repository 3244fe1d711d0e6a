"""`findwell tune --space`: several knobs of a fusion, and retrievers that are asked."""

import json
import shutil
from pathlib import Path

import pytest

import findwell
from tests.conftest import Findwell, Save

DEMO = Path(findwell.__file__).parent / "demo"
GOLD = DEMO / "questions.jsonl"
RUNS = (DEMO / "bm25.trec", DEMO / "minilm.trec")
APP = Path(__file__).parents[1] / "tuning" / "asked_bm25.py"
FUSIONS = '[knobs]\nengine = ["milvus-rrf", "qdrant-rrf"]\nweights = { step = 0.25 }\nk = [2, 60]\n'
KNOBS = "[knobs]\nk1 = [0.5, 1.5]\nb = [0.25, 0.75]\n\n[retrieval]\nk = 10\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    shutil.copy(APP, tmp_path / "asked_app.py")
    (tmp_path / "fusions.toml").write_text(FUSIONS)
    (tmp_path / "knobs.toml").write_text(KNOBS)
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    return tmp_path


def test_a_space_of_fusions_says_what_python_says(folder: Path, cli: Findwell) -> None:
    options = ("--gold", GOLD, "--space", folder / "fusions.toml", "-m", "nDCG@10")
    written = ("-o", folder / "fused.trec", "-o", folder / "whole.json")
    done = cli("tune", *RUNS, *options, "--format", "json", *written)
    assert done.code == 0, done.err
    told = json.loads((folder / "whole.json").read_text())["result"]
    found = findwell.tuning.tune(RUNS, GOLD, "nDCG@10", space=folder / "fusions.toml")
    expected = json.loads(json.dumps(found.as_dict()))
    assert told == {name: each for name, each in expected.items() if name != "findings"}
    assert told["chosen"]["engine"] == "qdrant-rrf"
    value = findwell.evaluate(folder / "fused.trec", GOLD, "nDCG@10")["nDCG@10"]
    assert value == pytest.approx(told["in_sample"], abs=1e-9)
    shown = cli("tune", *RUNS, *options, "-o", folder / "page.html")
    assert "by the best setting of a space" in shown.out
    assert "the best 8 settings in sample" in shown.out
    assert "<svg" not in (folder / "page.html").read_text()
    drawn = cli("tune", *RUNS, *options, "-o", folder / "chart.svg")
    assert drawn.code == 2
    assert "has no curve" in drawn.err


def test_a_retriever_is_asked_and_its_answers_are_kept_until_the_end(
    folder: Path, cli: Findwell
) -> None:
    command = ("tune", "asked_app:make_noted", "--gold", GOLD, "--space", "knobs.toml")
    planned = cli(*command, "--dry-run")
    assert planned.code == 0
    assert planned.out == ""
    assert not (folder / "notes").exists()
    done = cli(*command, "--format", "json", "-o", "page.html")
    assert done.code == 0, done.err
    told = done.answer
    asked = len((folder / "notes").read_text().splitlines())
    assert told["calls"]["asked"] == asked <= told["calls"]["planned"]
    said = f"up to {told['calls']['planned']} questions; settings × queries: 4 × "
    assert said in done.err
    assert said in planned.err
    assert not (folder / "make_noted.part").exists()
    assert "make_noted tuned by nDCG@10" in (folder / "page.html").read_text()
    table = cli(*command, "--answers", "kept")
    assert f"{asked} questions asked" in table.out
    again = cli(*command, "--answers", "kept")
    assert f"0 questions asked, {asked} answers kept from before" in again.out
    assert "note: " in again.err
    fresh = cli(*command, "--answers", "kept", "--fresh", "--format", "markdown")
    assert f"- {asked} questions asked;" in fresh.out
    assert len((folder / "notes").read_text().splitlines()) == 3 * asked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["asked_app:make_retriever"], "there is no space"),
        (["asked_app:nothing", "--space", "knobs.toml"], "unknown name in asked_app"),
        (["nothing:make", "--space", "knobs.toml"], "no module 'nothing'"),
        (["asked_app:make_retriever", "--space", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["asked_app:make_retriever", "--space", "fusions.toml"], "unknown knob 'engine'"),
        (["asked_app:make_retriever", "--space", "knobs.toml", "--seed", "1"], "--seed has no"),
        (["asked_app:make_retriever", "--space", "knobs.toml", "-o", "run.trec"], "a page"),
        (["asked_app:GOLD", "--space", "knobs.toml"], "asked_app:GOLD"),
        ([*map(str, RUNS), "--space", "knobs.toml"], "and recorded runs were given"),
        ([*map(str, RUNS), "--space", "fusions.toml", "--fresh"], "--fresh is for a retriever"),
        ([*map(str, RUNS), "--space", "fusions.toml", "--step", "0.1"], "step has no effect"),
        ([*map(str, RUNS)], "needs the search engine that fuses the runs"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left(
    arguments: list[str], message: str, folder: Path, cli: Findwell
) -> None:
    before = sorted(folder.iterdir())
    done = cli("tune", *arguments, "--gold", GOLD)
    assert done.code == 2, done
    assert message in done.err
    assert "Traceback" not in done.err
    assert [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"] == before


def test_a_file_whose_name_looks_like_a_function_is_a_file(folder: Path, cli: Findwell) -> None:
    shutil.copy(RUNS[0], folder / "old:run")
    done = cli("tune", "old:run", "--gold", GOLD, "--space", "fusions.toml")
    assert "you gave 1" in done.err


def test_the_space_may_be_wrong_in_a_line(folder: Path, cli: Findwell, save: Save) -> None:
    broken = save("broken.toml", "[knobs]\nb = [0.5\n")
    done = cli("tune", "asked_app:make_retriever", "--gold", GOLD, "--space", broken)
    assert done.code == 2
    assert "broken.toml: not valid TOML" in done.err
    assert folder.exists()
