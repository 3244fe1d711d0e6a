"""A configuration file of somebody else sends, runs and writes nothing before it is trusted."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from findwell.cli import cli as findwell_group
from findwell.cli.command import settings_of
from findwell.cli.configuration import commands_of
from findwell.cli.trust import GUARDED_FLAGS, HARMLESS_TEXTS, MODELS, SERVERS, WRITTEN_FILES
from tests.client.server import Call, Reaction, as_json, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.client.server import Server
    from tests.conftest import Findwell, Save

pytestmark = pytest.mark.usefixtures("files")
KEY = "sk-of-the-user-0123456789"
SETTINGS = 'runs = ["run.trec"]\ngold = "qrels.txt"\nmeasures = ["P@5", "RR"]\n'
needs_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root may give files away"
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that somebody else has written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path.parent / f"{tmp_path.name}-cache"))
    return tmp_path


@pytest.fixture
def elsewhere() -> Iterator[Server]:
    """Serve as the attacker's server."""

    def answer(_: Call) -> Reaction:
        return as_json(["d1"])

    with serve(answer) as server:
        yield server


HOSTILE = {
    '[judge]\nbase_url = "URL"': "judge.base_url",
    '[score.judge]\nbase-url = "URL"': "score.judge.base-url",
    '[judge]\nmodel = "openai:m"': "judge.model",
    'judge = "openai:m"': "judge",
    'judge = "groq:m"': "judge",
    'judge = "judge.json"': "judge",  # which names a judge, and holds texts
    '[read]\nembedder = "openrouter:m"': "read.embedder",
    '[read]\nembedder = "sentence-transformers:evil/model"': "read.embedder",
    'measures = ["recall@5/semantic(model=openai:m)"]': "measures",
    'by = "semantic(model=openai:m)"': "by",
    '[judge.headers]\nX = "k"': "judge.headers",
    '[judge.extra_body]\napi_base = "URL"': "judge.extra_body",
    '[judge.options]\napi_base = "URL"': "judge.options",
    '[judge]\nprompt = "../prompt.toml"': "judge.prompt",
    '[judge]\nprompt = "prompt.toml"': "judge.prompt",
    '[score.judge]\nprices = "/tmp/prices.toml"': "score.judge.prices",
    'output = "../x.csv"': "output",
    'output = "/tmp/x.csv"': "output",
    'output = ".git/config"': "output",
    'output = "venv/lib/evil.pth"': "output",
    'output = "link/x.csv"': "output",
    '[score]\nsave = "../x"': "score.save",
    'junit = "../x.xml"': "junit",
    'gold = "../qrels.txt"': "gold",
    'gold = "//attacker/share"': "gold",
    '[spark]\nmaster = "spark://attacker:7077"': "spark.master",
    '[score.spark]\nwrite = "s3a://attacker/x"': "score.spark.write",
    '[spark]\ngateway_host = "attacker"': "spark.gateway_host",
    "[score]\nupdate-baseline = true": "score.update-baseline",
}


@pytest.mark.parametrize("content", HOSTILE)
def test_what_leads_elsewhere_needs_trust(
    content: str, cli: Findwell, save: Save, elsewhere: Server, project: Path
) -> None:
    (project / "link").symlink_to(project.parent)
    before = set(project.parent.iterdir())
    save("findwell.toml", content.replace("URL", elsewhere.url))
    given = [] if "gold" in content else ["-g", "qrels.txt"]
    done = cli("score", "run.trec", *given)
    assert done.code == 2
    assert (
        f"findwell.toml: {HOSTILE[content]}: this setting takes effect only in a file" in done.err
    )
    assert "`findwell trust`" in done.err
    assert done.out == ""
    assert not elsewhere.calls
    assert set(project.parent.iterdir()) == before
    assert cli("--config", "none", "score", "run.trec", "-g", "qrels.txt").code == 0


def test_a_retriever_runs_no_code_and_gets_no_secret(
    cli: Findwell, save: Save, elsewhere: Server, project: Path
) -> None:
    save("questions.jsonl", '{"query": "q1", "question": "why?"}\n')
    save("evil.py", "open('ran', 'w')\ndef search(question): return ['d1']\n")
    save("key.txt", "a file of the user\n")
    header = f'header = ["X=env:OPENAI_API_KEY", "Y=file:{project / "key.txt"}"]\n'
    for target in ("evil:search", f"{elsewhere.url}?q={{{{question}}}}"):
        save("findwell.toml", f'[run]\nretriever = "{target}"\n{header if "://" in target else ""}')
        done = cli("run", "--queries", "questions.jsonl")
        assert (done.code, "run.retriever" in done.err) == (2, True)
    named = cli("run", f"{elsewhere.url}?q={{{{question}}}}", "--queries", "questions.jsonl")
    assert (named.code, "run.header" in named.err) == (2, True)  # the address is the user's
    save("findwell.toml", 'runs = ["evil:search"]\n')
    made = cli("tune", "-g", "qrels.txt")
    assert (made.code, "findwell.toml: runs" in made.err) == (2, True)
    assert not (project / "ran").exists()
    assert not elsewhere.calls
    save("findwell.toml", f'[run]\nretriever = "{elsewhere.url}?q={{{{question}}}}"\n{header}')
    assert cli("trust").code == 0
    assert cli("run", "--queries", "questions.jsonl").code == 0  # the user has agreed
    assert elsewhere.calls[0].headers["x"] == KEY


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ('webhook = "https://attacker.example/x"', "monitor.check.webhook"),
        ("webhook-texts = true", "monitor.check.webhook-texts"),
        ("rebaseline = true", "monitor.check.rebaseline"),
        ('prometheus = "/tmp/x.prom"', "monitor.check.prometheus"),
    ],
)
def test_a_command_of_a_group_is_guarded_as_well(
    table: str, place: str, cli: Findwell, save: Save
) -> None:
    save("findwell.toml", f'[monitor]\nstore = "s"\n[monitor.check]\n{table}\n')
    done = cli("monitor", "check", "--alert", "empty>2%")
    assert (done.code, f"findwell.toml: {place}:" in done.err) == (2, True)
    done = cli("monitor", "--debug", "check", "--alert", "empty>2%")
    assert (done.code, f"findwell.toml: {place}:" in done.err) == (2, True)
    save("findwell.toml", '[monitor.ingest.intake]\nkeep = "1d"\n')
    done = cli("monitor", "ingest", "run.trec", "--store", "s")
    assert (done.code, "findwell.toml: monitor.ingest.intake.keep:" in done.err) == (2, True)


HARMLESS_FILE = SETTINGS + (
    'judge = "local:text"\nslice = "topic"\n'
    '[read]\nembedder = "minilm"\nmissing = "zero"\nids = "lower"\n'
    '[score]\nrequire = ["RR>=0"]\nsave = "results/v1.2"\njunit = "gates.xml"\nformat = "csv"\n'
)


def test_what_is_measured_needs_no_trust(cli: Findwell, save: Save, project: Path) -> None:
    save("findwell.toml", HARMLESS_FILE.replace('slice = "topic"\n', ""))
    done = cli("score", "--undecided", "pass")
    assert done.code == 0, done.err
    assert (project / "results" / "v1.2").is_dir()
    assert "no setting needs trust" in cli("trust").err


def test_only_what_takes_effect_needs_trust(cli: Findwell, save: Save) -> None:
    save("findwell.toml", SETTINGS + '[judge]\nmodel = "openai:m"\nbase_url = "http://x.y/v1"\n')
    assert cli("score").code == 2
    assert cli("score", "--judge", "local", "-J", "base_url=http://z/v1").code == 0
    assert cli("check").code == 0  # which asks no judge
    assert cli("explain-config").code == 0
    assert cli("explain-config", "score").code == 0
    save("findwell.toml", SETTINGS + 'judge = "openai:m"\n[score]\njudge = "local"\n')
    assert cli("score").code == 0
    assert cli("compare", "run.trec", "run.trec").code == 2


def test_trust_is_for_these_settings_of_this_file(
    cli: Findwell, save: Save, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.csv"
    content = f"{SETTINGS}[score]\noutput = {json.dumps(str(outside))}\n"
    save("findwell.toml", content)
    shown = cli("trust")
    assert (shown.code, str(outside) in shown.out) == (0, True)
    assert cli("score").code == 0
    assert outside.exists()
    save("findwell.toml", content.replace('"P@5", ', ""))  # what is measured may change
    assert cli("score").code == 0
    save("findwell.toml", content.replace("x.csv", "y.csv"))
    assert cli("score").code == 2
    save("findwell.toml", content)
    save("below/findwell.toml", content)
    assert cli("--config", "below/findwell.toml", "score").code == 2
    assert cli("score").code == 0
    assert cli("trust", "--revoke").code == 0
    assert cli("score").code == 2
    assert cli("--trust", "score").code == 0  # this time
    assert cli("score").code == 2
    assert cli("trust", "below").code == 0
    assert cli("trust", str(project / "nowhere")).code == 2


def test_the_list_of_trusted_files_is_the_users_alone(cli: Findwell, save: Save) -> None:
    save("findwell.toml", 'judge = "openai:m"\n')
    before = os.umask(0)
    try:
        assert cli("trust").code == 0
    finally:
        os.umask(before)
    listed = Path(os.environ["XDG_CONFIG_HOME"]) / "findwell" / "trusted.json"
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600
    assert stat.S_IMODE(listed.parent.stat().st_mode) == 0o700
    try:
        listed.chmod(0o666)
        done = cli("score", "run.trec", "-g", "qrels.txt")
        assert (done.code, "the list of trusted files cannot be used" in done.err) == (2, True)
    finally:
        listed.unlink()


def test_the_user_may_trust_by_the_environment(
    cli: Findwell, save: Save, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("findwell.toml", SETTINGS + '[judge]\nheaders = {X = "y"}\n')
    mark = cli("trust").err.rpartition("FINDWELL_TRUST=")[2].strip()
    assert cli("trust", "--revoke").code == 0
    refused = "takes effect only in a file that you trust"
    for value, trusted in (
        ("1", True),
        (mark, True),
        (str(project), True),
        (f"/nowhere{os.pathsep}{project / 'findwell.toml'}", True),
        ("findwell.toml", False),  # would be true of every project
        (".", False),
        ("0", False),
        ("", False),
    ):
        monkeypatch.setenv("FINDWELL_TRUST", value)
        assert (refused not in cli("score").err) is trusted, value
    monkeypatch.setenv("FINDWELL_TRUST", mark)
    save("findwell.toml", SETTINGS + '[judge]\nheaders = {X = "z"}\n')
    assert refused in cli("score").err


def test_a_table_of_pyproject_is_guarded_and_the_rest_may_change(cli: Findwell, save: Save) -> None:
    table = '[tool.findwell]\nruns = ["run.trec"]\ngold = "qrels.txt"\n'
    table += '[tool.findwell.read]\nembedder = "onnx:x"\n'
    save("pyproject.toml", table)
    assert "pyproject.toml: tool.findwell.read.embedder:" in cli("score").err
    assert cli("trust").code == 0
    assert cli("score").code == 0
    save("pyproject.toml", '[project]\nname = "x"\n' + table)
    assert cli("score").code == 0


@pytest.mark.parametrize("loose", ["findwell.toml", "."])
def test_a_file_that_every_user_can_change_is_refused(
    loose: str, cli: Findwell, save: Save, project: Path
) -> None:
    save("findwell.toml", SETTINGS)
    mode = stat.S_IMODE((project / loose).stat().st_mode)
    (project / loose).chmod(mode | 0o002)
    try:
        done = cli("score")
        assert done.code == 2
        assert "every user can" in done.err
        assert cli("trust").code == 0
        assert cli("score").code == 0
        save("findwell.toml", SETTINGS.replace("P@5", "AP"))
        assert cli("score").code == 2
        (project / ".").chmod(mode | stat.S_ISVTX | 0o700)
        assert cli("init", "--force").code == 0  # the user's own, wherever it is
        assert cli("score").code == 0
    finally:
        project.chmod(0o700)


@needs_root
def test_a_file_of_another_user_is_refused(cli: Findwell, save: Save, project: Path) -> None:
    path = save("findwell.toml", SETTINGS)
    os.chown(path, 4321, 4321)
    (project / "below").mkdir()
    os.chdir("below")
    done = cli("score")
    assert (done.code, "the file belongs to another user" in done.err) == (2, True)
    os.chdir("..")
    path.rename("theirs.toml")
    path.symlink_to("theirs.toml")
    assert cli("score").code == 2
    os.chown("theirs.toml", 0, 0)
    assert cli("score").code == 0
    os.chown(path, 4321, 4321, follow_symlinks=False)
    assert cli("score").code == 2


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_init_follows_no_link_out_of_the_folder(
    force: list[str], cli: Findwell, project: Path
) -> None:
    target = project.parent / f"{project.name}-profile"
    (project / "findwell.toml").symlink_to(target)
    done = cli("init", *force)
    assert (done.code, "this is a link" in done.err) == (2, True)
    assert not target.exists()


def test_the_lists_of_names_are_those_of_options() -> None:
    def commands(group: click.Group) -> Iterator[click.Command]:
        for command in commands_of(group, click.Context(group)).values():
            if isinstance(command, click.Group):
                yield from commands(command)
            else:
                yield command

    names = {each.name for command in commands(findwell_group) for each in command.params}
    names |= {
        name
        for command in commands(findwell_group)
        for each in settings_of(command)
        for name in each.fields
    }
    assert names >= HARMLESS_TEXTS | MODELS | SERVERS | GUARDED_FLAGS | WRITTEN_FILES
