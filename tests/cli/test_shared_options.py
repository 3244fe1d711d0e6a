"""What commands have in common: the options that say what is read, and what they are for."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING

import click
import pytest

import findwell
from findwell.cli import SETTINGS
from findwell.cli import cli as group
from findwell.cli.command import settings_of
from findwell.cli.options import DEFAULT_MEASURES, DIALECTS
from findwell.evaluation.plan import PlanOptions
from findwell.judges.client.client import RetryPolicy
from findwell.measures import DEFAULTS
from tests.budgets.figures import commands
from tests.sample import jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

# what is read, how, and how it is measured
READ_OPTIONS = ("--gold", "--by", "--corpus", "--read", "--dialect")
MEASURE_OPTIONS = ("--rel", "--measure", "--judge", "-J", "--dry-run")
READERS = ("score", "compare", "check", "explain", "curve", "power", "report", "tune")
MEASURING = ("score", "compare", "explain", "curve", "power", "report", "tune")
SHOWN_OPTIONS, SHOWN_LINES, ALL_OPTIONS = 25, 60, 350  # at most


def every_command() -> dict[str, click.Command]:
    """Return all commands by name, those inside others too."""
    with click.Context(group, **SETTINGS) as context:
        return dict(commands(group, context))


EVERY_COMMAND = every_command()


def options(name: str) -> dict[str, click.Option]:
    """Return the options of a command by their long name."""
    params = EVERY_COMMAND[name].params
    return {max(each.opts, key=len): each for each in params if isinstance(each, click.Option)}


@pytest.mark.parametrize("name", READERS)
def test_commands_read_with_the_same_options(name: str) -> None:
    mine, usual = options(name), options("score")
    for option in READ_OPTIONS:
        help_, expected = mine[option].help or "", usual[option].help or ""
        assert help_.startswith(expected), option  # that of explain goes on
    settings = ("run_format", "gold_format", "skip_bad", "ids", "embedder", "tokenizer")
    (read,) = (each for each in settings_of(EVERY_COMMAND[name]) if each.table == "read")
    assert set(settings) <= read.fields.keys()


@pytest.mark.parametrize("name", MEASURING)
def test_commands_measure_with_the_same_options(name: str) -> None:
    mine, usual = options(name), options("score")
    for option in MEASURE_OPTIONS:
        assert option == "--measure" or mine[option].help == usual[option].help, option


def test_every_command_that_takes_runs_is_looked_at() -> None:
    takers = {
        name
        for name, command in EVERY_COMMAND.items()
        if any(
            isinstance(each, click.Argument) and "RUN" in (each.metavar or "")
            for each in command.params
        )
        or "--gold" in options(name)
    }
    assert takers == {*READERS, "doctor", "fuse", "labels pool"}  # which measure nothing


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_option_is_a_sentence(name: str) -> None:
    texts = {option: each.help or "" for option, each in options(name).items()}
    for each in settings_of(EVERY_COMMAND[name]):
        texts |= {field: setting.help or "" for field, setting in each.fields.items()}
    for option, text in texts.items():
        assert text[:1].isupper(), (option, text)
        assert text.endswith("."), (option, text)


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_default_is_shown(name: str, cli: Findwell) -> None:
    entries = re.split(r"\n  (?=-)", cli(*name.split(), "--help-all").out)
    shown = [" ".join(entry.split()) for entry in entries]
    for option, each in options(name).items():
        default = each.to_info_dict()["default"]
        if default not in (None, False, (), []) and not each.is_flag:
            first = default[0] if isinstance(default, list | tuple) else default
            entry = next(text for text in shown if f"{option} " in text[:40])
            assert f"[default: {first}" in entry, entry


def test_help_fits_a_screen(cli: Findwell) -> None:
    with click.Context(group, **SETTINGS) as context:
        for name in ["", "labels", "judge", "monitor", *EVERY_COMMAND]:
            topics = (
                [f"--help-{each.topic}" for each in settings_of(EVERY_COMMAND[name])]
                if name in EVERY_COMMAND
                else []
            )
            for option in ("--help", *(["--help-all", *topics] if name in EVERY_COMMAND else [])):
                lines = cli(*name.split(), option).out.splitlines()
                assert max(map(len, lines)) <= 80, (name, option)
        for name, command in EVERY_COMMAND.items():
            text = command.get_help(click.Context(command, parent=context, info_name=name))
            assert len(text.splitlines()) <= SHOWN_LINES, name
            shown = re.findall(r"^  (?:-\w, )?-\S+", text, re.MULTILINE)
            assert len(shown) <= SHOWN_OPTIONS + 5, name


def test_the_help_of_score_is_short() -> None:
    command = EVERY_COMMAND["score"]
    with click.Context(group, **SETTINGS) as context:
        text = command.get_help(click.Context(command, parent=context, info_name="score"))
    assert len(re.findall(r"^  (?:-\w, )?-\S+", text, re.MULTILINE)) <= SHOWN_OPTIONS
    assert sum(len(options(name)) for name in EVERY_COMMAND) <= ALL_OPTIONS
    for topic in ("--help-all", "--help-input", "--help-judge", "--help-spark"):
        assert topic in text


def test_settings_are_the_fields_of_the_library() -> None:
    """Command line, configuration file and Python have one spelling."""
    tables = {each.table: each for each in settings_of(EVERY_COMMAND["score"])}
    judge = {each.name: each for each in fields(findwell.Judge)}
    assert tables["judge"].fields.keys() == judge.keys() - {"model", "key", "retry", "budget"}
    for name, setting in tables["judge"].fields.items():
        kind = str(judge[name].type).split(" ")[0].partition("[")[0]
        kinds = {"int": click.INT, "float": click.FLOAT, "bool": click.BOOL}
        if not isinstance(setting.type, click.Choice):
            assert setting.type is kinds.get(kind, click.STRING), name
        assert setting.is_mapping == (kind == "Mapping")
    read = tables["read"].fields.keys() - {"spool_limit", "run", "gold"}  # two are `fields`
    assert read <= PlanOptions.__optional_keys__
    flags = {"gold", "slices", "measures", "labels", "per_query"}
    assert {
        "by",
        "dialect",
        "rel",
        "queries",
        "corpus",
        "level",
        "bounds",
    } <= PlanOptions.__optional_keys__
    assert not flags & PlanOptions.__optional_keys__


def test_the_defaults_of_judges_are_those_of_the_library(cli: Findwell) -> None:
    known = {each.name: each.default for each in fields(findwell.Judge)}
    known |= {name: getattr(RetryPolicy(), name) for name in ("concurrency", "timeout")}
    shown = " ".join(cli("score", "--help-judge").out.split())
    for name in ("votes", "attempts", "call_tokens", "concurrency", "timeout"):
        text = shown.partition(f" {name}=")[2].partition("(default: ")[2]
        assert text.startswith(f"{known[name]:g})."), name


def test_what_help_lists_is_all_there_is() -> None:
    assert DIALECTS.split(", ") == list(findwell.plugins.known_dialects())
    assert ", ".join(DEFAULTS) == DEFAULT_MEASURES


RECORDS = [
    {"query": "q", "retrieved": ["A b c d. E f."], "gold": [{"text": "a b", "grade": 2}]},
    {"query": "r", "retrieved": ["g h"], "gold": [{"text": "g h i", "grade": 1}]},
    {"query": "s", "retrieved": ["j k"], "gold": [{"text": "j k", "grade": 2}]},
]


@pytest.fixture
def path(save: Save) -> Path:
    return save("samples.jsonl", jsonl(RECORDS) + "{broken\n")


@pytest.mark.parametrize("name", ["score", "compare", "explain", "curve", "power"])
def test_every_command_obeys_them(name: str, path: Path, cli: Findwell) -> None:
    files = [path, path] if name in ("compare", "power") else [path]
    asked = (name, *files, "--by", "containment(across=no)", "-m", "recall", "--format", "json")
    assert cli(*asked).code == 2  # what cannot be read
    done = cli(*asked, "--read", "skip_bad=yes", "--rel", "2")
    assert done.code == 0, done
    shown = done.answer
    assert "containment(across=no)" in done.out
    assert "recall(rel=2)" in done.out
    assert "could not be read" in done.out or "cannot be read" in done.out, shown


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--by", "rouge"), "by has no effect: there is no system to measure"),
        (("-m", "recall"), "measures has no effect"),
    ],
)
def test_power_without_systems_refuses_what_it_would_ignore(
    option: tuple[str, str], message: str, cli: Findwell
) -> None:
    done = cli("power", "--sd", "0.3", "--difference", "0.1", *option)
    assert done.code == 2
    assert message in done.err


def test_a_target_is_meant_at_the_level_of_the_curve(cli: Findwell, save: Save) -> None:
    run = save("run.json", '{"q": ["a", "b"]}')
    gold = save("gold.json", '{"q": {"a": 2, "b": 1}}')
    asked = ("curve", run, "--gold", gold, "-m", "recall", "--at", "1,2", "--format", "json")
    shown = cli(*asked, "--rel", "2", "--reach", "recall>=1").answer
    assert [(row["k"], row["value"]) for row in shown["curve"]] == [(1, 1.0), (2, 1.0)]
    assert shown["reach"][0]["k"] == 1


def test_a_gate_is_meant_at_the_level_of_the_comparison(cli: Findwell, save: Save) -> None:
    runs = [save("a.json", '{"q": ["a"], "r": ["b"]}'), save("b.json", '{"q": ["a"], "r": ["b"]}')]
    gold = save("gold.json", '{"q": {"a": 2}, "r": {"b": 2, "c": 1}}')
    asked = ("compare", *runs, "--gold", gold, "--rel", "2", "--no-regression", "recall@1")
    done = cli(*asked, "--format", "json")
    assert done.code == 0, done
    assert done.answer["requirements"][0]["measure"] == "recall(rel=2)@1"


@pytest.fixture
def saved(cli: Findwell, save: Save, tmp_path: Path) -> Path:
    run, gold = save("run.json", '{"q": ["a", "x", "b"]}'), save("gold.json", '{"q": ["a", "b"]}')
    done = cli("score", run, "--gold", gold, "-m", "recall@1", "--save", tmp_path / "result")
    assert done.code == 0, done
    return tmp_path / "result"


def test_a_saved_result_is_scored_again(saved: Path, cli: Findwell) -> None:
    def summary(*arguments: str) -> list[tuple[str, float]]:
        rows = cli("score", saved, "--format", "json", *arguments).answer["summary"]
        return [(row["measure"], row["value"]) for row in rows]

    assert summary() == [("recall@1", 0.5)]
    assert summary("-m", "recall@3", "-m", "P@2") == [("recall@3", 1.0), ("P@2", 0.5)]
    assert cli("score", saved, "--require", "recall@3>=0.9", "--decide", "value").code == 0
    shown = cli("curve", saved, "-m", "P", "--at", "1,3", "--format", "json").answer
    assert [row["value"] for row in shown["curve"]] == [1.0, 2 / 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gold", "gold.json"], "--gold has no effect"),
        (["--by", "rouge"], "--by has no effect"),
        (["--judge", "local"], "--judge has no effect"),
        (["other.trec"], "findwell compare, findwell report"),
    ],
)
@pytest.mark.parametrize("name", ["score", "curve"])
def test_of_a_saved_result_nothing_is_read_again(
    name: str, arguments: list[str], message: str, saved: Path, cli: Findwell
) -> None:
    done = cli(name, saved, *arguments)
    assert done.code == 2
    assert message in done.err


def test_a_report_of_runs_is_that_of_their_result(
    cli: Findwell, save: Save, saved: Path, tmp_path: Path
) -> None:
    run, gold = save("run.json", '{"q": ["a", "x", "b"]}'), save("gold.json", '{"q": ["a", "b"]}')
    pages = []
    for given in ([saved], [run, "--gold", gold, "-m", "recall@1"]):
        done = cli("report", *given, "-o", tmp_path / "page.html")
        assert done.code == 0, done
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))
    names = [re.findall(r'"(?:systems|query|values)":\[[^\]]*\]', page) for page in pages]
    assert names[0]
    assert names[0][1:] == names[1][1:]  # the system is called as its folder, or as its file
    done = cli("report", saved, "--gold", gold)
    assert done.code == 2
    assert "gold has no effect" in done.err
