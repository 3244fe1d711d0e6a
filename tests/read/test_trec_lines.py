"""Odd lines of TREC files: what trec_eval makes of them, or a refusal, wherever they stand."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest
import pytrec_eval

import findwell
from findwell.core.errors import InputError
from findwell.io.read import format as source
from findwell.io.read import load_gold, load_run, trec
from tests.sample import kinds

if TYPE_CHECKING:
    from tests.conftest import Save

PLAIN = "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\nq2 Q0 d1 1 1.5 t\n"
# lines of a run that trec_eval and pytrec_eval read, and those that only trec_eval reads
ODD = {
    "padded tabs": "q1\tQ0\td3 \t3\t1\tt\n",
    "blanks before": "q1\tQ0\t d3\t3\t 1\tt\n",
    "tabs and spaces": "q1 Q0\td3\t3 1\tt\n",
    "a tab inside a line of spaces": "q1 Q0 d3\t3 1 t\n",
    "all kinds of blanks": " q1\v\fQ0 \td3\r3 1 t\r\n",
    "a return inside": "q1 Q0 d3\r 3 1 t\n",
}
MORE = {
    "text behind the tag": "q1 Q0 d3 3 1 bm25 tuned on dev\n",
    "text behind a tab": "q1\tQ0\td3\t3\t1\tt\tmore\n",
}
BLANK = {
    "a blank in an id": "q1\tQ0\tmy file.pdf\t3\t1\tt\n",
    "blanks in an id and around it": "q1\tQ0\t my file.pdf \t3\t1\tt\n",
    "a number behind a blank": "q1\tQ0\tfile 2\t3\t1\tt\n",
    "a blank in the query": "the first\tQ0\td3\t3\t1\tt\n",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "before", ["", PLAIN, PLAIN.replace(" ", "\t")], ids=["", "spaces", "tabs"]
)
def test_blanks_of_any_kind_are_one_separator(odd: str, before: str, save: Save) -> None:
    text = before + ODD[odd] + before.replace("d", "e")
    theirs = pytrec_eval.parse_run(line for line in text.split("\n") if line)
    ours: dict[str, dict[str, float]] = {}
    run = load_run(save("run", text)).collect()
    for query, doc, score in run.rows.rows():
        ours.setdefault(query, {})[doc] = score
    assert ours == theirs
    assert not run.findings


def test_a_blank_behind_an_id_of_the_gold_is_no_part_of_it(save: Save) -> None:
    gold = save("qrels", "q1\t0\td1 \t1\n")
    result = findwell.evaluate(save("run", "q1 Q0 d1 1 2 t\nq1 Q0 d2 2 1 t\n"), gold, ["RR"])
    assert result["RR"] == 1
    assert not result.findings


@pytest.mark.parametrize("more", MORE)
def test_what_stands_behind_the_tag_is_left_out(more: str, save: Save) -> None:
    run = save("run", PLAIN + MORE[more] + PLAIN.replace("d", "e"))
    result = findwell.evaluate(run, {"q1": ["d3"], "q2": ["d1"]}, ["RR"])
    assert result["RR"] == (1 / 5 + 1 / 2) / 2
    assert kinds(result)["text-behind-tag"] == 1
    assert result.findings[-1].run == "run"


@pytest.mark.parametrize("blank", BLANK)
def test_between_tabs_an_id_may_hold_a_blank(blank: str, save: Save) -> None:
    run = load_run(save("run", BLANK[blank])).collect()
    cells = [cell.strip() for cell in BLANK[blank].split("\t")]
    assert run.rows.rows() == [(cells[0], cells[2], 1.0)]
    assert [found.kind for found in run.findings] == ["blank-in-id"]
    gold = load_gold(save("qrels", "\t".join([cells[0], "0", f"{cells[2]} ", "1"])))
    assert gold.rows().row(0)[:2] == (cells[0], cells[2])
    assert [found.kind for found in gold.findings] == ["blank-in-id"]


SHIFTED = ["q1 Q0 my file.pdf 1 0.5 t\n", "q1 Q0 file 2 1 0.5 t\n", "q1 Q0 d1 1 x t more\n"]


@pytest.mark.parametrize("line", SHIFTED)
def test_an_id_with_a_blank_between_spaces_is_refused(line: str, save: Save) -> None:
    with pytest.raises(InputError, match="line 4: found 7 columns instead of 6"):
        load_run(save("run", PLAIN + line)).collect()
    with pytest.raises(InputError, match="5 columns instead of 4"):
        load_gold(save("qrels", "q1 0 d1 1\nq1 0 my file.pdf 1\n"))


def test_the_tag_may_be_missing_from_every_line(save: Save) -> None:
    text = "# untagged\n" + PLAIN.replace(" t\n", "\n")
    for data in (text, text.replace(" ", "\t"), text.replace("\n", " \r\n")):
        run = load_run(save("run", data)).collect()
        assert run.rows.rows() == load_run(save("plain", PLAIN)).collect().rows.rows()
        assert not run.findings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAIN + "q1 Q0 d9 3 1\n", "line 4: found 5 columns instead of 6"),
        (PLAIN + "q1 Q0 d9 3 1 \n", "line 4: found 5 columns instead of 6"),
        ("q1 Q0 d9 3 1\n" + PLAIN, "line 2: found 6 columns instead of 5"),
        ("q1 d9 3 1 t\n" * 2, "line 1: found 5 columns instead of 6"),
        ("q1 d9 3 1 7\n" * 2, "line 1: found 5 columns instead of 6"),
        ("q1 Q0 d9 3 high\n" * 2, "line 1: found 5 columns instead of 6"),
    ],
)
def test_five_columns_that_may_mean_anything(text: str, message: str, save: Save) -> None:
    with pytest.raises(InputError, match=message) as stop:
        load_run(save("run", text), format="trec").collect()
    assert "tag" in stop.value.fix


@pytest.mark.parametrize("odd", ODD | MORE | BLANK)
def test_the_same_however_the_file_is_cut(
    odd: str, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (ODD | MORE | BLANK)[odd]
    text = "# a comment\n\n" + PLAIN + line + PLAIN.replace(" ", "\t") + line.replace("d3", "d4")
    run = save("run", text.encode())
    whole = load_run(run).collect()
    assert whole.rows.height == 8
    lines = text.split("\n")
    cuts = {len("\n".join(lines[:n])) for n in range(1, len(lines))}  # a block ends with a line
    for block in sorted(cuts):
        monkeypatch.setattr(source, "BLOCK", block)
        cut = load_run(run).collect()
        assert cut.rows.equals(whole.rows), block
        assert cut.findings == whole.findings, block


def test_every_pass_over_a_run_counts_anew(save: Save) -> None:
    run = load_run(save("run", PLAIN + MORE["text behind the tag"]))
    for _ in range(2):
        assert [found.count for found in run.collect().findings] == [1]


def test_a_column_too_many_does_not_make_up_for_one_too_few(save: Save) -> None:
    run = save("run", PLAIN + "q1 Q0 my file.pdf 3 1 t\nq1 Q0 d4 4 0.5\n")
    with pytest.raises(InputError, match="line 4: found 7 columns"):
        load_run(run).collect()


def test_squeezing_blanks_keeps_words_and_lines() -> None:
    rng = random.Random(5)
    for _ in range(20_000):
        data = bytes(rng.choices(b" \n\tab\r\v\f", [4, 3, 1, 3, 3, 1, 1, 1], k=rng.randint(0, 14)))
        lines = (b" ".join(re.split(rb"[ \t\r\v\f]+", line)).strip() for line in data.split(b"\n"))
        assert trec._squeeze(data) == b"".join(line + b"\n" for line in lines if line)
