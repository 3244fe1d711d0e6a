"""Fit the weights of the local judge on public labels, and say how far it agrees with people.

    python examples/maintenance/calibrate_local_judge.py [../shared/data]

Prints the tables of `findwell.judges.local.calibration` and the figures of
docs/local-judge-measured.md. Fitted on:

- relevance: NovelEval (21 questions × 20 passages, graded by people) and ClapNQ (600 questions with
  a passage each, half of which people found to hold no answer);
- statements: ClapNQ's sentences, relevant where at least half of the annotators selected them;
- claims: the sentences of ClapNQ's answers with their passage, and with the two passages most
  like them. Claims in which a number or a name was changed are only measured, never fitted on.

Agreement is cross-validated by question: weights and thresholds never saw the questions they are
measured on. Nothing was fitted on the labels named "held out".
"""

# requirements: findwell[semantic,stats]; some minutes the first time, as every text is embedded
# once

import csv
import json
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from findwell.core.texts.sentences import split
from findwell.judges.embeddings import cached, cosine, find_embedder
from findwell.judges.local import LocalJudge
from findwell.judges.local.calibration import Model, logistic, logit
from findwell.judges.local.clauses import entries_of, find_decomposition
from findwell.judges.local.signals import FINE, LONGEST, compare, often
from findwell.judges.verdicts import Sample
from findwell.statistics.agreement import kappa

DATA = Path(__file__).parents[3] / "shared" / "data"
DEMO = Path(__file__).parents[2] / "src" / "findwell" / "demo"
FOLDS, REPEATS = 10, 10
RIDGE = 1.0
EACH = 400  # what a set of labels weighs, whatever its size
GRID = np.round(np.arange(0.05, 0.96, 0.01), 2)  # thresholds to choose from
SIGNALS: dict[str, dict[str, tuple[str, ...]]] = {
    "text": {"relevance": ("cover", "often"), "claims": ("cover",), "statements": ("cover",)},
    "minilm": {
        "relevance": ("cover", "similarity"),
        "claims": ("cover", "closest"),
        "statements": ("cover", "similarity"),
    },
}
NUMBER = re.compile(r"\b\d[\d,]*\b")
NAME = re.compile(r"(?<=[a-z,] )((?:[A-Z][a-z]{2,} ?){1,3})(?=[ ,.])")
VERB = re.compile(r"\b(?:is|was|are|were|has|had|can|will)\b(?! not)")

MINILM = cached(find_embedder("minilm"))

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Row = tuple[str, str, str, int]  # group, question or claim, chunk, grade


@dataclass(frozen=True)
class Labels:
    """Pairs of a text and a chunk with their grades 0–3, grouped by question."""

    name: str
    pairs: list[tuple[str, str]]
    grades: Ints
    groups: list[str]
    related: bool = True  # words of one root count

    @classmethod
    def of(cls, name: str, rows: Iterable[Row], *, related: bool = True) -> "Labels":
        """Collect rows."""
        groups, texts, chunks, grades = zip(*rows, strict=True)
        pairs = list(zip(texts, chunks, strict=True))
        own = [f"{name} {group}" for group in groups]
        return cls(name, pairs, np.array(grades, dtype=np.int64), own, related)


# --- what people said -----------------------------------------------------------------------------


def records(path: Path) -> list[dict[str, Any]]:
    """Read the JSON objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def noveleval() -> Iterator[Row]:
    """Go through NovelEval; its grade 2, the answer, is findwell's 3."""
    folder = DATA / "noveleval"
    questions, passages = (
        dict(line.split("\t", 1) for line in (folder / name).read_text("utf-8").splitlines())
        for name in ("queries.tsv", "corpus.tsv")
    )
    for line in (folder / "qrels.txt").read_text("utf-8").splitlines():
        query, _, doc, grade = line.split()
        yield query, questions[query], passages[doc], (0, 1, 3)[int(grade)]


def clapnq(*, statements: bool = False) -> Iterator[Row]:
    """Go through ClapNQ's passages, or through their sentences."""
    for kind, grade in (("answerable", 3), ("unanswerable", 0)):
        for record in records(DATA / "clapnq" / f"clapnq_dev_{kind}.jsonl"):
            passage = record["passages"][0]
            if not statements:
                yield record["id"], record["input"], passage["text"], grade
                continue
            for sentence in passage["sentences"]:
                votes = [sentence in each["selected_sentences"] for each in record["output"]]
                chosen = 2 * sum(votes) >= len(votes) > 0 and grade > 0
                yield record["id"], record["input"], sentence, int(chosen)


def claims() -> tuple[list[Row], dict[str, list[Row]]]:
    """Return claims with their own and with other passages, and claims that were changed."""
    answered = records(DATA / "clapnq" / "clapnq_dev_answerable.jsonl")
    passages = [record["passages"][0]["text"] for record in answered]
    titles = [record["passages"][0]["title"] for record in answered]
    answers = split([record["output"][0]["answer"] for record in answered])
    said = [(n, it) for n, found in enumerate(answers) for it in found if len(it.split()) > 3]
    texts = [text for _, text in said]
    pairs = np.divmod(np.arange(len(texts) * len(passages)), len(passages))
    alike = cosine(texts, passages, pairs, MINILM).reshape(len(texts), -1)
    rows: list[Row] = []
    changed: dict[str, list[Row]] = {kind: [] for kind in ("a number", "a name", "a not")}
    names = [match[1].strip() for text in texts for match in NAME.finditer(text)]
    for (number, text), row in zip(said, alike, strict=True):
        others = [it for it in np.argsort(-row) if titles[it] != titles[number]][:2]
        rows.append((str(number), text, passages[number], 1))
        rows += ((str(number), text, passages[other], 0) for other in others)
        for kind, wrong in alter(text, passages[number], names):
            changed[kind].append((str(number), wrong, passages[number], 0))
    return rows, changed


def entries() -> tuple[list[Row], list[Row]]:
    """Return claims that are entries of lists with their passage, and the same with wrong entries.

    A wrong entry is taken from the list of another answer.
    """
    cut = find_decomposition("rules")
    lists = []
    for record in records(DATA / "clapnq" / "clapnq_dev_answerable.jsonl"):
        for sentence in split([record["output"][0]["answer"]])[0]:
            (listed,) = cut([[sentence]])
            own = [
                (claim, entry)
                for claim, entry in zip(listed, entries_of(listed), strict=True)
                if entry
            ]
            if own:
                lists.append((record["id"], own, record["passages"][0]["text"]))
    right = [(query, claim, text, 1) for query, own, text in lists for claim, _ in own]
    wrong = [
        (query, claim.replace(entry, other), text, 0)
        for (query, own, text), (_, others, _) in zip(lists, lists[1:] + lists[:1], strict=True)
        for (claim, entry), (_, other) in zip(own, others, strict=False)
        if other not in text
    ]
    return right, wrong


def alter(text: str, passage: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """Make a claim wrong: another number, another name, a negation."""
    choice = random.Random(text)  # noqa: S311 - not about secrets
    for kind, pattern in (("a number", NUMBER), ("a name", NAME), ("a not", VERB)):
        found = list(pattern.finditer(text))
        if not found:
            continue
        match = choice.choice(found)
        if pattern is NUMBER:
            new = str(int(match[0].replace(",", "")) + choice.randint(1, 11))
        else:
            new = choice.choice(names) if pattern is NAME else f"{match[0]} not"
        if new not in passage:
            yield kind, text[: match.start()] + new + text[match.end() :]


def spans() -> Iterator[Row]:
    """Go through chunks of five corpora: they hold an excerpt that a machine chose, or they do not.

    The chunks are those with an excerpt and the five that share most words with the question, and
    the five most like it.
    """
    folder = DATA / "spans"
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        questions = list(csv.DictReader(file))
    for path in sorted((folder / "corpora").glob("*.md")):
        text = path.read_text("utf-8")
        starts = range(0, len(text), 900)
        chunks = [text[start : start + 900] for start in starts]
        asked = [it for it in questions if it["corpus_id"] == path.stem][:50]
        pairs = [(it["question"], chunk) for it in asked for chunk in chunks]
        seen = compare(pairs, MINILM).columns()
        for number, it in enumerate(asked):
            mine = slice(number * len(chunks), (number + 1) * len(chunks))
            gold = json.loads(it["references"])
            share = [
                max(
                    (min(start + 900, g["end_index"]) - max(start, g["start_index"]))
                    / (g["end_index"] - g["start_index"])
                    for g in gold
                )
                for start in starts
            ]
            best = [
                n for name in ("often", "similarity") for n in np.argsort(-seen[name][mine])[:5]
            ]
            hits = [n for n, part in enumerate(share) if part > 0.9]
            for n in sorted({*best, *hits}):
                if share[n] <= 0 or share[n] > 0.9:
                    yield it["question"], it["question"], chunks[n], int(share[n] > 0)


def demo(*, references: bool = False) -> Iterator[Row]:
    """Go through the demo's gold and the first five passages of its two runs.

    With `references` the sentences of the reference answers are claims: a passage of grade 3
    supports them, one of grade 0 does not.
    """
    passages = {
        it["doc"]: f"{it['title']}. {it['text']}" for it in records(DEMO / "passages.jsonl")
    }
    first: dict[str, set[str]] = {}
    for name in ("bm25.trec", "minilm.trec"):
        for line in (DEMO / name).read_text("utf-8").splitlines():
            query, _, doc, rank, _, _ = line.split()
            if int(rank) <= 5:
                first.setdefault(query, set()).add(doc)
    for it in records(DEMO / "questions.jsonl"):
        graded = {doc: int(gold["grade"]) for gold in it["gold"] for doc in gold["docs"]}
        texts = split([it["reference"]])[0] if references else [it["question"]]
        for doc in sorted(first[it["query"]] | graded.keys()):
            grade = graded.get(doc, 0)
            if not references or grade in (0, 3):
                yield from ((it["query"], text, passages[doc], grade) for text in texts)


# --- fitting --------------------------------------------------------------------------------------


def columns(labels: Labels, names: Sequence[str]) -> Floats:
    """Return the signals of pairs."""
    embedder = None if {*names} <= {"cover", "often"} else MINILM
    found = compare(labels.pairs, embedder, closest="closest" in names, related=labels.related)
    seen = found.columns()
    return np.stack([seen[name] for name in names], axis=1)


def fit(signals: Floats, yes: Ints, weights: Floats) -> tuple[float, Floats]:
    """Fit a logistic regression with a ridge on standardised signals."""
    middle, spread = signals.mean(axis=0), signals.std(axis=0)
    scaled = np.column_stack([np.ones(len(yes)), (signals - middle) / spread])
    sign = 2 * yes - 1

    def loss(given: Floats) -> tuple[float, Floats]:
        margin = sign * (scaled @ given)
        slope = scaled.T @ (-weights * sign / (1 + np.exp(margin)))
        ridge = np.concatenate([[0.0], given[1:]])
        value = (weights * np.logaddexp(0, -margin)).sum() + RIDGE / 2 * (ridge**2).sum()
        return float(value), slope + RIDGE * ridge

    found = minimize(loss, np.zeros(scaled.shape[1]), jac=True).x
    slopes = found[1:] / spread
    return float(found[0] - slopes @ middle), slopes


def balance(sets: Sequence[Labels]) -> Floats:
    """Weigh each set the same, and in it yes and no the same."""
    parts = []
    for labels in sets:
        yes = labels.grades > 0
        each = np.where(yes, 0.5 / yes.mean(), 0.5 / (1 - yes.mean()))
        parts.append(EACH * each / each.sum())
    return np.concatenate(parts)


def quick_kappa(said: NDArray[np.bool_], true: NDArray[np.bool_]) -> float:
    """Return κ of two columns of yes and no; many of these are needed to choose a threshold."""
    chance = said.mean() * true.mean() + (1 - said.mean()) * (1 - true.mean())
    return float(((said == true).mean() - chance) / (1 - chance)) if chance < 1 else 0.0


def threshold(scores: Floats, yes: Ints, where: Sequence[NDArray[np.bool_]]) -> float:
    """Return the threshold with the highest mean κ over the sets; of equals, the middle one."""
    means = [
        np.mean([quick_kappa(scores[it] >= least, yes[it] > 0) for it in where]) for least in GRID
    ]
    best = np.flatnonzero(np.isclose(means, max(means)))
    return float(GRID[best[len(best) // 2]])


def logistics(sums: Floats) -> Floats:
    """Return scores."""
    return np.array([logistic(total) for total in sums])


def cross_validate(sets: Sequence[Labels], names: Sequence[str]) -> dict[str, float]:
    """Return κ of each set with weights and threshold from other questions; mean of repeats."""
    signals = np.concatenate([columns(labels, names) for labels in sets])
    yes = np.concatenate([labels.grades > 0 for labels in sets]).astype(np.int64)
    groups = np.array([group for labels in sets for group in labels.groups])
    home = np.concatenate([[labels.name] * len(labels.grades) for labels in sets])
    weights = balance(sets)
    found: dict[str, list[float]] = {labels.name: [] for labels in sets}
    for repeat in range(REPEATS):
        order = np.random.default_rng(repeat).permutation(np.unique(groups))
        fold = {group: place % FOLDS for place, group in enumerate(order.tolist())}
        folds = np.array([fold[group] for group in groups.tolist()])
        said = np.zeros(len(yes), dtype=bool)
        for number in range(FOLDS):
            train = folds != number
            intercept, slopes = fit(signals[train], yes[train], weights[train])
            scores = logistics(intercept + signals @ slopes)
            inside = [(home == labels.name) & train for labels in sets]
            said[~train] = scores[~train] >= threshold(scores, yes, inside)
        for name, values in found.items():
            values.append(quick_kappa(said[home == name], yes[home == name] > 0))
    return {name: float(np.mean(values)) for name, values in found.items()}


def fitted(sets: Sequence[Labels], names: Sequence[str]) -> Model:
    """Return weights and threshold from all labels, rounded as they are written down."""
    signals = np.concatenate([columns(labels, names) for labels in sets])
    yes = np.concatenate([labels.grades > 0 for labels in sets]).astype(np.int64)
    home = np.concatenate([[labels.name] * len(labels.grades) for labels in sets])
    intercept, slopes = fit(signals, yes, balance(sets))
    intercept, slopes = round(intercept, 2), np.round(slopes, 2)
    scores = logistics(intercept + signals @ slopes)
    where = [home == labels.name for labels in sets]
    first = threshold(scores, yes, where)
    weights = dict(zip(names, slopes.tolist(), strict=True))
    if "often" in weights:  # whatever the length of a chunk: all words of the question are enough
        once = often(1, LONGEST) / FINE
        least = logistic(intercept + weights["cover"] + weights["often"] * once)
        first = min(first, int(100 * least) / 100)
    return Model(intercept, weights, (first,))


def with_grades(model: Model, sets: Sequence[Labels]) -> Model:
    """Add the thresholds of the grades 2 and 3 with the highest mean quadratic κ."""
    names = list(model.weights)
    sums = [model.sums(dict(zip(names, columns(it, names).T, strict=True))) for it in sets]
    least = logit(model.thresholds[0])
    steps = [round(logistic(least + shift), 2) for shift in np.arange(0.4, 2.6, 0.2)]
    candidates = [
        Model(model.intercept, model.weights, (model.thresholds[0], second, third))
        for number, second in enumerate(steps)
        for third in steps[number + 1 :]
    ]

    def quality(candidate: Model) -> float:
        return float(
            np.mean([weighted(candidate, total, it) for total, it in zip(sums, sets, strict=True)])
        )

    return max(candidates, key=quality)


def weighted(model: Model, sums: Floats, labels: Labels) -> float:
    """Return the quadratic κ of grades."""
    said, true = model.grades(sums).tolist(), labels.grades.tolist()
    return kappa(said, true, weights="quadratic").value or 0.0


# --- the figures ----------------------------------------------------------------------------------


def verdicts(judge: LocalJudge, labels: Labels, aspect: str) -> list[int | None]:
    """Return what the judge as it is says of pairs."""
    samples = [
        Sample(
            str(number),
            text,
            (chunk,),
            items={"claims": (text,)},
            parts={"statements": ((chunk,),)},
        )
        for number, (text, chunk) in enumerate(labels.pairs)
    ]
    judged = judge.judge(samples, frozenset({aspect}))
    if aspect == "relevance":
        return [it["relevance"].row[0].value for it in judged]
    rows = [it["claims"].rows if aspect == "claims" else it["statements"].rows for it in judged]
    return [row[0][0].value for row in rows]


def measure(judge: LocalJudge, labels: Labels, aspect: str) -> str:
    """Return a row of the table: κ with its interval, and the shares of yes."""
    said = verdicts(judge, labels, aspect)
    answers, truth = ([int((it or 0) > 0) for it in side] for side in (said, labels.grades))
    found = kappa(answers, truth)
    interval = "" if found.low is None else f" ({found.low:.2f}…{found.high:.2f})"
    graded = ""
    if aspect == "relevance" and len(set(labels.grades.tolist())) > 2:
        quadratic = kappa(said, labels.grades.tolist(), weights="quadratic").value or 0.0
        graded = f", graded {quadratic:.2f}"
    value = 0.0 if found.value is None else found.value
    return (
        f"| {judge.name} | {aspect} | {labels.name} | {len(truth)} | {value:.2f}{interval}{graded} "
        f"| {np.mean(answers):.0%} | {np.mean(truth):.0%} |"
    )


def measure_lists(judge: LocalJudge, rows: list[Row]) -> str:
    """Return how many claims of lists a judge takes for supported, each list judged as a whole."""
    groups: dict[tuple[str, str], list[str]] = {}
    for query, claim, text, _ in rows:
        groups.setdefault((query, text), []).append(claim)
    samples = [
        Sample(query, "", (text,), items={"claims": tuple(claims)})
        for (query, text), claims in groups.items()
    ]
    judged = judge.judge(samples, frozenset({"claims"}))
    said = [row[0].value or 0 for it in judged for row in it["claims"].rows]
    return f"{judge.name}: {sum(said)} of {len(said)} supported"


def main() -> None:
    """Print weights and figures."""
    own, changed = claims()
    sets: dict[str, list[Labels]] = {
        "relevance": [Labels.of("NovelEval", noveleval()), Labels.of("ClapNQ", clapnq())],
        "claims": [Labels.of("ClapNQ answers", own)],
        "statements": [Labels.of("ClapNQ sentences", clapnq(statements=True), related=False)],
    }
    for kind, aspects in SIGNALS.items():
        for aspect, names in aspects.items():
            model = fitted(sets[aspect], names)
            if aspect == "relevance":
                model = with_grades(model, sets[aspect])
            print(f"{kind} {aspect}: {model}")
            print("    cross-validated κ:", cross_validate(sets[aspect], names))
    held_out = [Labels.of("demo (held out)", demo()), Labels.of("spans (held out)", spans())]
    print("| judge | aspect | labels | pairs | κ | judge says yes | people say yes |")
    for judge in (LocalJudge(None), LocalJudge()):
        for labels in [*sets["relevance"], *held_out]:
            print(measure(judge, labels, "relevance"))
        print(measure(judge, sets["claims"][0], "claims"))
        supported = Labels.of("demo references (held out)", demo(references=True))
        print(measure(judge, supported, "claims"))
        for name, rows in changed.items():
            print(measure(judge, Labels.of(name, rows), "claims"))
        print(measure(judge, sets["statements"][0], "statements"))
        for what, rows in zip(("entries of lists", "wrong entries"), entries(), strict=True):
            print(what, measure_lists(judge, rows))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        DATA = Path(sys.argv[1])
    main()
