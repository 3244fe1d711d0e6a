"""With `--format json` every command prints one object, which a published schema describes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

import findwell
from findwell.cli import cli as commands
from findwell.cli.envelope import LONGEST_ANSWER
from findwell.cli.schema import commands_with_json, schema_of
from tests.client.server import serve
from tests.labels.author import corpus, well
from tests.lazy import lazy
from tests.net.commands import COMMANDS, GOLD, folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Findwell, Outcome

KEYS = "ok command version result verdicts findings error next files".split()  # noqa: SIM905
CLICK = click.Context(commands, info_name="findwell")
KNOWN = dict(commands_with_json(CLICK))
BOTH = f"bm25.trec minilm.trec {GOLD}"
QUESTIONS = "questions --corpus corpus --judge openai:m -n 4"
# what the net does not record: name of the command → arguments
MORE = {
    "score": [
        f"score {BOTH}",
        "score bm25.trec --gold questions.jsonl -m recall@5 --require recall@5>=0.99",
        f"score {BOTH} -m recall@5 --misses --per-query --save saved",
        f"score {BOTH} -m nope",
        "score judged.jsonl --judge local:text -m context_recall --explain-verdicts",
        "score judged.jsonl --judge openai:m -m context_recall --dry-run",
    ],
    "explain": [f"explain bm25.trec --gold questions.jsonl -q {query}" for query in ("q75", "q40")],
    "compare": [
        f"compare {BOTH}",
        f"compare {BOTH} -m RR --no-regression RR",
        f"compare {BOTH} -m recall@5 --slice topic",
        f"compare {BOTH} -m RR --unpaired",
    ],
    "check": [f"check {BOTH} --strict", "check missing.trec"],
    "doctor": ["doctor", f"doctor {BOTH}", "doctor missing.trec"],
    "fuse": ["fuse --list", "fuse --list --engine qdrant-rrf"],
    "tune": [
        f"tune {BOTH} --engine weaviate-relative --current 0.5 --slice wording",
        "tune tuned_app:make --gold questions.jsonl --space space.toml -m recall@5",
    ],
    "power": [
        "power --sd 0.3 --difference 0.02",
        "power --changed 0.2 --difference 0.05",
        f"power {BOTH} -m recall@5 --difference 0.02",
    ],
    "curve": [f"curve {BOTH} --reach recall>=0.9"],
    "measures": ["measures --relations"],
    "explain-config": ["explain-config", "explain-config score"],
    "labels drift": ["labels drift new --corpus documents.jsonl"],
    "labels agree": [
        "labels agree bm25.trec minilm.trec --details",
        "labels agree questions.jsonl questions.jsonl",
    ],
    "labels pool": ["labels pool bm25.trec -o sampled --for values --budget 60"],
    "judge card": [
        "judge card labels.jsonl --judge local:text --save none",
        "judge card labels.jsonl --judge local:text --judge local:text(relevance=0.9) --save none",
    ],
    "judge check": ["judge check openai:m -J ask=matrix -J concurrency=4"],
    "questions": [f"{QUESTIONS} -o written.jsonl", f"{QUESTIONS} --dry-run"],
    "monitor show": [
        "monitor show --store store",
        "monitor show --store store -s empty --every day",
        "monitor show --list",
    ],
    "monitor check": ["monitor check --store store --alert empty>2% --until 2026-05-20"],
}
CALLS = [
    {
        "question": f"Question {n}?",
        "retrieved": [] if n % 2 else [f"d{n}", "d0"],
        "time": f"2026-05-{1 + n // 24:02}T{n % 24:02}:30:00Z",
    }
    for n in range(240)
]


@pytest.fixture(autouse=True, scope="module")
def _files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Work where the files of the demo are, with a model on loopback."""
    root = tmp_path_factory.mktemp("envelope")
    with folder(root), serve(well) as server, pytest.MonkeyPatch.context() as patch:
        for name, text in corpus().items():
            (root / "corpus").mkdir(exist_ok=True)
            (root / "corpus" / f"{name}.md").write_text(text)
        labels = ({"question": f"q{n}?", "chunk": f"c{n} q{n}", "label": n % 2} for n in range(12))
        (root / "labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
        (root / "calls.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CALLS))
        (root / "space.toml").write_text("[knobs]\nsize = [1, 2]\n")
        (root / "tuned_app.py").write_text(
            "def make(size):\n    return lambda question: ['a'] * size\n"
        )
        patch.setenv("FINDWELL_BASE_URL", server.url)
        patch.setenv("FINDWELL_API_KEY", "sk-not-to-be-seen-0123456789")
        patch.setenv("FINDWELL_CACHE_DIR", str(root / "cache"))
        yield


@pytest.fixture
def ask(cli: Findwell, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command line with `--format json`."""
    given = Path("cache").resolve().parent

    def call(arguments: str, *more: str) -> Outcome:
        monkeypatch.setenv("FINDWELL_CACHE_DIR", str(given / "cache"))
        if "store" in arguments and not Path("store").exists():
            assert cli("monitor", "ingest", "calls.jsonl", "--store", "store").code == 0
        if arguments.startswith("labels drift") and not Path("new").exists():
            assert cli(*COMMANDS["anchor"].split()).code == 0
        return cli(*shlex.split(arguments), "--format", "json", *more)

    return call


def examples(name: str) -> list[str]:
    recorded = [each for each in COMMANDS.values() if f"{each} ".startswith(f"{name} ")]
    return [each for each in recorded if "jsonl" not in each.split()] + MORE.get(name, [])


def closed(schema: Any) -> Any:
    """Let a schema refuse fields that it does not describe."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inside = {key: closed(each) for key, each in schema.items()}
    if "properties" in schema and "required" in schema:
        inside.setdefault("additionalProperties", False)
    return inside


@pytest.mark.parametrize("name", KNOWN)
def test_every_command_prints_what_its_schema_says(name: str, ask: Any, cli: Findwell) -> None:
    schema = schema_of(name, KNOWN[name])
    lazy("jsonschema").Draft202012Validator.check_schema(schema)
    validator = lazy("jsonschema").Draft202012Validator(closed(schema))
    assert examples(name), f"no example of {name}"
    writes = name in ("labels pool", "labels anchor", "labels drift", "questions")
    for arguments in examples(name):
        whole = Path("whole.json")
        whole.unlink(missing_ok=True)
        done = ask(arguments, *([] if writes else ["-o", str(whole)]))
        shown = json.loads(done.out)
        assert list(shown) == KEYS
        assert len(done.out.encode()) <= LONGEST_ANSWER, arguments
        assert shown["ok"] == (done.code == 0) == (shown["error"] is None), done.err
        assert (shown["command"], shown["version"]) == (name, findwell.__version__)
        validator.validate(shown)
        if shown["result"] is not None and not writes:
            assert str(whole) in shown["files"]
            found = json.loads(whole.read_text())
            validator.validate(found)
            assert "omitted" not in found["result"]
            assert found["verdicts"][: len(shown["verdicts"])] == shown["verdicts"]
    assert json.loads(cli("schema", *name.split()).out) == schema


def test_settings_of_a_file_are_described_too(cli: Findwell, tmp_path: Path) -> None:
    settings = tmp_path / "findwell.toml"
    settings.write_text('runs = ["bm25.trec", "minilm.trec"]\nlevel = 0.9\n')
    schema = schema_of("explain-config", KNOWN["explain-config"])
    for more in ((), ("score",)):
        done = cli("--config", str(settings), "explain-config", *more, "--format", "json")
        lazy("jsonschema").Draft202012Validator(closed(schema)).validate(json.loads(done.out))
        assert done.answer["file"] == str(settings)


def test_more_is_printed_only_where_it_was_asked_for(ask: Any) -> None:
    long = json.loads(ask(f"score {BOTH} -m RR --per-query").out)
    assert len(long["result"]["per_query"]) == 2 * 95
    agreed = "labels agree bm25.trec minilm.trec"
    short, whole, printed = ask(agreed), ask(f"{agreed} --details"), ask(agreed, "-o", "-")
    assert len(short.out.encode()) <= LONGEST_ANSWER < len(whole.out.encode())
    assert printed.answer == whole.answer
    rows = short.answer["details"]
    assert rows == whole.answer["details"][: len(rows)]
    assert short.answer["omitted"] == {"details": len(whole.answer["details"]) - len(rows)}
    (step,) = json.loads(short.out)["next"]
    assert step["command"] == f"findwell {agreed} --format json -o answer.json"


def test_failures_are_envelopes_too(ask: Any, cli: Findwell) -> None:
    missing = ask("score missing.trec --gold questions.jsonl")
    assert missing.code == 2
    assert missing.err.startswith("findwell: missing.trec: no such file")
    error = json.loads(missing.out)["error"]
    assert (error["kind"], error["where"]) == ("InputError", "missing.trec")
    assert (error["message"], error["fix"][:12]) == ("no such file", "did you mean")
    usage = ask("compare bm25.trec --no-such-option")
    assert (usage.code, json.loads(usage.out)["error"]["kind"]) == (2, "OptionError")
    assert json.loads(usage.out)["next"][0]["command"] == "findwell compare --help-all"
    assert cli("score", "missing.trec").out == ""  # only where JSON was asked for
    gated = json.loads(ask("score bm25.trec --gold questions.jsonl --require recall@5>=0.99").out)
    assert gated["error"]["kind"] == "GateFailed"
    assert "recall@5>=0.99" in gated["error"]["message"]
    assert gated["result"]["summary"]


def test_a_verdict_has_one_layout(ask: Any) -> None:
    asked = (
        f"compare {BOTH} -m recall@5 --no-regression recall@5",
        "score bm25.trec --gold questions.jsonl -m recall@5 --require recall@5>=0.6",
        f"tune {BOTH} --engine elasticsearch-rrf",
        "monitor check --store store --alert empty>2% --until 2026-05-20",
    )
    compared, gated, tuned, checked = (json.loads(ask(each).out)["verdicts"] for each in asked)
    assert len({tuple(row) for rows in (compared, gated, tuned, checked) for row in rows}) == 1
    assert [(row["verdict"], row["outcome"]) for row in compared] == [
        ("better", None),
        ("better", "pass"),
    ]
    assert compared[0]["low"] > 0
    assert gated[0]["against"] == 0.6
    assert [row["baseline"] for row in tuned] == ["bm25", "minilm"]
    assert checked[0]["verdict"] == "worse"
    assert checked[0]["outcome"] in ("alarm", "open")  # it may have been raised before


def test_what_is_suggested_works(ask: Any, cli: Findwell) -> None:
    asked = (
        f"score {BOTH} -m recall@5",
        f"compare {BOTH} -m recall@5 -m P@5",
        "compare minilm.trec bm25.trec --gold questions.jsonl -m recall@5",
        "score bm25.trec --gold questions.jsonl --require recall@5>=0.65",
        "check untidy.trec --gold untidy.qrels",
        f"doctor {BOTH}",
    )
    tried = set()
    for each in asked:
        shown = json.loads(ask(each).out)
        commands = [step["command"] for step in shown["next"]]
        commands += [found["command"] for found in shown["findings"] if found["command"]]
        for command in commands:
            first, name, *rest = shlex.split(command)
            done = cli(name, *rest)
            assert (first, done.code in (0, 3)) == ("findwell", True), (command, done.err)
            tried.add(name)
    assert tried >= {"check", "compare", "power", "explain"}


def test_a_suggestion_holds_no_secret(ask: Any) -> None:
    judge = "--judge openai:m -J headers.X-Team=sk-not-to-be-seen --dry-run"
    done = ask(f"score judged.jsonl -m context_recall {judge}")
    assert (done.code, "sk-not" in done.out) == (0, False)
    failed = ask(f"score judged.jsonl -m nope {judge}")
    assert (failed.code, "sk-not" in failed.out) == (2, False)


def test_the_list_of_schemas(cli: Findwell) -> None:
    assert cli("schema").out.split("\n")[:-1] == [*KNOWN]
    done = cli("schema", "scroe")
    assert (done.code, "did you mean score" in done.err) == (2, True)
