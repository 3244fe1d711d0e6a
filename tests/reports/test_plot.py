"""`plot` of results and comparisons: the charts of reports, with what they are about."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.show.charts import standalone
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare
from tests.reports.conftest import DEMO

RUNS = (DEMO / "bm25.trec", DEMO / "minilm.trec")
GOLD = DEMO / "questions.jsonl"
ABOUT = re.compile(r"91 of 95 queries · 95% intervals · questions\.jsonl [0-9a-f]{8}")


@pytest.fixture(scope="module")
def result(demo_folder: Path) -> findwell.Result:
    return findwell.load(demo_folder)


@pytest.fixture(scope="module")
def comparison() -> findwell.Comparison:
    return findwell.compare(*RUNS, gold=GOLD, measures=["recall@5", "P@5"], slices="wording")


def words(svg: str) -> str:
    return " ".join(ET.fromstring(svg).itertext())


def test_a_result_has_the_charts_of_its_report(demo_folder: Path, result: findwell.Result) -> None:
    charts = prepare(lay_side_by_side([demo_folder]), cases=False).charts
    for name, chart in charts.items():
        assert result.plot(name) == chart
    assert result.plot() == next(iter(charts.values()))


def test_charts_carry_queries_level_and_data_set(
    result: findwell.Result, comparison: findwell.Comparison
) -> None:
    for chart in (result.plot("distribution recall@5"), result.plot("forest"), comparison.plot()):
        assert ABOUT.fullmatch(chart.about)
        shown = words(chart._repr_svg_())
        assert all(part in shown for part in chart.about.split(" · "))
    about = result.plot("causes").about  # which has no intervals
    assert re.fullmatch(r"91 of 95 queries · questions\.jsonl [0-9a-f]{8}", about)
    plain = result.with_options(level=None).plot("distribution recall@5")
    assert "interval" not in plain.about


def test_what_a_chart_is_about_fits_and_is_told_once(result: findwell.Result) -> None:
    chart = prepare(lay_side_by_side([result]), cases=False).charts["distribution recall@5"]
    alone = ET.fromstring(standalone(chart))
    page = ET.fromstring(chart.svg)
    assert int(alone.attrib["height"]) > int(page.attrib["height"])
    assert alone.attrib["viewBox"] == f"0 0 {alone.attrib['width']} {alone.attrib['height']}"
    assert "questions.jsonl" not in words(chart.svg)  # a page says it elsewhere
    lowest = max(float(each.attrib["y"]) for each in alone.iter() if "y" in each.attrib)
    assert lowest < int(alone.attrib["height"])


def test_the_first_run_of_a_result_may_be_another(result: findwell.Result) -> None:
    assert "Differences to minilm: bm25" in result.plot("forest", baseline="minilm").says
    only = result.plot("distribution recall@5", only=("wording", "paraphrase"))
    assert only.about.startswith("42 of 44 queries")


def test_a_comparison_has_its_differences_and_where_they_come_from(
    comparison: findwell.Comparison,
) -> None:
    assert comparison.plot().name == "forest"
    lead, other = comparison.plot("where minilm"), comparison.plot("where minilm P@5")
    assert lead.says.startswith("recall@5: minilm − bm25, by slice")
    assert other.says.startswith("P@5: minilm − bm25, by slice")
    slices = {row["slice"]: row for row in comparison.slices.filter(measure="P@5").to_dicts()}
    assert f"wording: paraphrase +{slices['paraphrase']['difference']:.3f}" in other.says
    assert other.about.startswith("95 queries · 95% intervals · questions.jsonl")


def test_of_all_pairs_the_forest_shows_those_with_the_baseline() -> None:
    gold = {f"q{number}": ["a"] for number in range(9)}
    runs = {
        name: {query: [name] * (number % 3) + ["a"] for number, query in enumerate(gold)}
        for name in ("one", "two", "three")
    }
    found = findwell.compare(runs, gold=gold, measures="RR", all_pairs=True)
    assert found.comparisons.height == 3
    assert found.plot().says.count(";") == 1
    assert found.plot().about == "9 queries · 95% intervals · data in memory"


def test_systems_on_different_data_are_told() -> None:
    run = {"q01": ["a"], "q02": ["b"]}
    one = findwell.evaluate(run, GOLD, "recall@5")
    other = findwell.evaluate(run, {"q01": ["a"], "q02": ["x"]}, "recall@5")
    about = findwell.compare({"one": one, "other": other}).plot().about
    assert about.endswith("2 data sets")


@pytest.mark.parametrize("name", ["forrest", "heat", ""])
def test_an_unknown_chart_names_those_that_are_there(name: str, result: findwell.Result) -> None:
    with pytest.raises(OptionError, match="unknown chart") as caught:
        result.plot(name)
    assert "causes" in caught.value.fix


def test_charts_are_saved_whole_as_svg_and_png(result: findwell.Result, tmp_path: Path) -> None:
    chart = result.plot("curve recall")
    chart.save(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == chart._repr_svg_()
    chart.save(str(tmp_path / "x.png"))
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(OptionError, match="not an image"):
        chart.save(tmp_path / "x.gif")


def test_a_chart_is_short_where_there_are_no_pictures(result: findwell.Result) -> None:
    assert repr(result.plot("curve recall")).startswith("<chart curve recall: recall at cutoffs")
    assert "<svg" not in repr(result.plot())


def test_explanations_of_several_queries_are_one_page() -> None:
    found = findwell.explain(RUNS[0], GOLD, "recall@5", worst=2)
    assert isinstance(found, list)
    html = found._repr_html_()
    assert all(each._repr_html_() in html for each in found)
    assert html.count("<table>") >= 4
