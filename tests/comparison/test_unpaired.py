"""Two periods with different questions: what is refused, and how they are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import findwell
from findwell.core.errors import AlignError, OptionError
from findwell.statistics.unpaired import unpaired

if TYPE_CHECKING:
    from tests.conftest import Findwell

RNG = np.random.default_rng(6)


def period(name: str, count: int, hits: float) -> list[dict[str, object]]:
    """Return records of questions, of which a share is answered by the first document."""
    found = RNG.random(count) < hits
    return [
        {
            "query": f"{name}{at}",
            "question": f"What about {name} {at}?",
            "retrieved": ["gold", "x"] if hit else ["x", "y", "gold"],
            "gold": ["gold"],
            "source": f"{name}-source-{at // 2}",
            "topic": "odd" if at % 2 else "even",
        }
        for at, hit in enumerate(found)
    ]


OLD, NEW = period("oct", 120, 0.8), period("nov", 90, 0.5)


def test_unrelated_questions_are_not_paired() -> None:
    with pytest.raises(AlignError, match="share no query") as caught:
        findwell.compare({"old": OLD, "new": NEW}, measures="RR")
    assert "--unpaired" in caught.value.fix
    renamed = [record | {"query": other["query"]} for record, other in zip(NEW, OLD, strict=False)]
    with pytest.raises(AlignError, match="not the same question") as caught:
        findwell.compare({"old": OLD, "new": renamed}, measures="RR")
    assert "--unpaired" in caught.value.fix
    gold = {str(each["query"]): each["gold"] for each in (*OLD, *NEW)}
    runs = {
        name: {str(each["query"]): each["retrieved"] for each in records}
        for name, records in (("old", OLD), ("new", NEW))
    }
    with pytest.raises(AlignError, match="asked different queries") as caught:
        findwell.compare(runs, gold=gold, measures="RR")
    assert "--unpaired" in caught.value.fix
    found = findwell.compare(runs, gold=gold, measures="RR", unpaired=True)
    assert found["new", "RR"]["baseline_n"] == 120
    assert found["new", "RR"]["n"] == 90


def test_two_periods() -> None:
    found = findwell.compare(
        {"old": OLD, "new": NEW}, measures=["RR", "P@1"], unpaired=True, slices="topic"
    )
    row = found["new", "RR"]
    sides = [
        np.array([1.0 if each["retrieved"][0] == "gold" else 1 / 3 for each in records])  # type: ignore[index]
        for records in (OLD, NEW)
    ]
    assert found.unpaired
    assert found.cluster == "source"
    sources = tuple([each["source"] for each in records] for records in (OLD, NEW))
    expected = unpaired(*sides, clusters=sources)  # type: ignore[arg-type]
    assert row["difference"] == pytest.approx(sides[1].mean() - sides[0].mean())
    assert (row["low"], row["high"]) == pytest.approx(
        (expected.difference.low, expected.difference.high)
    )
    assert row["p"] == expected.test.p
    assert row["p"] < 0.01
    assert row["wins"] is None
    assert found.moved.height == 0
    assert set(found.slices["slice"]) == {"odd", "even"}
    assert found.slices["baseline_n"].to_list() == [60] * 4
    assert found.as_dict()["unpaired"] is True
    assert "worse" in repr(found)
    assert "n before" in found.to_markdown()
    assert found.to_latex()
    assert "forest" in repr(found.plot("forest"))
    gate = findwell.gate(found, "RR>=baseline-0.02")
    assert gate.outcome == "fail"
    small = findwell.compare({"old": OLD[:8], "new": NEW[:8]}, measures="RR", unpaired=True)
    assert findwell.gate(small, "RR>=baseline-0.02").outcome == "undecided"


def test_order_names_and_company_change_nothing() -> None:
    one = findwell.compare({"old": OLD, "new": NEW}, measures="RR", unpaired=True)["new", "RR"]
    shuffled = [NEW[at] for at in RNG.permutation(len(NEW))]
    other = findwell.compare({"old": OLD[::-1], "new": shuffled}, measures="RR", unpaired=True)
    assert other["new", "RR"]["difference"] == pytest.approx(one["difference"])
    assert other["new", "RR"]["low"] == pytest.approx(one["low"])
    three = findwell.compare({"old": OLD, "new": NEW, "third": OLD}, measures="RR", unpaired=True)
    assert three["new", "RR"]["p"] == one["p"]
    assert three["new", "RR"]["correction"] == "holm"
    assert three["third", "RR"]["difference"] == 0
    assert [each.kind for each in three.findings if each.run == "third"] == ["shared-query"]
    pairs = findwell.compare(
        {"old": OLD, "new": NEW, "third": NEW[:40]}, measures="RR", unpaired=True, all_pairs=True
    )
    assert pairs.comparisons.height == 3
    assert set(pairs.comparisons["correction"]) == {"holm"}


def test_what_needs_pairs_is_refused() -> None:
    with pytest.raises(OptionError, match="same queries"):
        findwell.compare({"old": OLD, "new": NEW}, measures="P@1", unpaired=True, test="mcnemar")
    welch = findwell.compare({"old": OLD, "new": NEW}, measures="P@1", unpaired=True, test="t")
    assert welch["new", "P@1"]["test"] == "welch"


def test_the_command(tmp_path: Path, cli: Findwell) -> None:
    paths = []
    for name, records in (("old", OLD), ("new", NEW)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in records))
        paths.append(path)
    refused = cli("compare", *paths, "-m", "RR")
    assert refused.code == 2
    assert "--unpaired" in refused.err
    table = cli("compare", *paths, "-m", "RR", "--unpaired")
    assert table.code == 0
    assert "210 queries, unpaired" in table.out
    assert "random divisions" in table.out
    shown = cli("compare", *paths, "-m", "RR", "--unpaired", "--format", "json").answer
    python = findwell.compare({"old": OLD, "new": NEW}, measures="RR", unpaired=True)
    assert shown["comparisons"] == python.as_dict()["comparisons"]
    gated = cli("compare", *paths, "-m", "RR", "--unpaired", "--no-regression", "RR")
    assert gated.code == 1


def test_a_result_without_skipped_queries_is_saved_and_compared(tmp_path: Path) -> None:
    gold = {str(each["query"]): each["gold"] for each in (*OLD, *NEW)}
    folders = []
    for name, records in (("old", OLD), ("new", NEW)):
        run = {str(each["query"]): each["retrieved"] for each in records}
        result = findwell.evaluate(
            {name: run}, gold, measures="RR", reading=findwell.Reading(missing="skip")
        )
        result.save(tmp_path / name)
        folders.append(str(tmp_path / name))
        assert findwell.load(tmp_path / name)["RR"] == result["RR"]
    found = findwell.compare(*folders, unpaired=True)
    assert found["new", "RR"]["n"] == len(NEW)


def test_the_report_of_two_periods(tmp_path: Path, cli: Findwell) -> None:
    page = findwell.report({"old": OLD, "new": NEW}, measures=["RR", "P@1"], unpaired=True)
    assert "random divisions of the queries" in page
    assert "over the different queries of the two" in page
    assert "that both have" not in page
    assert "oct0" in page
    assert "nov0" in page
    with pytest.raises(AlignError, match="query of several systems"):
        findwell.report({"old": OLD, "new": OLD}, measures="RR", unpaired=True)
    with pytest.raises(AlignError, match="share no query"):
        findwell.report({"old": OLD, "new": NEW}, measures="RR")
    for name, records in (("old", OLD), ("new", NEW)):
        result = findwell.evaluate({name: records}, measures=["RR"])
        result.save(tmp_path / name)
    target = tmp_path / "report.html"
    done = cli("report", tmp_path / "old", tmp_path / "new", "--unpaired", "-o", target)
    assert done.code == 0
    assert "worse" in target.read_text()
