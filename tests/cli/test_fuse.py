"""`findwell fuse` on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.loop.tuning import ENGINES, fuse

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

BM25 = "q1 Q0 a 1 9.5 bm25\nq1 Q0 b 2 4.25 bm25\nq2 Q0 c 1 3.0 bm25\n"
DENSE = "q1 Q0 b 1 0.75 dense\nq1 Q0 d 2 0.5 dense\nq2 Q0 c 1 0.25 dense\nq2 Q0 e 2 0.25 dense\n"


@pytest.fixture
def runs(save: Save) -> tuple[Path, Path]:
    return save("bm25.trec", BM25), save("dense.trec", DENSE)


@pytest.mark.parametrize("name", [*ENGINES])
def test_the_command_and_the_function_are_one(
    name: str, cli: Findwell, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    output = tmp_path / "fused.trec"
    done = cli("fuse", *runs, "--engine", name, "-o", output)
    assert (done.code, done.out) == (0, "")
    expected = fuse([*runs], name).rows
    again = findwell.io.load_run(output).collect().rows
    assert again["doc"].to_list() == expected["doc"].to_list()
    # equal scores are one unit in the last place apart, so that readers keep the order
    assert again["score"].to_list() == pytest.approx(expected["score"].to_list(), rel=1e-14)
    measured = findwell.evaluate(output, {"q1": ["b"], "q2": ["e"]}, ["RR", "nDCG"])
    assert measured.values == findwell.evaluate(fuse([*runs], name), {"q1": ["b"], "q2": ["e"]},
                                             ["RR", "nDCG"]).values  # fmt: skip


def test_options(cli: Findwell, runs: tuple[Path, Path]) -> None:
    done = cli(
        *("fuse", *runs, "--engine", "elasticsearch-linear", "--weights", "0.75,0.25"),
        *("-E", "normaliser=minmax,l2_norm", "-E", "window=1", "--top", "1"),
        *("--format", "jsonl"),
    )
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"query": "q1", "retrieved": [{"doc": "a", "score": 0.75}]},
        {"query": "q2", "retrieved": [{"doc": "c", "score": 0.75}]},
    ]
    assert "note: 3 documents are below the window of 1 and not read" in done.err
    done = cli("fuse", *runs, "--engine", "course-rrf", "-E", "k=0")
    assert done.out.splitlines()[0] == "q1 Q0 b 1 1.5 fused"


def test_the_name_of_the_file_says_the_format(
    cli: Findwell, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    output = tmp_path / "fused.jsonl"
    assert cli("fuse", *runs, "--engine", "qdrant-rrf", "-o", output).code == 0
    assert json.loads(output.read_text().splitlines()[0])["query"] == "q1"
    again = findwell.io.load_run(output).collect().rows
    assert again["doc"].to_list() == fuse([*runs], "qdrant-rrf").rows["doc"].to_list()


def test_what_was_found_is_printed(cli: Findwell, runs: tuple[Path, Path]) -> None:
    done = cli("fuse", *runs, "--engine", "chroma-rrf")
    assert done.out.splitlines()[0].startswith("q1 Q0 b 1 ")
    assert "3 documents are not in every list and dropped by chroma-rrf" in done.err
    done = cli("fuse", *runs, "--engine", "opensearch-min_max-arithmetic")
    assert "equal scores" in done.err


def test_ids_with_blanks(cli: Findwell, save: Save) -> None:
    runs = [save(f"{name}.json", '{"q": ["my doc", "b"]}') for name in "ab"]
    done = cli("fuse", *runs, "--engine", "course-rrf")
    assert (done.code, done.out) == (2, "")
    assert "the doc id 'my doc' is blank or has blanks in it" in done.err
    assert "-o FILE.jsonl" in done.err
    done = cli("fuse", *runs, "--engine", "course-rrf", "--format", "jsonl")
    assert json.loads(done.out)["retrieved"][0]["doc"] == "my doc"


def test_the_table_of_formulas_fits_a_terminal(cli: Findwell) -> None:
    done = cli("fuse", "--list")
    assert done.code == 0
    for name, engine in ENGINES.known().items():
        assert f" {name} " in done.out
        assert engine.formula in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_formulas_as_json(cli: Findwell) -> None:
    shown = cli("fuse", "--list", "--format", "json", "-o", "-").answer["engines"]
    assert [each["name"] for each in shown] == list(ENGINES)
    for each in shown:
        engine = ENGINES[each["name"]]
        assert each["defaults"] == engine.setting(2).as_dict()
        assert each["not_reproduced"] == engine.exact
        assert each["snippet"]


@pytest.mark.parametrize("name", [*ENGINES])
def test_all_about_one_engine(name: str, cli: Findwell) -> None:
    done = cli("fuse", "--list", "--engine", name)
    engine = ENGINES[name]
    assert done.out.startswith(f"{name}: {engine.formula}\n")
    text = " ".join(done.out.split())
    for note in engine.notes:
        assert note[1:] in text
    assert engine.exact in text
    assert engine.source in text
    about = done.out.partition("\n\n")[0]
    assert max(map(len, about.splitlines())) <= 80
    (one,) = cli("fuse", "--list", "--engine", name, "--format", "json").answer["engines"]
    assert one["name"] == name
    assert done.out.endswith(one["snippet"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--engine is missing"),
        (["--engine", "qdrnt-rrf"], "did you mean qdrant-rrf"),
        (["--engine", "qdrant-rrf", "--weights", "1"], "1 weights for 2 runs"),
        (["--engine", "qdrant-rrf", "--weights", "1,x"], "not a list of numbers such as 0.7,0.3"),
        (["--engine", "milvus-weighted", "--weights", "1,2"], "give numbers from 0 to 1"),
        (["--engine", "qdrant-dbsf", "-E", "k=3"], "qdrant-dbsf has no k to set"),
        (["--engine", "qdrant-rrf", "--format", "json"], "a run is written as trec or jsonl"),
        (["--list", "--engine", "qdrant-rrf"], "--list shows formulas and takes no RUN"),
    ],
)
def test_mistakes(
    arguments: list[str], message: str, cli: Findwell, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    output = tmp_path / "fused.trec"
    done = cli("fuse", *runs, *arguments, "-o", output)
    assert done.code == 2
    assert message in done.err
    assert not output.exists()


def test_more_mistakes(cli: Findwell, runs: tuple[Path, Path], save: Save) -> None:
    done = cli("fuse", "--list", "--format", "trec")
    assert "the formulas are written as table or json, not as trec" in done.err
    done = cli("fuse", runs[0], "--engine", "course-rrf")
    assert (done.code, "there is one run" in done.err) == (2, True)
    done = cli("fuse", runs[0], save("none.trec", "zz Q0 a 1 1 x\n"), "--engine", "course-rrf")
    assert done.code == 2
    assert "bm25.trec and " in done.err
    assert "none.trec: the runs share no query" in done.err
    done = cli("fuse", *runs, runs[0], "--engine", "redis-linear")
    assert (done.code, "redis-linear fuses 2 runs, not 3" in done.err) == (2, True)
    done = cli("fuse", *runs, save("list.json", '{"q1": ["a"]}'), "--engine", "qdrant-dbsf")
    assert (done.code, "list.json: it carries no scores" in done.err) == (2, True)
    done = cli("fuse", runs[0], "missing.trec", "--engine", "course-rrf")
    assert (done.code, "missing.trec" in done.err) == (2, True)
