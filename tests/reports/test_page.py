"""The report as a file: whole, safe, small enough, for one system and for many."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import zlib
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import findwell
from findwell.core.errors import OptionError
from findwell.judges.limits import judge_lines
from findwell.show import prepare as preparing
from findwell.show.comparison import headlines
from findwell.show.escape import script_json
from findwell.show.page import page
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare
from tests import hostile

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

GOLD = {f"q{number}": ["a", "b"] for number in range(6)}
RUN = {query: ["a", "x", "b"] for query in GOLD}


class Reader(HTMLParser):
    """Reads a page as browsers do: what is an element, and what is its script."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._inside: list[str] | None = None
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = self.scripts if tag == "script" else self.styles
            self._inside.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self._inside[-1] += data


def data_of(content: str) -> dict[str, Any]:
    """Return what a page gives to its script, with the queries unpacked."""
    found: dict[str, Any] = json.loads(Reader(content).scripts[0])
    return found | unpacked(found)


def unpacked(data: dict[str, Any]) -> dict[str, Any]:
    """Return the queries in full of a page by their place, and their texts, as its script does."""
    packed = base64.b64decode(data.get("packed") or "")
    lines = zlib.decompress(packed).decode("utf-8").splitlines() if packed else []
    read = [json.loads(line) for line in lines]
    cases = {each["at"]: each["case"] for each in read}
    return {"cases": cases, "texts": [text for each in read for text in each["texts"]]}


def report(*results: object) -> str:
    return page(prepare(lay_side_by_side(results)))


def test_what_a_test_cannot_show_is_said() -> None:
    few, more = {"q": ["a"], "r": ["x"], "s": ["c"]}, {"q": ["a"], "r": ["b"], "s": ["c"]}
    gold = {"q": ["a"], "r": ["b"], "s": ["c"]}
    content = report(*(findwell.evaluate({"run": run}, gold, ["recall"]) for run in (few, more)))
    assert "1 query differs, so that p cannot fall below 1: it takes 6 for p ≤ 0.05" in content


def test_one_file_that_needs_nothing_and_runs_only_its_own_script(demo_folder: Path) -> None:
    content = report(demo_folder)
    read = Reader(content)
    for tag, attributes in read.elements:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base")
        assert "src" not in attributes
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    rules = next(
        attributes["content"] or ""
        for tag, attributes in read.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert rules.startswith("default-src 'none'; ")
    assert "unsafe" not in rules
    for kind, content_of in (("script", read.scripts[1]), ("style", read.styles[0])):
        digest = base64.b64encode(hashlib.sha256(content_of.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in rules
    assert len(read.scripts) == 2
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", content)


def test_hostile_texts_stay_texts(hostile_folder: Path) -> None:
    content = report(hostile_folder)
    read = Reader(content)
    assert len(read.scripts) == 2
    assert not [tag for tag, _ in read.elements if tag in ("img", "b", "i")]
    for _, attributes in read.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert "javascript:" not in (attributes.get("href") or "")
    data = data_of(content)
    assert data["systems"][0] == hostile.ATTACKS[0]
    assert "\\u202egnp.exe\\u2066 \\u2028 \\u2029" in data["query"]
    assert len(content) < 1_000_000  # a chunk of a million letters is shortened


def test_notebooks_and_markdown_obey_nothing_either() -> None:
    from findwell.show import render

    result = hostile.result()
    for content in (result._repr_html_(), findwell.compare(result)._repr_html_()):
        read = Reader(content)
        allowed = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li"}
        allowed |= {"b", "p", "br"}
        assert {tag for tag, _ in read.elements} <= allowed
        assert not [name for _, each in read.elements for name in each if name.startswith("on")]
    for content in (
        render(result, "markdown", per_query=True),
        findwell.compare(result).to_markdown(),
    ):
        assert not re.search(r"(?<!\\)<", content)
        assert not re.search(r"(?<!\\)\[[^\]]*(?<!\\)\]\(", content)
        assert not re.search("[\x1b\u202e\u2066\u2028]", content)


@given(
    st.recursive(
        st.text() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
@settings(deadline=None)
def test_data_cannot_leave_its_element(value: object) -> None:
    content = script_json(value)
    assert not set(content) & set("<>&\u2028\u2029")
    assert json.loads(content) == value


def test_a_report_of_one_system() -> None:
    content = report(
        findwell.evaluate(RUN, GOLD, ["recall@2", "nDCG@3"], reading=findwell.Reading(keep=5))
    )
    data = data_of(content)
    assert data["systems"] == ["run"]
    assert data["values"] == [[[0.5] * 6, pytest.approx([0.9197] * 6)]]
    assert '<h2 class="title" id="overview-title">run: recall@2 0.500</h2>' in content
    assert data["question"] is None


def test_queries_without_a_question_slices_or_intervals() -> None:
    content = report(findwell.evaluate(RUN, GOLD, ["recall@2"], level=None))
    assert 'id="where"' not in content
    assert "bands are intervals" not in content
    assert "do not remember the retrieved documents" in content


def test_without_any_value_nothing_is_drawn() -> None:
    sample = {"query": "q", "question": "why?", "retrieved": ["a passage"]}
    found = findwell.evaluate(
        {"a": [sample], "b": [sample]},
        measures=["P@1/relevance"],
        judge=lambda _: {"relevance": None},
    )
    content = report(found)
    assert "b cannot be compared with a</h2>" in content
    assert "– → –" not in content
    assert "no query has a value in both" in content
    for section in ("cutoffs", "distributions"):
        assert f'id="{section}"' not in content


def test_many_systems() -> None:
    runs = {
        f"system {number}": {query: ["a"] * (number % 2) for query in GOLD} for number in range(12)
    }
    prepared = prepare(lay_side_by_side([findwell.evaluate(runs, GOLD, ["recall@5"])]))
    note = "This shows the baseline and the best 7 others by recall@5, of 12 systems in all."
    assert prepared.notes["distributions"] == [note]
    html = page(prepared)
    assert "bands are intervals" not in html
    systems = data_of(html)["systems"]
    assert len(systems) == 12
    assert systems[:7] == [f"system {number}" for number in (0, 1, 3, 5, 7, 9, 11)]


def test_only_the_best_systems_are_shown_by_slice() -> None:
    gold = [{"query": f"q{at}", "gold": ["a"], "kind": "xy"[at % 2]} for at in range(8)]
    runs = {f"s{n}": {row["query"]: ["b"] * n + ["a"] for row in gold} for n in range(5)}
    prepared = prepare(lay_side_by_side([findwell.evaluate(runs, gold, ["RR"])]))
    assert prepared.notes["where"] == ["The best 3 of 4 systems are shown by slice."]


def test_names_may_be_long() -> None:
    """A browser looks at this page too: see test_phone.py."""
    names = ["embeddings/" + "large-" * 30 + str(number) for number in range(3)]
    queries = [f"{'q' * 200}{number}" for number in range(12)]
    column = "a column with a name that is long enough for a line of its own"
    gold = [
        {"query": query, "gold": [f"{query}-document"], column: "value-" * 20 + str(at % 2)}
        for at, query in enumerate(queries)
    ]
    runs = {
        name: {query: [f"{query}-document" if at % 3 == number else "x" * 300] for query in queries}
        for at, name in enumerate(names)
        for number in (0,)
    }
    data = data_of(
        report(
            findwell.evaluate(
                runs,
                gold,
                ["recall@5", "nDCG(gain='exp')@10"],
                by="ids",
                reading=findwell.Reading(keep=5),
            )
        )
    )
    assert data["systems"] == names
    assert data["cases"][0]["gold"][0]["items"][0]["docs"] == [f"{queries[0]}-document"]


def test_the_verdict_is_that_of_the_terminal(demo_folder: Path) -> None:
    html = report(demo_folder)
    result = findwell.load(demo_folder)
    found = findwell.compare(result, slices=["kind", "topic", "wording"])
    (said,) = headlines(found)
    assert f'<h2 class="title" id="overview-title">{said.sentence}</h2>' in html
    assert f'<p class="figures">{said.facts[0]}</p>' in html
    assert said.facts[1] == "won 31, tied 51, lost 9"
    for word, count, show in (("won", 31, "better"), ("tied", 51, "tied"), ("lost", 9, "worse")):
        assert f'<a href="#show={show}" data-filters="{word}">' in html
        assert f"</span>{word} {count}</a>" in html
    assert "<li>better in wording paraphrase (+0.464)</li>" in html
    assert f"<title>{said.sentence} · findwell</title>" in html
    assert said.facts[0] in findwell.compare(result).to_markdown()


def test_an_unclear_verdict_says_how_many_queries_would_tell() -> None:
    gold = {f"q{n}": ["d"] for n in range(30)}
    runs = {
        name: {query: ["x"] if at % every == 4 else ["d"] for at, query in enumerate(gold)}
        for name, every in (("old", 7), ("new", 6))
    }
    html = report(findwell.evaluate(runs, gold, ["recall@1"]))
    assert '<div class="card verdict-card unclear">' in html
    assert "new is not clearly different from old</h2>" in html
    assert re.search(r"<li>about [\d,]+ queries would show a difference this small</li>", html)


def test_why_items_are_missed_filters_the_queries(demo_folder: Path) -> None:
    data = data_of(report(demo_folder))
    misses = findwell.load(demo_folder).misses()
    for system, bits in zip(data["systems"], data["missed"], strict=True):
        for bit, cause in enumerate(data["causes"]):
            mine = misses.filter(run=system, cause=cause)["query"].to_list()
            shown = [data["query"][at] for at, each in enumerate(bits) if each >> bit & 1]
            assert sorted(shown) == sorted(set(mine))


def test_what_systems_share_is_said_once() -> None:
    runs = {f"system {number}": {query: ["a"] for query in GOLD} for number in range(3)}
    html = report(findwell.evaluate(runs, GOLD, ["recall@5"]))
    assert html.count("<dt>policies</dt>") == 1
    assert "<h3>All systems</h3>" in html
    assert "<h3>system 0</h3>" not in html  # nothing is known of it alone: no empty card


def _sliced(low: int) -> str:
    """Return a report on 60 queries of which the first of 6 topics has so many misses in 10."""
    rng = np.random.default_rng(0)
    gold = [{"query": f"q{n}", "gold": ["d"], "topic": f"t{n // 10}"} for n in range(60)]
    hit = np.concatenate([np.arange(10) >= low, rng.permutation(50) >= 15])
    run = {f"q{n}": ["d" if found else "x"] for n, found in enumerate(hit)}
    return report(findwell.evaluate(run, gold, ["recall@1"]))


def test_a_slice_is_called_weakest_only_where_a_test_shows_it() -> None:
    assert "is weakest where topic is <strong>t0</strong>" in _sliced(10)
    assert "is weakest" not in _sliced(5)


def test_the_same_in_one_measure_is_not_the_same_in_all() -> None:
    gold = {f"q{n}": ["d"] for n in range(30)}
    first, second = (dict.fromkeys(gold, docs) for docs in (["d", "x"], ["x", "d"]))
    html = report(findwell.evaluate({"first": first, "second": second}, gold, ["recall@2", "RR"]))
    assert "<li>it differs in RR (−0.500, worse)</li>" in html


def test_backticks_are_code() -> None:
    html = report(findwell.evaluate(RUN, GOLD, ["recall@2"]))
    assert "<code>findwell score --save DIR</code>" in html
    assert "`" not in html.partition("<script")[0].partition("</style>")[2]


def test_results_are_named_by_their_folders_and_the_baseline_comes_first(tmp_path: Path) -> None:
    for name in ("monday", "tuesday"):
        findwell.evaluate({"bm25": RUN}, GOLD, ["recall@2"]).save(tmp_path / name)
    folders = [tmp_path / "monday", tmp_path / "tuesday"]
    assert lay_side_by_side(folders).names == ["monday", "tuesday"]
    assert lay_side_by_side(folders, baseline="tuesday").names == ["tuesday", "monday"]
    with pytest.raises(OptionError, match="did you mean tuesday"):
        lay_side_by_side(folders, baseline="tuesdy")


def test_a_slice_is_a_report_of_its_own(demo_folder: Path) -> None:
    whole = findwell.load(demo_folder)
    panel = lay_side_by_side([demo_folder], only=("wording", "paraphrase"))
    assert panel.queries.height == 44
    by = whole.by("wording")
    expected = by.filter((by["slice"] == "paraphrase") & (by["measure"] == "recall@5"))["value"]
    found = [panel.summary[name, "recall@5"]["value"] for name in panel.names]
    assert found == pytest.approx(expected.to_list())
    with pytest.raises(OptionError, match="paraphrase"):
        lay_side_by_side([demo_folder], only=("wording", "paraphras"))


def test_a_budget_keeps_some_queries_of_every_kind(
    demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "LETTERS", 260_000)
    prepared = prepare(lay_side_by_side([demo_folder]))
    data = prepared.data
    opened = data["openable"]
    assert 10 < len(opened) < 60
    assert sorted(unpacked(data)["cases"]) == opened
    assert any("`findwell view`" in note for note in prepared.notes["queries"])
    first, second = (
        np.array(data["values"][system][data["lead"]], dtype=float) for system in (0, 1)
    )
    gain = second - first
    kinds = {
        "zero": (first == 0) | (second == 0),
        "worse": gain < 0,
        "better": gain > 0,
        "none": np.isnan(gain),
        "same": gain == 0,
    }
    counts = {kind: int(mask[opened].sum()) for kind, mask in kinds.items()}
    assert min(counts.values()) >= 4, counts
    # what a filter shows first can be opened
    assert np.nanmin(gain[opened]) == np.nanmin(gain)
    assert np.nanmax(gain[opened]) == np.nanmax(gain)
    few = [facet for facet in data["facets"] if len(facet["labels"]) < 6]
    assert len(few) == 2
    for facet in few:
        assert {facet["codes"][at] for at in opened} == set(facet["codes"])


def test_the_budget_is_what_the_file_holds(
    demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = prepare(lay_side_by_side([demo_folder])).data
    assert whole["openable"] is None
    monkeypatch.setattr(preparing, "BUDGET", len(whole["packed"]) // 3)
    part = prepare(lay_side_by_side([demo_folder])).data
    assert len(part["packed"]) < len(whole["packed"]) * 0.75  # what is packed comes in blocks
    assert len(part["openable"]) > 5


def test_without_a_budget_to_spare_one_query_opens(
    demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "LETTERS", 1)
    assert len(prepare(lay_side_by_side([demo_folder])).data["openable"]) == 1


def test_the_kinds_take_turns() -> None:
    gold = {f"q{number}": ["a"] for number in range(40)}
    before = {query: ["a"] if number < 20 else ["x", "a"] for number, query in enumerate(gold)}
    after = {query: ["x", "a"] if number < 20 else ["a"] for number, query in enumerate(gold)}
    panel = lay_side_by_side([findwell.evaluate({"a": before, "b": after}, gold, ["RR"])])
    order = preparing.order_of_interest(panel)
    found = list(preparing.balanced(panel, order))
    assert sorted(found) == list(range(40))
    for size in (6, 12, 30):
        worse = sum(query < 20 for query in found[:size])
        assert size / 3 <= worse <= 2 * size / 3


def test_the_command(cli: Findwell, demo_folder: Path, tmp_path: Path) -> None:
    done = cli("report", demo_folder, "-o", tmp_path / "report.html")
    assert (done.code, done.out) == (0, "")
    assert "written: " in done.err
    assert data_of((tmp_path / "report.html").read_text())["systems"] == ["bm25", "minilm"]
    assert cli("report", demo_folder, "-o", "-").out.startswith("<!doctype html>")


def test_the_command_draws(cli: Findwell, demo_folder: Path, tmp_path: Path) -> None:
    done = cli("report", demo_folder, "--plot", tmp_path / "x.svg", "--chart", "curve recall")
    assert done.code == 0
    assert "recall at K" in (tmp_path / "x.svg").read_text()
    assert list(tmp_path.iterdir()) == [tmp_path / "x.svg"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{nowhere}"], "--save DIR"),
        (["{demo}", "--plot", "x.gif"], "name an .svg or a .png"),
        (["{demo}", "--plot", "x.svg", "--chart", "forrest"], "did you mean forest?"),
        (["{demo}", "--chart", "forest"], "--plot"),
        (["{demo}", "--only", "wording"], "COLUMN=VALUE"),
        (["{demo}", "--only", "topic=nothing"], "unknown value of topic"),
        (["{demo}", "-o", "{nowhere}/deep/report.html"], "could not be written"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], said: str, cli: Findwell, demo_folder: Path, tmp_path: Path
) -> None:
    places = {"nowhere": tmp_path / "nowhere", "demo": demo_folder}
    done = cli("report", *(argument.format(**places) for argument in arguments))
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("run", "gold", "options"),
    [
        ({"q": ["a"]}, {"q": ["a"]}, {"measures": ["recall"]}),
        ({"q": []}, {"q": ["a"]}, {"measures": ["recall@3"]}),
        (
            {"a": {"q": ["a"]}, "b": {"q": ["b"]}},
            {"q": ["a"]},
            {"measures": ["RR", "success@1", "unjudged@5"]},
        ),
        ({"q": ["a"]}, {"q": ["a"]}, {"measures": ["P@5"], "dialect": "trec_eval"}),
        ({"q": ["a", "a"]}, {"q": [["a", "b"]]}, {"measures": ["AP"], "dialect": "autorag"}),
        (
            {"q": ["a"], "r": ["b"]},
            {"q": ["a"], "r": ["c"]},
            {"measures": ["retrieved", "RBP", "F@2"], "bounds": True, "level": None},
        ),
    ],
)
def test_small_and_odd_results_have_a_page(run: Any, gold: Any, options: dict[str, Any]) -> None:
    result = findwell.evaluate(run, gold, **options, reading=findwell.Reading(keep=3))
    data = data_of(report(result))
    assert len(data["cases"]) == len(data["query"]) == result.queries.height


def test_what_is_missing_is_named(
    cli: Findwell, demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("resvg_py", "fontpkg_arimo"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            done = cli("report", demo_folder, "--plot", tmp_path / "x.png")
        assert (done.code, ".[report]" in done.err) == (2, True)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "findwell.show.web.server", raising=False)
    done = cli("view", demo_folder)
    assert (done.code, ".[web]" in done.err) == (2, True)


def test_the_judge_is_named_at_the_top() -> None:
    sample = {"user_input": "Why not?", "retrieved_contexts": ["Because so."], "reference": "So."}
    systems = {
        name: findwell.judges.judge(
            [sample], "context_recall", judge=name, reading=findwell.Reading(keep=3)
        )
        for name in ("local:text", "local:text(claims=0.9)")
    }
    content = page(prepare(lay_side_by_side([systems])))
    for result in systems.values():
        (line,) = judge_lines([result.judge])
        assert line in content
        assert "significantly wrong in 26% of 1,953 pairs of real systems" in line


@pytest.mark.parametrize("measures", [["RR", "recall@2"], ["recall@2", "RR"]])
def test_the_first_measure_is_the_main_one(measures: list[str]) -> None:
    result = findwell.evaluate({"one": RUN, "two": RUN}, GOLD, measures)
    panel = lay_side_by_side([result])
    assert str(panel.measures[panel.lead]) == measures[0]
    html = page(prepare(panel))
    assert "two scores the same as one on every query</h2>" in html
    assert f'<p class="figures">{measures[0]} ' in html
    sliced = [{"query": query, "part": query} for query in GOLD]
    found = findwell.compare(
        findwell.evaluate({"one": RUN, "two": RUN}, GOLD, measures, queries=sliced), slices="part"
    )
    assert found.plot("where two").says.startswith(f"{measures[0]}: ")


def test_one_query_is_not_called_queries() -> None:
    result = findwell.evaluate({"one": {"q": ["a"]}, "two": {"q": ["b"]}}, {"q": ["a"]}, ["RR"])
    html = page(prepare(lay_side_by_side([result])))
    assert "one · two · 1 query · baseline one" in html
    assert "dialect findwell" not in html
    assert not re.search(r"\b1 queries", html)
    assert not re.search(r"\b1 queries", repr(findwell.compare(result)) + repr(result))
