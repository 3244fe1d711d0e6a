"""Draw the diagrams of the course: `python -m website.pictures` writes them into docs/images/learn.

Every number in them is computed by findwell, on the example that the chapter uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import findwell
from findwell.show.charts.svg import colors, element, label, linear, title
from findwell.statistics.sequential import change_evidence

Look: TypeAlias = tuple[str, str]  # the colours of the inside and of the frame

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "learn"
DEMO = Path(findwell.__file__).parent / "demo"
WIDTH = 720
LIGHT = colors("light")
HIT, MISS, SYSTEM_A, SYSTEM_B = "#0b6e4f", "#b3420a", LIGHT["c0"], LIGHT["c1"]
INK, MUTED, LINE, EDGE = LIGHT["text"], LIGHT["muted"], "#c5ccd6", "#b8860b"
PLAIN, FOUND, GOLD = ("#f2f4f7", LINE), ("#dff3e8", HIT), ("#fdf1d3", EDGE)


def text(content: str, x: float, y: float, **attributes: Any) -> str:  # noqa: ANN401
    """Return a label in the colour of ink, in the middle of its place unless told otherwise."""
    return label(content, x, y, **({"fill": INK, "text_anchor": "middle"} | attributes))


def note(content: str, x: float, y: float, **attributes: Any) -> str:  # noqa: ANN401
    """Return an explaining label that begins at a place."""
    return text(content, x, y, **({"fill": MUTED, "text_anchor": "start"} | attributes))


def box(
    content: str, place: tuple[float, float], size: tuple[float, float], look: Look = PLAIN
) -> str:
    """Return a box with a label in it."""
    (x, y), (width, height), (fill, frame) = place, size, look
    area = {"x": x, "y": y, "width": width, "height": height}
    return element("rect", **area, rx=5, fill=fill, stroke=frame) + text(
        content, x + width / 2, y + height / 2 + 4.5
    )


def stroke(x1: float, y1: float, x2: float, y2: float, color: str = LINE, **more: object) -> str:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=color, **more)


def dashed(x1: float, y1: float, x2: float, y2: float, color: str = MUTED) -> str:
    """Return a dashed line."""
    return stroke(x1, y1, x2, y2, color, stroke_width=1.5, stroke_dasharray="5 4")


def picture(height: float, says: str, parts: Iterable[str]) -> str:
    """Return a whole picture on a light card, which is legible on a dark page as well."""
    card = element("rect", width=WIDTH, height=height, rx=8, fill=LIGHT["surface"])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" font-size="14" '
        f'font-family="system-ui, sans-serif">{title(says)}{card}{"".join(parts)}</svg>\n'
    )


def ranked_list() -> str:
    """A ranked list of eight passages, three needed ones, and a cutoff."""
    run, gold, k = list("xaxbxxcx"), ["a", "b", "c"], 5
    docs = [f"{doc}{rank}" if doc == "x" else doc for rank, doc in enumerate(run)]
    measures = [f"recall@{k}", f"P@{k}", "RR", "AP", f"nDCG@{k}"]
    values = findwell.evaluate({"q": docs}, {"q": gold}, measures).values
    parts = [note("rank", 20, 42), note("passage", 20, 82)]
    for rank, doc in enumerate(run, start=1):
        x, hit = 90 + (rank - 1) * 76, doc in gold
        parts += [text(str(rank), x + 32, 42, fill=MUTED)]
        parts += [box("✓ hit" if hit else "noise", (x, 60), (64, 36), FOUND if hit else PLAIN)]
    cut = 90 + k * 76 - 6
    parts += [dashed(cut, 24, cut, 124), note(f"the model sees {k}", cut - 122, 120)]
    parts += [note("never seen", cut + 10, 120)]
    hits = sum(doc in gold for doc in run[:k])
    meanings = [
        f"{hits} of the {len(gold)} needed passages are among the first {k}",
        f"{hits} of the first {k} passages are needed",
        "1 ÷ the rank of the first hit",
        "the mean of the precision at each hit",
        "hits count less further down; 1 is the best order",
    ]
    for row, (name, meaning) in enumerate(zip(measures, meanings, strict=True)):
        y = 162 + 26 * row
        parts += [note(name, 90, y, fill=INK), note(f"{values[name]:.2f}", 190, y, fill=HIT)]
        parts += [note(meaning, 250, y)]
    says = f"A ranked list of eight passages with hits at the ranks 2, 4 and 7, cut at {k}"
    return picture(288, says, parts)


def failures() -> str:
    """The three ways in which retrieval fails."""
    rows = [
        ("not found", "recall", ["noise"] * 5, "the answer is nowhere in the list"),
        ("noise", "precision", ["✓", *["noise"] * 4], "four passages of five do not help"),
        ("too far down", "RR, AP, nDCG", [*["noise"] * 4, "✓"], "the model may never read rank 5"),
    ]
    parts = []
    for row, (name, measure, entries, meaning) in enumerate(rows):
        y = 24 + 66 * row
        parts += [note(name, 20, y + 16, fill=INK, font_weight="600"), note(measure, 20, y + 34)]
        for rank, entry in enumerate(entries):
            hit = entry == "✓"
            parts.append(box(entry, (130 + 60 * rank, y), (54, 36), FOUND if hit else PLAIN))
        parts.append(note(meaning, 446, y + 22))
    return picture(220, "Three ways to fail: not found, noise, too far down", parts)


def differences() -> str:
    """The difference on every question of the demo, sorted, and their mean with its interval."""
    runs = [DEMO / "bm25.trec", DEMO / "minilm.trec"]
    result = findwell.evaluate(runs, DEMO / "questions.jsonl", "recall@5")
    values = result.per_query.pivot("run", index="query", values="value").drop_nulls()
    gaps = sorted(values["minilm"] - values["bm25"])
    (verdict,) = findwell.compare(result).verdicts.values()
    height, bottom = linear((-1, 1), (190, 30)), 190
    step = 500 / len(gaps)
    parts = [stroke(60, height(0), 570, height(0), MUTED)]
    for number, gap in enumerate(gaps):
        x, color = 64 + number * step, HIT if gap > 0 else MISS if gap < 0 else LINE
        top = min(height(gap), height(0)) - (2 if gap == 0 else 0)
        size = abs(height(gap) - height(0)) or 4
        parts.append(element("rect", x=x, y=top, width=step * 0.75, height=size, fill=color))
    lost, won = sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)
    parts += [
        text("+1", 40, height(1) + 5, fill=MUTED),
        text("0", 40, height(0) + 5, fill=MUTED),
        text("−1", 40, height(-1) + 5, fill=MUTED),
        note(f"{lost} lost", 64, bottom + 26, fill=MISS),
        note(f"{len(gaps) - lost - won} tied", 64 + (lost + 8) * step, bottom + 26),
        note(f"{won} won", 64 + (len(gaps) - won + 8) * step, bottom + 26, fill=HIT),
    ]
    found = verdict.difference
    low, mean, high = (float(each or 0.0) for each in (found.low, found.value, found.high))
    parts += [
        stroke(610, height(low), 610, height(high), INK, stroke_width=2),
        element("circle", cx=610, cy=height(mean), r=5, fill=INK),
        note(f"mean {mean:+.2f}", 626, height(mean) + 5, fill=INK),
        note(f"{low:+.2f} to {high:+.2f}", 606, height(low) + 24),
    ]
    says = f"Per question minilm wins {won}, loses {lost}; the mean difference is {mean:+.2f}"
    return picture(236, says, parts)


def interval() -> str:
    """The same score measured on few and on many questions."""
    place = linear((0.3, 1.0), (150, 600))
    parts = [stroke(150, 150, 600, 150, MUTED)]
    for tick in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        parts += [stroke(place(tick), 150, place(tick), 155, MUTED)]
        parts += [text(f"{tick:.1f}", place(tick), 172, fill=MUTED)]
    for row, queries in enumerate((10, 50, 400)):
        found = findwell.evaluate(
            {f"q{number}": ["hit" if number % 10 < 7 else "miss"] for number in range(queries)},
            {f"q{number}": ["hit"] for number in range(queries)},
            "success@1",
        ).summary.row(0, named=True)
        value, low, high = found["value"], found["low"], found["high"]
        y = 34 + 40 * row
        parts += [note(f"{queries} questions", 20, y + 5, fill=INK)]
        parts += [stroke(place(low), y, place(high), y, SYSTEM_A, stroke_width=3)]
        parts += [element("circle", cx=place(value), cy=y, r=6, fill=SYSTEM_A)]
        parts += [note(f"{low:.2f} to {high:.2f}", 620, y + 5)]
    return picture(190, "The interval of 0.7 with 10, 50 and 400 questions", parts)


def groups() -> str:
    """One passage and one of two: an item is covered by any of its passages."""
    parts = [
        note("the question needs", 20, 30, fill=INK, font_weight="600"),
        box("warranty-5", (40, 48), (130, 34), GOLD),
        text("AND", 200, 70, font_weight="600"),
        element("rect", x=230, y=42, width=330, height=46, rx=8, fill="none", stroke=MUTED),
        box("leasing-1", (242, 48), (130, 34), GOLD),
        text("OR", 395, 70, font_weight="600"),
        box("leasing-4", (418, 48), (130, 34), GOLD),
        note("item 1", 84, 106),
        note("item 2: either one is enough", 300, 106),
        note("retrieved", 20, 150, fill=INK, font_weight="600"),
        note("rank 1", 40, 188),
        box("leasing-4", (100, 168), (130, 30), FOUND),
        note("covers item 2", 246, 188, fill=HIT),
        note("rank 2", 40, 228),
        box("warranty-5", (100, 208), (130, 30), FOUND),
        note("covers item 1", 246, 228, fill=HIT),
        note("recall@1 = 1 of 2 items", 420, 188, fill=INK),
        note("recall@2 = 2 of 2 items", 420, 228, fill=INK),
    ]
    return picture(256, "Two items: warranty-5, and either leasing-1 or leasing-4", parts)


def spans() -> str:
    """One label as a place in a document, and two chunkings of it."""
    place = linear((0, 1000), (150, 690))

    def bar(reach: tuple[float, float], y: float, content: str, look: Look = PLAIN) -> str:
        low, high = reach
        start, width = place(low), place(high) - place(low)
        return box(content, (start + 1, y), (width - 2, 30), look)

    gold = (430, 640)
    parts = [note("document", 20, 50, fill=INK), bar((0, 1000), 30, "")]
    parts += [bar(gold, 30, "gold span", GOLD)]
    for row, size in enumerate((500, 200)):
        y = 90 + 60 * row
        parts.append(note(f"chunks of {size}", 20, y + 20, fill=INK))
        for low in range(0, 1000, size):
            share = max(0, min(low + size, gold[1]) - max(low, gold[0])) / (gold[1] - gold[0])
            content, look = (f"{share:.0%}", FOUND) if share else ("", PLAIN)
            parts.append(bar((low, low + size), y, content, look))
    parts += [dashed(place(edge), 24, place(edge), 186, EDGE) for edge in gold]
    parts += [note("how much of the gold span each chunk holds", 150, 208)]
    return picture(
        224, "A gold span of a document, and the chunks of two sizes that hold it", parts
    )


def judge_matrix() -> str:
    """Claims of the reference against retrieved chunks: one matrix, several measures."""
    claims = ["Clean the disc with alcohol.", "Never use oil.", "New pads need 30 stops."]
    cells = ["✓  ", "   ", " ✓ "]  # by claim, over three chunks
    parts = [note("claims of the reference answer", 20, 34, fill=INK, font_weight="600")]
    parts += [text(f"chunk {chunk}", 330 + 90 * chunk, 34, fill=MUTED) for chunk in (1, 2, 3)]
    for row, (claim, marks) in enumerate(zip(claims, cells, strict=True)):
        y = 48 + 40 * row
        parts.append(note(claim, 20, y + 22))
        for chunk, sign in enumerate(marks):
            look = FOUND if sign == "✓" else PLAIN
            parts.append(box(sign.strip() or "–", (382 + 90 * chunk, y), (76, 32), look))
    rows = [any(sign == "✓" for sign in marks) for marks in cells]
    columns = [any(marks[chunk] == "✓" for marks in cells) for chunk in range(3)]
    parts += [
        note(f"context recall = {sum(rows)} of {len(rows)} claims have a ✓ in their row", 20, 196),
        note(f"{sum(columns)} of {len(columns)} chunks have a ✓ in their column", 20, 220),
    ]
    return picture(240, "A judge fills a table of claims and chunks; measures read it", parts)


def pooling() -> str:
    """The first passages of several systems become one pool to label."""
    lists = {"bm25": "abcd", "minilm": "bdef", "hybrid": "bage"}
    depth, parts = 3, [note("first 3 of each system", 20, 30, fill=INK, font_weight="600")]
    pool: list[str] = []
    for column, (system, docs) in enumerate(lists.items()):
        x = 20 + 110 * column
        parts.append(text(system, x + 45, 58, fill=MUTED))
        for rank, doc in enumerate(docs):
            inside = rank < depth
            pool += [doc] if inside and doc not in pool else []
            parts.append(box(doc, (x, 70 + 38 * rank), (90, 30), GOLD if inside else PLAIN))
    parts += [dashed(16, 182, 334, 182), text("→", 372, 130, font_size=26)]
    parts += [note("the pool: each passage is labelled once", 410, 58, fill=INK)]
    for number, doc in enumerate(sorted(pool)):
        at = (410 + 58 * (number % 5), 70 + 38 * (number // 5))
        parts.append(box(doc, at, (50, 30), GOLD))
    parts += [note("What no system finds in its first 3", 410, 172)]
    parts += [note("stays unjudged, not wrong.", 410, 192)]
    return picture(240, "Three lists are cut at 3 and joined into one pool of passages", parts)


def fusion() -> str:
    """Two lists fused by reciprocal ranks."""
    lists = {"bm25": ["a", "b", "c", "d"], "minilm": ["b", "e", "a", "f"]}
    scores = {
        doc: sum(1 / (60 + docs.index(doc) + 1) for docs in lists.values() if doc in docs)
        for doc in dict.fromkeys(doc for docs in lists.values() for doc in docs)
    }
    parts = []
    for column, (system, docs) in enumerate(lists.items()):
        x = 30 + 120 * column
        parts.append(text(system, x + 45, 30, fill=(SYSTEM_A, SYSTEM_B)[column]))
        for rank, doc in enumerate(docs):
            color = (SYSTEM_A, SYSTEM_B)[column]
            parts.append(box(doc, (x, 42 + 38 * rank), (90, 30), (PLAIN[0], color)))
    parts += [text("→", 290, 120, font_size=26), note("fused: 1/(60 + rank), added up", 340, 30)]
    for rank, (doc, score) in enumerate(sorted(scores.items(), key=lambda pair: -pair[1])[:4]):
        terms = [f"1/{60 + docs.index(doc) + 1}" for docs in lists.values() if doc in docs]
        y = 42 + 38 * rank
        look = FOUND if len(terms) > 1 else PLAIN
        parts += [box(doc, (340, y), (90, 30), look), note(" + ".join(terms), 446, y + 20)]
        parts += [note(f"= {score:.4f}", 560, y + 20, fill=INK)]
    parts += [note("Passages that both systems find rise to the top.", 340, 214)]
    return picture(232, "Two ranked lists become one by adding up reciprocal ranks", parts)


def ingredients() -> str:
    """From what was retrieved and what is needed to one number."""
    run, gold = {"q": ["brakes-2", "noise-1", "brakes-3"]}, {"q": ["brakes-3", "noise-2"]}
    value = findwell.evaluate(run, gold, "recall@3").values["recall@3"]
    heads = ("run", "gold labels", "relation", "value", "mean")
    parts = [
        note(head, 20 + 142 * at, 30, fill=INK, font_weight="600") for at, head in enumerate(heads)
    ]
    for rank, doc in enumerate(run["q"]):
        look = FOUND if doc in gold["q"] else PLAIN
        parts.append(box(doc, (20, 44 + 40 * rank), (100, 30), look))
    for row, doc in enumerate(gold["q"]):
        parts.append(box(doc, (162, 44 + 40 * row), (100, 30), GOLD))
        found = doc in run["q"]
        says = f"✓ rank {run['q'].index(doc) + 1}" if found else "not found"
        parts.append(box(says, (304, 44 + 40 * row), (100, 30), FOUND if found else PLAIN))
    parts += [box(f"{value:.1f}", (446, 64), (100, 30)), note("recall@3", 446, 116)]
    parts += [note("over all", 588, 74), note("questions", 588, 94)]
    parts += [
        text(sign, x, 84, font_size=20)
        for sign, x in (("×", 141), ("→", 283), ("→", 425), ("→", 567))
    ]
    return picture(176, "Run and gold labels give a relation, a value and a mean", parts)


def readers() -> str:
    """Which measure fits, by what the reader does with the list."""
    rows = [
        ("takes the first hit", "RR, success@K", "a search box, a lookup"),
        ("reads all of the first K", "recall@K, P@K", "a prompt with K passages"),
        ("needs every part", "all_found@K", "a question of several hops"),
        ("reads from the top", "nDCG@K", "grades, the best ones first"),
    ]
    parts = [note("who reads …", 20, 30, fill=INK, font_weight="600")]
    parts += [note("measure", 300, 30, fill=INK, font_weight="600"), note("for example", 500, 30)]
    for row, (reader, measure, example) in enumerate(rows):
        y = 46 + 42 * row
        parts += [box(reader, (20, y), (210, 32)), text("→", 262, y + 22, font_size=20)]
        parts += [box(measure, (300, y), (160, 32), FOUND), note(example, 500, y + 21)]
    return picture(226, "The measure follows from what the reader does with the list", parts)


def alarm() -> str:
    """The evidence that a hit rate has fallen, before and after it did."""
    change, after, baseline, needed = 400, 200, 0.7, 20.0
    values = np.random.default_rng(8).random(change + after) < np.repeat(
        [0.7, 0.5], [change, after]
    )
    capital = change_evidence(values.astype(float), baseline)
    raised = int(np.flatnonzero(capital >= log(needed))[0])
    x, y = linear((0, change + after), (90, 690)), linear((log(0.5), log(1000)), (180, 24))
    line = " ".join(
        f"{x(at):.1f},{y(min(max(each, log(0.5)), log(1000))):.1f}"
        for at, each in enumerate(capital)
    )
    parts = [stroke(90, 180, 690, 180, MUTED)]
    parts += [note(f"{each:,.0f}", 40, y(log(each)) + 5) for each in (1, needed, 300)]
    parts += [dashed(90, y(log(needed)), 690, y(log(needed)), MISS)]
    parts += [dashed(x(change), 24, x(change), 180), note("0.70 → 0.50", x(change) - 96, 200)]
    parts += [element("polyline", points=line, fill="none", stroke=SYSTEM_A, stroke_width=2)]
    parts += [element("circle", cx=x(raised), cy=y(capital[raised]), r=6, fill=MISS)]
    parts += [
        note(
            f"alarm after {raised + 1 - change} questions",
            690,
            60,
            fill=MISS,
            text_anchor="end",
        )
    ]
    parts += [note("evidence", 20, 20), note("questions", 620, 200)]
    says = f"The evidence passes 20 within {raised + 1 - change} questions of the change"
    return picture(216, says, parts)


def gate() -> str:
    """Three thresholds and one interval: pass, undecided, fail."""
    run, gold = DEMO / "minilm.trec", DEMO / "questions.jsonl"
    result = findwell.evaluate(run, gold, "recall@5")
    found = result.summary.row(0, named=True)
    place, looks = linear((0.55, 1.0), (220, 620)), {"pass": HIT, "undecided": EDGE, "fail": MISS}
    parts = [note(f"{tick:.1f}", place(tick) - 9, 176) for tick in (0.6, 0.7, 0.8, 0.9, 1.0)]
    parts += [stroke(220, 156, 620, 156, MUTED)]
    for row, least in enumerate((0.7, 0.8, 0.9)):
        y, outcome = 34 + 42 * row, findwell.gate(result, f"recall@5>={least}").outcome
        color = looks[outcome]
        parts += [note(f"recall@5>={least}", 20, y + 5, fill=INK)]
        parts += [dashed(place(least), y - 14, place(least), y + 14)]
        parts += [stroke(place(found["low"]), y, place(found["high"]), y, color, stroke_width=3)]
        parts += [element("circle", cx=place(found["value"]), cy=y, r=6, fill=color)]
        parts += [note(outcome, 640, y + 5, fill=color)]
    return picture(196, "An interval above the threshold passes, one across it is undecided", parts)


def streaming() -> str:
    """A run is read block by block; only gold labels and values stay in memory."""
    blocks = ("q1 … q90", "q91 … q180", "q181 … q270", "…")
    parts = [note("run, on disk", 20, 28, fill=INK, font_weight="600")]
    for at, block in enumerate(blocks):
        look = FOUND if at == 1 else PLAIN
        parts.append(box(block, (20 + 118 * at, 42), (108, 30), look))
    parts += [text("↓", 192, 96, font_size=20), note("one block at a time", 210, 96)]
    parts += [box("match and measure", (120, 108), (146, 32), FOUND)]
    parts += [box("gold labels", (20, 164), (110, 30), GOLD), text("↗", 140, 158, font_size=20)]
    parts += [box("values", (256, 164), (110, 30), GOLD), text("↘", 248, 158, font_size=20)]
    parts += [note("Only these two grow in memory.", 384, 184)]
    return picture(
        210, "A run is read in blocks; only gold labels and values stay in memory", parts
    )


PICTURES = {
    "streaming": streaming,
    "ingredients": ingredients,
    "readers": readers,
    "alarm": alarm,
    "gate": gate,
    "failures": failures,
    "ranked-list": ranked_list,
    "interval": interval,
    "differences": differences,
    "groups": groups,
    "spans": spans,
    "judge-matrix": judge_matrix,
    "pooling": pooling,
    "fusion": fusion,
}


def main() -> None:
    """Draw all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
