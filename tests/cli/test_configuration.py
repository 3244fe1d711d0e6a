"""`findwell.toml`, `findwell init` and `findwell explain-config`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.cli.explain_config import VARIABLES
from tests.sample import jsonl

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

pytestmark = pytest.mark.usefixtures("files")


@pytest.fixture(autouse=True)
def _in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FINDWELL_CONFIG", raising=False)


SETTINGS = 'runs = ["run.trec"]\ngold = "qrels.txt"\nmeasures = ["P@5", "RR"]\n'


def test_score_without_arguments_is_the_evaluation_of_the_project(
    cli: Findwell, save: Save
) -> None:
    spelled_out = cli("score", "run.trec", "-g", "qrels.txt", "-m", "P@5", "-m", "RR")
    save("findwell.toml", SETTINGS)
    done = cli("score")
    assert (done.code, done.out) == (0, spelled_out.out)
    assert done.err.startswith("config: findwell.toml sets gold, measures, runs\n")
    assert done.err.endswith(spelled_out.err)


def test_the_command_line_comes_before_the_file(cli: Findwell, save: Save) -> None:
    expected = cli("score", "run.trec", "-g", "qrels.txt", "-m", "AP").out
    save("findwell.toml", SETTINGS)
    done = cli("score", "run.trec", "-m", "AP")
    assert done.out == expected
    assert "sets gold\n" in done.err
    assert cli("--config", "none", "score").code == 2


def test_a_table_is_for_one_command_alone(cli: Findwell, save: Save) -> None:
    save("findwell.toml", SETTINGS + '[score]\nmeasures = "recall@2"\nper-query = true\n')
    assert "recall@2" in cli("score").out
    assert "recall@2" not in cli("curve").out
    assert "RR" in cli("explain", "run.trec").out


def test_explain_and_power_work_in_a_project(cli: Findwell, save: Save) -> None:
    save("findwell.toml", SETTINGS)
    assert cli("explain").out == cli("explain", "run.trec").out
    planned = cli("power", "--sd", "0.3", "--difference", "0.02")
    assert (planned.code, "1,768 queries" in planned.out) == (0, True), planned.err
    assert "name a saved result" in cli("power").err
    save("findwell.toml", SETTINGS.replace('"run.trec"', '"run.trec", "other.trec"'))
    save("other.trec", Path("run.trec").read_text())
    several = cli("explain")
    assert (several.code, "--system run" in several.err) == (2, True)
    assert cli("explain", "--system", "other").out


def test_paths_are_those_beside_the_file(
    cli: Findwell, save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("pyproject.toml", "[tool.findwell]\n" + SETTINGS)
    expected = cli("score").out
    (tmp_path / "below" / "it").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "below" / "it")
    assert cli("score").out == expected
    (tmp_path / "below" / ".git").mkdir()  # another repository, which has settled nothing
    assert cli("score").code == 2
    monkeypatch.setenv("FINDWELL_CONFIG", str(tmp_path / "pyproject.toml"))
    assert cli("score").out == expected


def test_every_path_is_one_beside_the_file_and_a_table_of_spark_is_none(
    cli: Findwell, save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(
        "findwell.toml",
        'gold = "g.jsonl"\nlabels = "l.csv"\nanswers = "kept"\n'
        '[judge]\ntimeout = 7.5\nprompt = "own"\n',
    )
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    for command, setting, value in (
        ("labels", "anchor gold", "../g.jsonl"),
        ("judge", "card labels", "../l.csv"),
        ("tune", "--answers", "../kept"),
        ("judge", "card -J timeout", "7.5"),
        ("score", "-J prompt", "../own"),
    ):
        rows = cli("explain-config", command, "--format", "json").answer["settings"]
        assert {row["setting"]: row["value"] for row in rows}[setting] == value
    save(
        "findwell.toml",
        'runs = ["table:run"]\ngold = "delta:/lake/gold"\n[spark]\nwrite = "values"\n',
    )
    rows = cli("explain-config", "score", "--format", "json").answer["settings"]
    found = {row["setting"]: row["value"] for row in rows}
    assert (found["runs"], found["--gold"]) == (["table:run"], "delta:/lake/gold")
    assert found["-S write"] == "../values"


def test_a_saved_result_is_not_measured_against_the_gold_of_the_project(
    cli: Findwell, save: Save
) -> None:
    save("findwell.toml", SETTINGS + '[read]\nids = "lower"\n')
    assert cli("score", "--save", "monday").code == 0
    assert cli("score", "monday", "-m", "AP").code == 0


def test_records_of_other_queries_are_told_whose_gold_it_is(cli: Findwell, save: Save) -> None:
    save("findwell.toml", SETTINGS)
    save("own.jsonl", '{"query": "other", "retrieved": ["d1"], "gold": ["d1"]}\n')
    done = cli("score", "own.jsonl")
    assert done.code == 2
    assert "the gold is that of findwell.toml: `findwell --config none …`" in done.err
    assert cli("--config", "none", "score", "own.jsonl").code == 0
    without = cli("score", "own.jsonl", "-g", "qrels.txt")
    assert without.code == 2
    assert "config none" not in without.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            'golf = "x"',
            "findwell.toml: unknown option 'golf': no command has it\n  fix: did you mean gold",
        ),
        ("[score]\ngolf = 1", "findwell.toml: score: the command score has no option 'golf'"),
        ("[scores]\ngold = 1", "did you mean score"),
        ('rel = "high"', "findwell.toml: rel: 'high' is not a number"),
        ("gold = ['a', 'b']", "findwell.toml: gold: this must be one value"),
        ("gold = true", "findwell.toml: gold: True is not a text or a number"),
        ('[score]\nbounds = "yes"', "findwell.toml: score.bounds: 'yes' is not true or false"),
        ("gold = [", "findwell.toml: this is not TOML"),
        ('[read]\nmissing = "nought"', "findwell.toml: read.missing: 'nought' is not one of"),
        (
            "[judge]\nvots = 3",
            "findwell.toml: judge: the table [judge] has no setting 'vots'\n  fix: did",
        ),
        (
            "[score.judge]\nvots = 3",
            "the table [judge] has no setting 'vots'\n  fix: did you mean votes",
        ),
        ("votes = 3", "findwell.toml: 'votes' is a setting of the table [judge]"),
        ("[judge]\nvotes = 'many'", "findwell.toml: judge.votes: 'many' is not a whole number"),
        ("[judge]\nheaders = 'x'", "findwell.toml: judge.headers: this must be a table"),
        ("[judge]\nquotes = 'x'", "findwell.toml: judge.quotes: 'x' is not true or false"),
    ],
)
def test_mistakes_name_the_file_and_the_key(
    cli: Findwell, save: Save, content: str, message: str
) -> None:
    save("findwell.toml", content)
    done = cli("score", "run.trec", "-g", "qrels.txt")
    assert done.code == 2
    assert message in done.err
    assert cli("score", "--help").code == 0  # which must not depend on it


def test_files_of_other_tools_are_left_alone(cli: Findwell, save: Save) -> None:
    save("pyproject.toml", "not TOML at all [")
    assert cli("score", "run.trec", "-g", "qrels.txt").code == 0


def test_the_settings_are_explained(
    cli: Findwell, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDWELL_API_KEY", "secret-key")
    save("findwell.toml", SETTINGS + "[score]\nlevel = 0.9\n")
    shown = cli("explain-config").out
    assert "score.level" in shown
    assert "secret-key" not in shown
    told = cli("explain-config", "score", "--format", "json").answer
    rows = {row["setting"]: (row["value"], row["from"]) for row in told["settings"]}
    assert rows["--level"] == ("0.9", "findwell.toml")
    assert rows["--decide"] == ("interval", "default")
    assert {row["variable"] for row in told["environment"]} >= {"FINDWELL_API_KEY"}
    assert cli("explain-config", "nix").code == 2


def test_what_may_be_a_key_is_not_shown(cli: Findwell, save: Save) -> None:
    save(
        "findwell.toml",
        '[judge.headers]\napi-key = "hush"\n[monitor]\nstore = "s"\n'
        '[monitor.serve]\ntoken = "hush"\n[monitor.check]\nwebhook = "https://x.y/hush"\n',
    )
    for words in ((), ("score",), ("monitor",), ("--format", "json")):
        done = cli("explain-config", *words)
        assert done.code == 0, done.err
        assert "(set)" in done.out
        assert "hush" not in done.out
    assert "monitor.serve.token" in cli("explain-config").out


def test_every_variable_that_findwell_reads_is_explained() -> None:
    sources = Path(findwell.__file__).parent.rglob("*.py")
    read = {name for each in sources for name in re.findall(r"FINDWELL_[A-Z_]+", each.read_text())}
    assert read <= VARIABLES.keys()


def test_init_writes_what_score_then_does(cli: Findwell, save: Save, tmp_path: Path) -> None:
    save("labels/other.jsonl", jsonl([{"query": "elsewhere", "gold": ["d1"]}]))
    save("notes.txt", "nothing of this is a run\n")
    assert cli("init").code == 0
    settings = tomllib.loads((tmp_path / "findwell.toml").read_text())
    assert (settings["runs"], settings["gold"]) == (["run.trec"], "qrels.txt")
    assert '# gold = "labels/other.jsonl"' in (tmp_path / "findwell.toml").read_text()
    assert cli("score").code == 0
    again = cli("init")
    assert (again.code, "there is a configuration already" in again.err) == (2, True)
    assert cli("init", "--force").code == 0


def test_init_says_that_run_and_gold_do_not_fit(cli: Findwell, save: Save) -> None:
    assert "broken" not in cli("init").err
    save("qrels.txt", "Q-1 0 d1 1\nQ-2 0 d2 1\n")
    done = cli("init", "--force")
    assert done.code == 0
    assert "broken: run and gold share no query: the run has 'q1', the gold has 'Q-1'" in done.err


def test_init_says_where_nothing_is(cli: Findwell, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = cli("init", "empty")
    assert (done.code, "no run was found" in done.err) == (2, True)
    assert not (tmp_path / "empty" / "findwell.toml").exists()


def test_init_takes_records_of_both_and_texts_without_gold(cli: Findwell, save: Save) -> None:
    both = {"question": "why?", "retrieved": ["because"], "gold": ["because"]}
    save("both/samples.jsonl", jsonl([both]))
    assert tomllib.loads(cli("init", "both", "--dry-run").out)["runs"] == ["samples.jsonl"]
    texts = {"question": "why?", "retrieved_contexts": ["because it is so"]}
    save("judged/samples.jsonl", jsonl([texts]))
    settings = tomllib.loads(cli("init", "judged", "--dry-run").out)
    assert settings["judge"] == "local"
    assert "context_relevancy" in settings["measures"]


def test_init_measures_what_has_a_gold_and_each_file_once(
    cli: Findwell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside records that hold both, a run has no gold; a link to a folder doubles nothing."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    run = {"query": "q1", "retrieved": ["a"]}
    (project / "run.jsonl").write_text(jsonl([run]), encoding="utf-8")
    (project / "both.jsonl").write_text(jsonl([run | {"gold": ["a"]}]), encoding="utf-8")
    (project / "again").symlink_to(project)
    assert cli("init").code == 0
    assert tomllib.loads(Path("findwell.toml").read_text("utf-8"))["runs"] == ["both.jsonl"]
    assert cli("score").code == 0
    (project / "both.jsonl").rename(project / "x")
    (project / "gold.JSONL").write_text(jsonl([{"query": "q1", "gold": ["a"]}]), encoding="utf-8")
    assert cli("init", "--force").code == 0
    found = tomllib.loads(Path("findwell.toml").read_text("utf-8"))
    assert (found["runs"], found["gold"]) == (["run.jsonl"], "gold.JSONL")
