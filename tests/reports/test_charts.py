"""Charts: well-formed, readable without eyes, the same numbers as the tables."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import resvg_py
from hypothesis import given, settings
from hypothesis import strategies as st

import findwell
from findwell.core.errors import OptionError
from findwell.show.charts import Chart, png, standalone, write_image
from findwell.show.charts.svg import asset, colors, ticks
from findwell.show.comparison import numbers
from findwell.show.escape import xml
from findwell.show.grid import Grid
from findwell.show.page import page
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare
from tests import hostile

if TYPE_CHECKING:
    from tests.conftest import Findwell

SVG = "http://www.w3.org/2000/svg"
SVG_TO_BYTES = resvg_py.svg_to_bytes


@pytest.fixture(scope="module")
def figures(demo_folder: Path) -> dict[str, Chart]:
    return prepare(lay_side_by_side([demo_folder]), cases=False).charts


def test_every_chart_is_xml_that_says_what_it_shows(figures: dict[str, Chart]) -> None:
    assert {"forest", "causes", "curve recall", "distribution recall@5", "where minilm"} <= {
        *figures
    }
    for figure in figures.values():
        root = ET.fromstring(standalone(figure))
        assert root.tag == f"{{{SVG}}}svg"
        linked = "<a " in figure.svg
        assert f'role="{"group" if linked else "img"}"' in figure.svg
        assert root.get("role") == "img"  # an image leads nowhere
        assert not [each for each in root.iter() if each.tag == f"{{{SVG}}}a"]
        assert root.get("aria-label") == figure.says
        assert "var(" not in standalone(figure)
        assert figure.table.rows


def test_charts_of_hostile_names_are_xml_with_the_names_as_text() -> None:
    prepared = prepare(lay_side_by_side([hostile.result()]), cases=False)
    for figure in prepared.charts.values():
        root = ET.fromstring(figure.svg)
        assert not [each for each in root.iter() if each.tag.endswith("script")]
        assert not [key for each in root.iter() for key in each.attrib if key.startswith("on")]


def test_the_curve_shows_what_findwell_curve_says(
    demo_folder: Path, figures: dict[str, Chart]
) -> None:
    table = figures["curve recall"].table
    curve = findwell.statistics.curve(
        findwell.load(demo_folder), "recall", [int(k[1:]) for k in table.header[1:]]
    )
    for name, *cells in table.rows:
        mine = curve.filter(curve["run"] == name)["value"]
        assert cells == [f"{value:.3f}" for value in mine]


def test_the_forest_marks_what_is_shown(figures: dict[str, Chart]) -> None:
    assert "better" in figures["forest"].says
    assert figures["forest"].svg.count('class="good"') == 6  # six measures, all better
    assert "hollow" not in figures["forest"].svg


def test_an_unclear_difference_is_hollow() -> None:
    gold = {f"q{number}": ["a"] for number in range(4)}
    runs = {
        "old": {query: ["a", "b"] for query in gold},
        "new": {query: [] if query == "q0" else ["a"] for query in gold},
    }
    figure = prepare(lay_side_by_side([findwell.evaluate(runs, gold, "RR")]), cases=False).charts[
        "forest"
    ]

    assert "hollow" in figure.svg
    assert "unclear" in figure.says


@pytest.mark.parametrize("name", ["forest", "causes", "where minilm", "distribution recall@5"])
def test_images(name: str, figures: dict[str, Chart], tmp_path: Path) -> None:
    image = png(figures[name])
    assert image.startswith(b"\x89PNG\r\n")
    write_image(figures[name], str(tmp_path / "x.png"))
    assert (tmp_path / "x.png").read_bytes() == image
    write_image(figures[name], str(tmp_path / "x.svg"))
    assert ET.parse(tmp_path / "x.svg").getroot().get("aria-label")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.png", "x.svg"]
    with pytest.raises(OptionError, match="not an image"):
        write_image(figures[name], str(tmp_path / "x.gif"))


@pytest.fixture
def _no_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as on a machine that has no fonts."""
    monkeypatch.setattr(resvg_py, "svg_to_bytes", partial(SVG_TO_BYTES, skip_system_fonts=True))


@pytest.mark.usefixtures("_no_fonts")
def test_images_need_no_fonts_of_the_machine(figures: dict[str, Chart]) -> None:
    image = png(figures["forest"])
    mute = replace(figures["forest"], svg=re.sub("<text.*?</text>", "", figures["forest"].svg))
    assert png(mute) != image
    printed = {letter for figure in figures.values() for letter in figure.svg} - {*" \n"}
    assert {*"…·−"} <= printed
    drawn = {letter: letter_image(letter) for letter in {*printed, *"–←→×÷±≥≤αβκΣéßЖ"}}
    assert not {letter for letter in drawn if drawn[letter] in map(letter_image, "\u0378 ")}


def letter_image(letter: str) -> bytes:
    svg = f'<svg xmlns="{SVG}" class="chart" width="40" height="20"><text y="15">{xml(letter)}'
    return png(Chart("", "", "", f"{svg}</text></svg>", Grid("", [], [])))


@pytest.mark.usefixtures("_no_fonts")
def test_letters_that_no_font_has_are_named(cli: Findwell, tmp_path: Path) -> None:
    gold = {"q": ["a"], "r": ["b"]}
    runs = {"検索 α": {"q": ["a"]}, "поиск": {"q": ["b"], "r": ["b"]}}
    folder = findwell.evaluate(runs, gold, "RR").save(tmp_path / "saved")
    for name, noted in (("x.png", True), ("x.svg", False)):
        done = cli("report", folder, "--plot", tmp_path / name)
        assert (done.code, "no font here has letters such as 検," in done.err) == (0, noted)


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_colours_differ_from_what_is_behind_them(name: str) -> None:
    theme = colors(name)
    for system in range(8):
        assert contrast(theme[f"c{system}"], theme["surface"]) >= 3
    for verdict in ("good", "bad"):
        assert contrast(theme[verdict], theme["surface"]) >= 3
        assert theme[verdict] not in {theme[f"c{system}"] for system in range(8)}
    assert contrast(theme["muted"], theme["surface"]) >= 4.5
    named = set(re.findall(r"var\(--([a-z0-9-]+)\)", asset("chart.css")))
    assert named <= theme.keys()


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
@settings(deadline=None)
def test_ticks_lie_inside_and_are_few(low: float, size: float) -> None:
    found = ticks(low, low + size)
    assert len(found) <= 6
    assert found == sorted(found)
    slack = 1e-6 * (abs(low) + size)
    assert all(low - slack <= tick <= low + size + slack for tick in found)


@given(st.text())
@settings(deadline=None)
def test_text_is_only_text(content: str) -> None:
    root = ET.fromstring(f'<a b="{xml(content)}">{xml(content)}</a>')
    assert len(root) == 0
    assert root.text in (None, root.get("b"))


def test_measures_without_a_value_and_beyond_one_are_drawn() -> None:
    gold = {"q1": [], "q2": ["a"]}
    result = findwell.evaluate({"q1": ["a"], "q2": ["b"]}, gold, ["recall", "retrieved", "DCG@5"])
    panel = lay_side_by_side([result])
    assert np.isnan(panel.pairing.table).any()
    for figure in prepare(panel).charts.values():
        assert ET.fromstring(figure.svg).tag.endswith("svg")


def test_systems_share_one_scale_of_counts() -> None:
    short, long = ({f"q{n}": ["d"] for n in range(size)} for size in (10, 40))
    gold = {f"q{n}": ["d"] for n in range(40)}
    results = [findwell.evaluate({"a": run}, gold, ["recall"]) for run in (short, long)]
    panel = lay_side_by_side([results[0], findwell.evaluate({"b": long}, gold, ["recall"])])
    root = ET.fromstring(prepare(panel, cases=False).charts["distribution recall"].svg)
    heights = {
        each.find(f"{{{SVG}}}title").text: float(each.get("height"))  # type: ignore[union-attr, arg-type]
        for each in root.iter(f"{{{SVG}}}rect")
        if "bar" in (each.get("class") or "")
    }
    assert heights == {
        "10 queries from 0.95 to 1.00": 10.0,
        "30 queries from 0.00 to 0.05": 30.0,
        "40 queries from 0.95 to 1.00": 40.0,
    }
    axis = [each.text for each in root.iter(f"{{{SVG}}}text") if each.text in {"0", "40"}]
    assert axis.count("40") == 2


def test_slices_of_one_system_are_a_list_with_the_small_ones_folded() -> None:
    gold = [
        {"query": f"q{i}", "gold": ["d"], "topic": "few" if i < 4 else "odd" if i % 2 else "even"}
        for i in range(40)
    ]
    run = {f"q{i}": ["x" if i % 2 else "d"] for i in range(40)}
    prepared = prepare(lay_side_by_side([findwell.evaluate(run, gold, ["recall"])]), cases=False)
    (figure,) = prepared.drawn["where"]
    assert [row[0] for row in figure.table.rows] == ["topic: odd", "topic: few", "topic: even"]
    assert [row[1] for row in figure.table.rows] == ["0.000", "0.500", "1.000"]
    assert [row.few for row in figure.rows] == [False, True, False]
    assert "topic: few" not in figure.says
    assert "<summary>1 more slice</summary>" in page(prepared)


def test_the_ladder_marks_what_cannot_be_distinguished_from_the_best() -> None:
    gold = {f"q{n}": ["d"] for n in range(60)}
    hits = {"base": 5, "low": 10, "good": 50, "best": 52}
    runs = {
        name: {query: ["d" if at < most else "x"] for at, query in enumerate(gold)}
        for name, most in hits.items()
    }
    result = findwell.evaluate(runs, gold, ["recall@1", "RR"])
    prepared = prepare(lay_side_by_side([result]), cases=False)
    figures = prepared.drawn["comparison"]
    assert [each.name for each in figures] == ["ladder", "ladder RR"]
    assert [row[0] for row in figures[0].table.rows] == ["best", "good", "low", "base"]
    assert [row.marked for row in figures[0].rows] == [True, True, False, False]
    found = findwell.compare(result, all_pairs=True).comparisons
    unclear = found.filter(measure="recall@1", verdict="unclear").select("baseline", "system")
    assert ("good", "best") in unclear.rows()
    assert "Shaded: not distinguishable from the best" in figures[0].svg
    html = page(prepared)
    assert html.count('<tr role="row" class="near">') == 4


def test_of_many_unclear_slices_the_most_telling_are_shown() -> None:
    about = [{"query": f"q{n}", "part": f"p{n % 20}"} for n in range(400)]
    gold = {each["query"]: ["a"] for each in about}
    rng = np.random.default_rng(5)
    old, new = ({query: ["a" if rng.random() < 0.5 else "b"] for query in gold} for _ in "12")
    result = findwell.evaluate({"old": old, "new": new}, gold, ["RR"], queries=about)
    (chart,) = prepare(lay_side_by_side([result]), cases=False).drawn["where"]
    at = chart.table.header.index("p (BH)")
    p = [float(cells[at]) for cells in chart.table.rows]
    shown = [each for each, row in zip(p, chart.rows, strict=True) if not row.few]
    folded = [each for each, row in zip(p, chart.rows, strict=True) if row.few]
    assert (len(shown), len(folded)) == (12, 8)
    assert max(shown) <= min(folded)
    assert "8 more slices in the table" in chart.svg


def test_causes_count_the_misses(demo_folder: Path, figures: dict[str, Chart]) -> None:
    table = figures["causes"].table
    rows = findwell.load(demo_folder).misses().group_by("run", "cause").len().rows()
    shown = {
        (row[0], cause): int(count)
        for row in table.rows
        for cause, count in zip(table.header[1:-1], row[1:-1], strict=True)
        if count != "0"
    }
    assert shown == {(run, cause): count for run, cause, count in rows}
    assert "#show=missed&cause=below+the+cutoff&of=minilm" in figures["causes"].rows[1].links


def test_a_curve_is_drawn_to_scale_with_its_intervals(figures: dict[str, Chart]) -> None:
    root = ET.fromstring(figures["curve recall"].svg)
    at = {
        each.text: float(each.get("x") or 0)
        for each in root.iter(f"{{{SVG}}}text")
        if each.text in {"1", "2", "10", "20"} and each.get("text-anchor") == "middle"
    }
    assert at["2"] - at["1"] == pytest.approx(at["20"] - at["10"], abs=0.2)
    bands = [each for each in root.iter(f"{{{SVG}}}polygon") if "band" in each.get("class", "")]
    assert len(bands) == 2


def test_where_the_other_system_is_better(demo_folder: Path, figures: dict[str, Chart]) -> None:
    table = figures["where minilm"].table
    found = findwell.compare(
        findwell.load(demo_folder), measures="recall@5", slices=["topic", "wording"], moved=0
    )
    expected = {
        f"{row['column']}: {row['slice']}": numbers(row)[2] for row in found.slices.to_dicts()
    }
    at = table.header.index("difference")
    assert expected.items() <= {row[0]: row[at] for row in table.rows}.items()
    for verdict in ("better", "unclear"):
        mine = [row[at] for row in table.rows if row[-1] == verdict and row[at] != "–"]
        gains = [float(each.replace("−", "-")) for each in mine]
        assert gains == sorted(gains, reverse=True)
    assert "wording: paraphrase" in [row[0] for row in table.rows if row[-1] == "better"]
    assert "#in+wording=paraphrase&show=all" in figures["where minilm"].rows[0].links


def test_every_slice_that_is_worse_is_drawn_and_comes_first() -> None:
    """Twenty large slices gain with the smallest p there is; three small ones lose."""
    sizes = {f"gain {number}": 30 for number in range(20)} | dict.fromkeys(("x", "y", "z"), 12)
    names = [(part, number) for part, size in sizes.items() for number in range(size)]
    about = [{"query": f"{part} {number}", "part": part} for part, number in names]
    gold = {each["query"]: ["a"] for each in about}
    old = {each["query"]: ["a"] if each["part"] in "xyz" else ["b"] for each in about}
    new = {each["query"]: ["b"] if each["part"] in "xyz" else ["a"] for each in about}
    result = findwell.evaluate({"old": old, "new": new}, gold, ["RR"], queries=about)
    panel = lay_side_by_side([result])
    (chart,) = prepare(panel, cases=False).drawn["where"]
    rows = chart.table.rows
    assert [row[0] for row in rows[:3]] == ["part: x", "part: y", "part: z"]
    assert [row[-1] for row in rows[:4]] == ["worse", "worse", "worse", "better"]
    assert len(rows) == 23
    assert not any(row.few for row in chart.rows)  # all are clear
    assert chart.svg.index("Where it got worse") < chart.svg.index("Where it got better")
    html = page(prepare(panel, cases=False))
    assert "worse in part x (−1.000), part y (−1.000), part z (−1.000)</li>" in html
    says = repr(findwell.compare(result, slices="part").plot("where new"))
    assert says.index("part: z −1.000, worse") < says.index("part: gain 0")
