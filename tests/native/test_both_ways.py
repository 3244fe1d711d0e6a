"""With and without the kernel: the same relation, the same findings, the same errors."""

from __future__ import annotations

import gzip
import random
import struct
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.data import Gold
from findwell.core.errors import FindwellError
from findwell.core.relation import Relation
from findwell.io import native
from findwell.io.native import SWITCH, kernel
from findwell.io.read import format as source
from findwell.io.read import load_gold, trec
from tests.strategies import examples

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = pytest.mark.skipif(kernel() is None, reason="the native kernel is not built")

SCORES = (
    "1", "0", "-0.0", "+2.50", ".5", "7.", "1e3", "1E-7", "0.1234567890123456789",
    "12345678901234567", "1.7976931348623157e308", "4.9e-324", "2.2250738585072014e-308",
    "0.30000000000000004", "123456789.123456789", "9007199254740993", "0.000030517578125",
    "98765432109876543210", "1e22", "1e23", "3.14159265358979323846e-05", "1e-400",
)  # fmt: skip
ODD_SCORES = ("nan", "inf", "-Infinity", "1e999", "1_000", "0x1p3", "x", "١")
LONG = "a-document-with-a-long-name-"
IDS = ("d1", "d2", "d3", f"{LONG}1", f"{LONG}2", "ä", "日本", "#7", "D1")
ODD_IDS = ("\u00a0", "\u3000x", "a\x1fb", "\u2028")
ODD_BYTES = (b"\xff", b"\0", b"\xed\xa0\x80", b"\xc0\xaf")
GAPS = (" ", "\t", "  ", " \t", "\r ", "\v", "\f\t")
ENDS = ("\n", "\r\n", " \n", "\n\n", "\n# a comment\n", "\n \t\n")
MANY = 30 + examples(750).max_examples  # seeds: as many as the profile of Hypothesis says
STARTS = ("", "", "", "\ufeff", "\n", "# first\n")


class Untidy:
    """Files that are odd in a few ways, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        names = ("q", "a-query-with-a-long-name-", "ü")
        self.queries = [self.chance.choice(names) + str(number) for number in range(12)]
        self.gap = self.chance.choice(GAPS) if self.maybe(0.4) else " "
        self.ties, self.odd = self.maybe(0.5), self.maybe(0.25)

    def maybe(self, share: float) -> bool:
        return self.chance.random() < share

    def ids(self) -> list[str]:
        """Return some documents, perhaps one of them twice."""
        ids = self.chance.sample(IDS, self.chance.randint(1, len(IDS)))
        ids += ids[:1] if self.maybe(0.1) else []
        return ids + ([self.chance.choice(ODD_IDS)] if self.odd and self.maybe(0.05) else [])

    def score(self, rank: int) -> str:
        if self.odd and self.maybe(0.03):
            return self.chance.choice(ODD_SCORES)
        if self.ties:
            return self.chance.choice(("1.0", "2.0", "2.0000000001"))
        return f"{20 - rank}.5" if self.maybe(0.7) else self.chance.choice(SCORES)

    def run(self) -> bytes:
        columns = 5 if self.maybe(0.15) else 6
        rows = []
        for query in self.queries[: self.chance.randint(4, 12)]:
            for rank, doc in enumerate(self.ids()):
                words = [query, "Q0", doc, str(rank), self.score(rank), "tag"][:columns]
                if self.odd and self.maybe(0.03):
                    others = (words[:-1], [*words, "more"], ["#" + query, *words[1:]])
                    words = self.chance.choice(others)
                rows.append(self.gap.join(words))
        return self.file(rows, shuffled=0.2)

    def gold(self) -> bytes:
        rows = []
        for query in self.queries[self.chance.randint(0, 3) :]:
            for doc in self.ids():
                grade = self.chance.choice(("0", "1", "2", "3", "-1", "0.5", "1e0"))
                if self.odd and self.maybe(0.02):
                    grade = self.chance.choice(ODD_SCORES)
                iteration = "1" if self.maybe(0.01) else "0"
                row = self.gap.join([query, iteration, doc, grade])
                rows += [row, row] if self.maybe(0.005) else [row]
        return self.file(rows, shuffled=0.1)

    def file(self, rows: list[str], *, shuffled: float) -> bytes:
        if self.maybe(shuffled):
            self.chance.shuffle(rows)
        end = self.chance.choice(ENDS) if self.maybe(0.3) else "\n"
        text = "".join(row + (end if self.maybe(0.9) else "\n") for row in rows)
        data = (self.chance.choice(STARTS) + text).encode()
        data = data.rstrip() if self.maybe(0.2) else data
        if self.odd and self.maybe(0.1):
            at = self.chance.randrange(len(data))
            data = data[:at] + self.chance.choice(ODD_BYTES) + data[at:]
        return gzip.compress(data) if self.maybe(0.05) else data


def described(value: Any) -> Any:
    """Return something that can be compared: arrays and series by type and content."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if isinstance(value, pl.Series):
        return str(value.dtype), value.to_list()
    if isinstance(value, pl.DataFrame):
        return value.to_dicts()
    if isinstance(value, Relation | Gold):
        given = (each.name for each in fields(value) if each.init)
        return {name: described(getattr(value, name)) for name in given}
    return value


def outcome(run: Path, gold: Path, dialect: str) -> Any:
    """Return all that an evaluation tells, or its error."""
    try:
        result = findwell.evaluate(run, gold, measures=["nDCG@3", "AP", "recall"], dialect=dialect)
        relation = next(iter(result.relations.values()))
        return described(relation), result.findings, result.values
    except FindwellError as error:
        return type(error).__name__, str(error)


def gold_outcome(gold: Path) -> Any:
    try:
        return described(load_gold(gold))
    except FindwellError as error:
        return type(error).__name__, str(error)


def compare_both(
    run: Path,
    gold: Path,
    dialect: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    size: int,
    block: int | None = None,
) -> None:
    """Evaluate with and without the kernel, in pieces of this size, or without it in blocks."""
    monkeypatch.setattr(native, "PIECE", size)
    monkeypatch.setattr(source, "BLOCK", block or size)
    monkeypatch.setenv(SWITCH, "0")
    without = outcome(run, gold, dialect), gold_outcome(gold)
    monkeypatch.delenv(SWITCH)
    assert (outcome(run, gold, dialect), gold_outcome(gold)) == without


def write_files(seed: int, folder: Path) -> tuple[Path, Path]:
    untidy = Untidy(seed)
    (folder / "run.trec").write_bytes(untidy.run())
    (folder / "gold.qrels").write_bytes(untidy.gold())
    return folder / "run.trec", folder / "gold.qrels"


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, MANY), marks=pytest.mark.slow)]
)
def test_untidy_files(seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        size = random.Random(seed).choice((1 << 21, 100, 333, 2000))
        dialect = ("findwell", "trec_eval", "findwell")[seed % 3]
        compare_both(*write_files(seed, tmp_path), dialect, monkeypatch, size=size)


class Worse(Untidy):
    """Files with several things wrong in them."""

    def maybe(self, share: float) -> bool:
        return super().maybe(min(4 * share, 0.5) if share < 0.06 else share)


def compare_worse(seeds: Iterable[int], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a file is cut, and whoever reads it, the same error and the same examples."""
    sizes = (1 << 21, 100, 333, 2000)
    for seed in seeds:
        worse, chance = Worse(seed), random.Random(seed)
        worse.odd = seed % 3 != 0
        (folder / "run.trec").write_bytes(worse.run())
        worse.odd = worse.odd and seed % 5 == 0
        (folder / "gold.qrels").write_bytes(worse.gold())
        compare_both(
            folder / "run.trec",
            folder / "gold.qrels",
            ("findwell", "trec_eval", "findwell", "autorag")[seed % 4],
            monkeypatch,
            size=chance.choice(sizes),
            block=chance.choice(sizes),
        )


def test_the_first_error_and_the_same_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["q1 Q0 \u00a0 1 9 t", "q1 Q0 d1 2 8 t", "q2 Q0 d1 1 9 t", "q2 Q0 d2 2 x t"]
    (tmp_path / "run.trec").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "gold.qrels").write_text("q1 0 d1 1\nq2 0 d1 1\n")
    for sizes in ((20, 1 << 21), (1 << 21, 20), (20, 20)):
        monkeypatch.setattr(native, "PIECE", sizes[0])
        monkeypatch.setattr(source, "BLOCK", sizes[1])
        told = outcome(tmp_path / "run.trec", tmp_path / "gold.qrels", "findwell")
        assert "line 4: the score 'x' is not a number" in told[1]
    compare_worse((90, 91, 98, 122), tmp_path, monkeypatch)  # of which 98 and 122 once differed


@pytest.mark.slow
def test_many_files_with_several_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare_worse(range(92, 92 + examples(450).max_examples), tmp_path, monkeypatch)


def test_plain_files_are_drawn_by_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ties, unsorted and scattered rows and extra queries need no code in Python."""
    lines = [f"q{n % 40} Q0 d{n * 7 % 60} {n} {n % 11}.25 tag\n" for n in range(1200)]
    lines = list({line.split()[0] + line.split()[2]: line for line in lines}.values())
    (tmp_path / "run.trec").write_text("".join(lines))
    rows = (f"q{n} 0 d{doc} {doc % 3}\n" for n in range(3, 40) for doc in range(0, 60, 4))
    (tmp_path / "gold.qrels").write_text("".join(rows))
    compare_both(
        tmp_path / "run.trec", tmp_path / "gold.qrels", "trec_eval", monkeypatch, size=1000
    )
    monkeypatch.setattr(trec, "parse_lines", None)
    monkeypatch.setattr(trec, "parse_blocks", None)
    monkeypatch.setattr(
        trec.TrecLines,
        "parse",
        lambda *_: pl.DataFrame(schema={"query": pl.String, "doc": pl.String}),
    )
    assert len(outcome(tmp_path / "run.trec", tmp_path / "gold.qrels", "trec_eval")[0]) > 10


def test_numbers_are_those_of_python() -> None:
    """Every spelling of a number means the double that Python's float() makes of it."""
    chance = random.Random(5)
    native_kernel = kernel()
    assert native_kernel is not None
    spelled = [*SCORES]
    for _ in range(20_000):
        bits = chance.getrandbits(64)
        number = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
        if np.isfinite(number):
            spelled += [repr(number), f"{number:.17e}"]
        small = chance.uniform(-100, 100) * 10 ** chance.randint(-8, 3)
        digits = chance.randint(0, 25)
        spelled += [repr(small), f"{small:.{digits}f}", f"{small:.{digits}e}", f"{small:g}"]
        # halfway between two doubles, and just beside it
        whole = chance.getrandbits(53) | 1 << 52
        spelled += [f"{whole * 2 + 1}", f"{whole * 2 + 1}e-{chance.randint(1, 19)}"]
    lines = "".join(f"q 0 d{at} {text}\n" for at, text in enumerate(spelled) if len(text) < 64)
    found = native_kernel.read_gold(memoryview(lines.encode()))
    assert found is not None
    docs = pl.Series(found[0][2]).str.slice(1).cast(pl.Int64).to_list()
    expected = np.array([float(spelled[at]) for at in docs])
    assert (np.frombuffer(found[0][3]).view(np.int64) == expected.view(np.int64)).all()


def around_overflow() -> list[str]:
    """Spell numbers whose digits do not fit 64 bits, or nearly so, and their multiples."""
    chance = random.Random(6)
    whole = [
        str(base * times + more)
        for base in (2**53, 2**63, 2**64, 2**128, 10**19, 10**20)
        for times in (*range(1, 30), 10**5, 10**10, 10**20)
        for more in (-1, 0, 1)
    ]
    lengths = (chance.randint(1, 60) for _ in range(5000))
    whole += ["".join(chance.choices("00000123456789", k=length)) for length in lengths]
    spelled = []
    for digits in whole:
        at, sign = chance.randrange(len(digits) + 1), chance.choice(("", "-", "+", "0", "000"))
        pointed = f"{sign}{digits[:at]}.{digits[at:]}"
        exponent = f"e{chance.randint(-40, 40)}"
        spelled += [sign + digits, pointed, pointed + exponent, sign + digits + exponent]
    return spelled


@pytest.mark.parametrize("step", [400, pytest.param(40, marks=pytest.mark.slow)])
def test_numbers_that_do_not_fit_64_bits(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native_kernel = kernel()
    assert native_kernel is not None
    declined = 0
    spelled = around_overflow()
    for text in spelled:
        found = native_kernel.read_gold(memoryview(f"q 0 d {text}\n".encode()))
        declined += found is None
        if found is not None:
            assert found[0][3] == struct.pack("d", float(text)), text
    assert declined < len(spelled) / 10  # those that Python reads
    run = ["q Q0 a 1 18446744073709551616 t", "q Q0 b 2 0.5 t"]
    (tmp_path / "run.trec").write_text("\n".join(run))
    (tmp_path / "gold.qrels").write_text("q 0 a 1\n")
    values = findwell.evaluate(tmp_path / "run.trec", tmp_path / "gold.qrels", "RR").values
    assert values == {"RR": 1.0}
    odd = (*ODD_SCORES, "1e", "e5", ".", "-", "+-1", "1e+", "0b1", "1.5.2", "٣.5", "１", "1e1000")
    for number, score in enumerate((*odd, *spelled[:2000:step])):
        lines = [f"q Q0 a 1 {score} t", "q Q0 b 2 0.5 t", f"r Q0 a {number} 1 t"]
        (tmp_path / "run.trec").write_text("\n".join(lines), encoding="utf-8")
        (tmp_path / "gold.qrels").write_text(f"q 0 a 1\nr 0 a {score}\n", encoding="utf-8")
        compare_both(
            tmp_path / "run.trec", tmp_path / "gold.qrels", "findwell", monkeypatch, size=4096
        )
        (tmp_path / "gold.qrels").write_text("q 0 a 1\nr 0 a 1\n")
        compare_both(
            tmp_path / "run.trec", tmp_path / "gold.qrels", "findwell", monkeypatch, size=4096
        )


def test_a_query_longer_than_a_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = "".join(f"q{n // 500} Q0 d{n} 1 {n % 97} t\n" for n in range(2000))
    (tmp_path / "run.trec").write_text(run)
    (tmp_path / "gold.qrels").write_text("".join(f"q{n // 500} 0 d{n} 1\n" for n in range(2000)))
    compare_both(tmp_path / "run.trec", tmp_path / "gold.qrels", "findwell", monkeypatch, size=256)


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LINE", 5000)
    monkeypatch.setattr(source, "LINE", 5000)
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 1 t\nq1 Q0 " + "d" * 20_000)
    (tmp_path / "gold.qrels").write_text("q1 0 d1 1\nq1 0 " + "d" * 20_000)
    compare_both(tmp_path / "run.trec", tmp_path / "gold.qrels", "findwell", monkeypatch, size=256)


def test_a_kernel_of_another_interface_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    native._built.cache_clear()
    monkeypatch.setattr(native, "INTERFACE", -1)
    try:
        assert kernel() is None
    finally:
        native._built.cache_clear()
