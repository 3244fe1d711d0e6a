"""A printed fix is safe: for every kind of finding, the fix is applied and the number is right.

Each case raises its finding, names words of the fix that it applies, applies it, and compares the
value with one worked out by hand.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import findwell
from findwell.core.findings import FindingKind
from findwell.evaluation.plan import grouped

NAN = float("nan")
SRC = Path(findwell.__file__).parent
MAKERS = ("Finding", "finding_about", "finding_about_rows")


@dataclass(frozen=True)
class Case:
    """Inputs that raise a finding, words of its fix, and the inputs to which it was applied."""

    kind: str
    words: str  # of the fix: what is applied
    given: dict[str, Any]
    fixed: dict[str, Any]  # what differs from `given`
    right: float
    measure: str = "recall"
    files: dict[str, str] = field(default_factory=dict)  # inputs that are files, by their name


def span(doc: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"doc": doc, "start": start, "end": end, **more}


CHUNK = {"page_content": "It lasts four hours.", "metadata": {"part": "p1", "source": "a.md"}}
OTHER = {"page_content": "Call a dealer.", "metadata": {"part": "p2", "source": "a.md"}}
FILE = {"a.md": "It lasts four hours. Call a dealer."}
LABEL = {"query": "q", "gold": [span("a.md", 0, 20)]}


def quotes(*golds: str, **more: Any) -> list[dict[str, Any]]:
    """Return a record whose first gold text was retrieved."""
    return [
        {
            "query": "q",
            "retrieved": [{"doc": "c", "text": golds[0]}],
            "gold": [{"doc": f"g{n}", "text": text} for n, text in enumerate(golds)],
            **more,
        }
    ]


CASES = [
    Case(
        "extra-query",
        "add its judgements to the gold",
        {"run": {"q": ["a"], "p": ["x", "b"]}, "gold": {"q": ["a"]}},
        {"gold": {"q": ["a"], "p": ["b"]}},
        (1 + 1 / 2) / 2,
        "RR",
    ),
    Case(
        "unsorted",
        "turn the scores around",
        {
            "run": pl.DataFrame({"query": ["q", "q"], "doc": ["a", "x"], "score": [0.1, 0.9]}),
            "gold": {"q": ["a"]},
        },
        {"run": pl.DataFrame({"query": ["q", "q"], "doc": ["a", "x"], "score": [-0.1, -0.9]})},
        1.0,
        "RR",
    ),
    Case(
        "unsorted",
        "sort each list by them",
        {
            "run": {"q": [{"doc": "x", "score": 0.1}, {"doc": "a", "score": 0.9}]},
            "gold": {"q": ["a"]},
        },
        {"run": {"q": [{"doc": "a", "score": 0.9}, {"doc": "x", "score": 0.1}]}},
        1.0,
        "RR",
    ),
    Case(
        "unread-grade",
        "--map gold.hit=grade",
        {
            "run": {"q": ["x", "a"]},
            "gold": pl.DataFrame({"query": ["q", "q"], "doc": ["x", "a"], "hit": [False, True]}),
        },
        {"fields": {"gold.hit": "grade"}},
        1 / 2,
        "RR",
    ),
    Case(
        "rising-scores",
        "turn their signs around",
        {"run": {"q": dict(zip("abcdef", range(6), strict=True))}, "gold": {"q": ["a"]}},
        {"run": {"q": dict(zip("abcdef", range(0, -6, -1), strict=True))}},
        1.0,
        "RR",
    ),
    Case(
        "joined-ids",
        'write a list of ids, such as ["a", "b"]',
        {"run": {"q": ["x", "a"], "p": ["d"]}, "gold": {"q": "a,b", "p": "d"}, "by": "ids"},
        {"gold": {"q": ["a", "b"], "p": "d"}},
        (1 / 2 + 1) / 2,
    ),
    Case(
        "duplicate-document",
        "remove repetitions before ranking",
        {"run": {"q": ["x", "x", "a"]}, "gold": {"q": ["a"]}},
        {"run": {"q": ["x", "a"]}},
        1 / 2,
        "RR",
    ),
    Case(
        "nan-score",
        "find out why the retriever gave no score",
        {"run": {"q": {"a": NAN, "x": 0.5}}, "gold": {"q": ["a"]}},
        {"run": {"q": {"a": 0.9, "x": 0.5}}},
        1.0,
        "RR",
    ),
    Case(
        "no-relevant-item",
        "label documents for them",
        {"run": {"q": ["a", "x"], "p": ["b"]}, "gold": {"q": {"a": 0}, "p": {"b": 1}}},
        {"gold": {"q": {"a": 0, "x": 1}, "p": {"b": 1}}},
        (1 / 2 + 1) / 2,
        "RR",
    ),
    Case(
        "retrieved-nothing",
        "find out why the retriever came back with nothing",
        {"run": {"q": [], "p": ["b"]}, "gold": {"q": ["a"], "p": ["b"]}},
        {"run": {"q": ["a"], "p": ["b"]}},
        1.0,
    ),
    Case(
        "missing-query",
        "run the retriever on every query",
        {"run": {"p": ["b"]}, "gold": {"q": ["a", "c"], "p": ["b"]}},
        {"run": {"q": ["a"], "p": ["b"]}},
        (1 / 2 + 1) / 2,
    ),
    Case(
        "no-shared-document",
        "use --read ids=chunk-to-doc:#",
        {"run": {"q": ["a#1", "b#1"]}, "gold": {"q": ["a", "c"]}, "by": "ids"},
        {"ids": "chunk-to-doc:#"},
        1 / 2,
    ),
    Case(
        "other-spelling",
        "use --read ids=lower",
        {"run": {"q": ["a", "Setup"]}, "gold": {"q": ["a", "setup"]}},
        {"ids": "lower"},
        1.0,
    ),
    Case(  # equal numbers may be chance: only if they are not
        "no-shared-document",
        "if equal numbers mean the same document, use --read ids='regex:(\\d+)\\D*$'",
        {"run": {"q": ["doc7", "doc1"]}, "gold": {"q": ["7", "8"]}},
        {"ids": r"regex:(\d+)\D*$"},
        1 / 2,
    ),
    Case(  # chunks of places are never made documents
        "no-shared-document",
        "compare places with --by spans",
        {
            "run": [{"query": "q", "retrieved": [span("a.md:0", 0, 5, source="a.md")]}],
            "gold": [{"query": "q", "gold": [span("a.md", 0, 20)]}],
            "by": "ids",
        },
        {"by": "spans"},
        0.0,
    ),
    Case(
        "only-ids",
        "--by containment, rouge or exact compares texts",
        {"run": quotes("It lasts four hours.")},
        {"by": "exact"},
        1.0,
    ),
    Case(
        "only-ids",
        "--by ids says that ids are meant",
        {"run": quotes("It lasts four hours.")},
        {"by": "ids"},
        0.0,
    ),
    Case(
        "cut-texts",
        "save them as JSON instead",
        {"run": [{"input": "?", "retrieval_context": "a|b|c", "context": "a|b|d"}], "by": "exact"},
        {"run": [{"input": "?", "retrieval_context": ["a|b", "c"], "context": ["a|b", "d"]}]},
        1 / 2,
    ),
    Case(
        "gold-duplicate",
        "remove the repeated judgements",
        {"run": {"q": ["a"]}, "gold": {"q": ["a", "a", "b"]}},
        {"gold": {"q": ["a", "b"]}},
        1 / 2,
    ),
    Case(  # two places of one document are not repeated judgements
        "gold-duplicate",
        "--by spans compares places",
        {
            "run": [{"query": "q", "retrieved": [span("a.md", 0, 10)]}],
            "gold": [{"query": "q", "gold": [span("a.md", 0, 10), span("a.md", 20, 30)]}],
            "by": "ids",
        },
        {"by": "spans"},
        1 / 2,
    ),
    Case(
        "gold-conflict",
        "keep one judgement for each document",
        {
            "run": {"q": ["a", "b"]},
            "gold": pl.DataFrame({"query": ["q"] * 3, "doc": ["a", "a", "b"], "grade": [0, 1, 1]}),
        },
        {"gold": {"q": {"a": 0, "b": 1}}},
        1 / 2,
        "P@2",
    ),
    Case(
        "mixed-grades",
        "give the documents of a group the same grade",
        {
            "run": {"q": ["a", "c"]},
            "gold": pl.DataFrame(
                {
                    "query": ["q"] * 3,
                    "doc": ["a", "b", "c"],
                    "grade": [1, 3, 1],
                    "group": ["g", "g", None],
                }
            ),
        },
        {
            "gold": pl.DataFrame(
                {
                    "query": ["q"] * 3,
                    "doc": ["a", "b", "c"],
                    "grade": [1, 1, 1],
                    "group": ["g", "g", None],
                }
            )
        },
        1.0,
        "nDCG",
    ),
    Case(
        "no-label",
        "label it, or remove it",
        {
            "run": {"q": ["a"]},
            "gold": pl.DataFrame(
                {
                    "query": ["q", "q"],
                    "doc": ["a", "b"],
                    "label": [1, None],
                    "annotator": ["x", "x"],
                }
            ),
        },
        {
            "gold": pl.DataFrame(
                {"query": ["q", "q"], "doc": ["a", "b"], "label": [1, 1], "annotator": ["x", "x"]}
            )
        },
        1 / 2,
    ),
    Case(
        "id-from-metadata",
        "--read id_from=metadata.chunk_id (id_from=)",
        {
            "run": {"q": [{"page_content": "x", "metadata": {"chunk_id": "c1"}}]},
            "gold": {"q": ["c1"]},
        },
        {"id_from": "metadata.chunk_id"},
        1.0,
    ),
    Case(
        "shared-id",
        "name a field that differs for each chunk",
        {
            "run": {"q": [CHUNK, OTHER]},
            "gold": {"q": ["p2"]},
            "id_from": "metadata.source",
            "by": "ids",
        },
        {"id_from": "metadata.part"},
        1 / 2,
        "RR",
    ),
    Case(
        "text-as-id",
        "name the field that holds one (--read id_from",
        {"run": {"q": [CHUNK, OTHER]}, "gold": {"q": ["p2"]}, "by": "ids"},
        {"id_from": "metadata.part"},
        1 / 2,
        "RR",
    ),
    Case(
        "text-as-id",
        "match texts (--by rouge)",
        {
            "run": {"q": [OTHER, CHUNK]},
            "gold": {"q": [{"doc": "g", "text": "it lasts four hours"}]},
            "by": "ids",
        },
        {"by": "rouge"},
        1 / 2,
        "RR",
    ),
    Case(
        "text-as-id",
        'match by similar text (--by rouge, by="rouge")',
        {
            "run": [
                {
                    "question": "q",
                    "retrieved_contexts": ["Four hours!"],
                    "reference_contexts": ["four hours"],
                }
            ]
        },
        {"by": "rouge"},
        1.0,
    ),
    Case(
        "id-type-mix",
        "use one type for all ids",
        {"run": {"1": ["a"], 2: ["b"]}, "gold": {"1": ["a"], "2": ["b"]}},
        {"run": {"1": ["a"], "2": ["b"]}},
        1.0,
    ),
    Case(
        "two-names",
        "drop or rename what should not count",
        {
            "run": pl.DataFrame(
                {"query": ["q"], "doc_id": ["d"], "chunk_id": ["c"], "score": [1.0]}
            ),
            "gold": {"q": ["c"]},
            "by": "ids",  # otherwise the error about ids names the column
        },
        {"run": pl.DataFrame({"query": ["q"], "chunk_id": ["c"], "score": [1.0]})},
        1.0,
    ),
    Case(
        "skipped-record",
        "correct the input",
        {
            "run": [{"query": "q", "retrieved": ["a"]}, {"query": "p"}],
            "gold": {"q": ["a"], "p": ["b"]},
            "skip_bad": True,
        },
        {"run": [{"query": "q", "retrieved": ["a"]}, {"query": "p", "retrieved": ["b"]}]},
        1.0,
    ),
    Case(
        "repeated-field",
        "keep one of them",
        {"gold": {"q": ["a"]}},
        {},
        1.0,
        files={
            "run": '{"query": "q", "topic": "x", "topic": "y", "retrieved": ["a"]}\n',
            "fixed": '{"query": "q", "topic": "y", "retrieved": ["a"]}\n',
        },
    ),
    Case(
        "padded-id",
        "write ids without blanks around them",
        {"gold": {"q": ["a"]}},
        {},
        1.0,
        files={"run": "query,doc,score\nq, a ,1\n", "fixed": "query,doc,score\nq,a,1\n"},
    ),
    Case(
        "joined-by-position",
        "give every record the id of its query",
        {"run": [{"retrieved": ["a"]}, {"retrieved": ["x"]}], "gold": {"q": ["a"], "p": ["b"]}},
        {"run": [{"query": "q", "retrieved": ["a"]}, {"query": "p", "retrieved": ["x"]}]},
        1 / 2,
    ),
    Case(
        "joined-by-question",
        "give every record the id of its query",
        {
            "run": [{"question": "Why?", "retrieved": ["a"]}],
            "gold": [{"query": "q", "question": "Why?", "gold": ["a", "b"]}],
        },
        {"run": [{"query": "q", "retrieved": ["a"]}]},
        1 / 2,
    ),
    Case(
        "dangling-id",
        "check that run, gold and corpus are of the same version",
        {"run": {"q": ["a", "old"]}, "gold": {"q": ["a"]}, "corpus": {"a": "x", "new": "y"}},
        {"run": {"q": ["a", "new"]}},
        1 / 2,
        "P@2",
    ),
    Case(
        "empty-span",
        "give the character after the last one as end",
        {
            "run": [{"query": "q", "retrieved": [span("a.md", 0, 20)]}],
            "gold": [{"query": "q", "gold": [span("a.md", 5, 5), span("a.md", 30, 40)]}],
        },
        {"gold": [{"query": "q", "gold": [span("a.md", 5, 9), span("a.md", 30, 40)]}]},
        1 / 2,
    ),
    Case(
        "span-beyond-end",
        "offsets count its characters from 0",
        {
            "run": [{"query": "q", "retrieved": [span("a.md", 0, 20)]}],
            "gold": [{"query": "q", "gold": [span("a.md", 0, 90)]}],
            "corpus": FILE,
        },
        {"gold": [{"query": "q", "gold": [span("a.md", 0, 20)]}]},
        1.0,
    ),
    Case(
        "span-beyond-end",
        "index this version of the document",
        {
            "run": [{"query": "q", "retrieved": [span("a.md", 0, 500)]}],
            "gold": [{"query": "q", "gold": [span("a.md", 0, 20)]}],
            "corpus": FILE,
        },
        {"run": [{"query": "q", "retrieved": [span("a.md", 0, 20)]}]},
        1.0,
    ),
    Case(
        "no-place",
        "give start and end",
        {"run": [{"query": "q", "retrieved": [span("a.md", 30, 35), "c9"]}], "gold": [LABEL]},
        {
            "run": [
                {
                    "query": "q",
                    "retrieved": [span("a.md", 30, 35), span("c9", 0, 20, source="a.md")],
                }
            ]
        },
        1 / 2,
        "RR",
    ),
    Case(
        "no-text",
        "give texts next to the places, or a corpus",
        {
            "run": [
                {"query": "q", "retrieved": [span("a.md", 0, 20, text="It lasts four hours.")]}
            ],
            "gold": [
                {
                    "query": "q",
                    "gold": [
                        span("a.md", 0, 20, quote="It lasts four hours."),
                        span("a.md", 21, 35),
                    ],
                }
            ],
            "by": "spans",
        },
        {"corpus": FILE},
        4 / 7,
        "recall/span-words",
    ),
    Case(
        "lost-quote",
        "complete the corpus",
        {
            "run": [{"query": "q", "retrieved": [{"doc": "c", "text": "Call a dealer."}]}],
            "gold": [
                {
                    "query": "q",
                    "gold": [{"quote": "Call a dealer."}, {"quote": "Wait a day for it."}],
                }
            ],
            "by": "spans",
            "corpus": FILE,
        },
        {"corpus": {**FILE, "b.md": "Wait a day for it."}},
        1 / 2,
    ),
    Case(
        "ambiguous-quote",
        "give start and end",
        {
            "run": [{"query": "q", "retrieved": [span("b.md", 5, 19)]}],
            "gold": [{"query": "q", "gold": [{"quote": "Call a dealer."}]}],
            "by": "spans",
            "corpus": {**FILE, "b.md": "Then Call a dealer."},
        },
        {"gold": [{"query": "q", "gold": [span("b.md", 5, 19)]}]},
        1.0,
    ),
    Case(
        "equal-gold",
        "keep one of them",
        {"run": quotes("Four hours.", "four hours", "A day."), "by": "exact"},
        {"run": quotes("Four hours.", "A day.")},
        1 / 2,
    ),
    Case(
        "blank-text",
        "remove it",
        {"run": quotes("Four hours.", "…"), "by": "exact"},
        {"run": quotes("Four hours.")},
        1.0,
    ),
    Case(
        "alternatives-dropped",
        "match by chunk",
        {
            "run": [
                {
                    "query": "q",
                    "retrieved": [{"doc": "c", "text": "Two."}],
                    "gold": [[{"quote": "One."}, {"quote": "Two."}]],
                }
            ],
            "by": "rouge-sentence",
        },
        {"by": "rouge"},
        1.0,
    ),
    Case(
        "tied-scores",
        "break ties in the retriever",
        {"run": {"q": {"a": 0.5, "x": 0.5}}, "gold": {"q": ["a"]}},
        {"run": {"q": {"a": 0.6, "x": 0.5}}},
        1.0,
        "RR",
    ),
    Case(
        "tied-scores",
        "pass ranked lists without scores",
        {"run": {"q": {"a": 0.5, "x": 0.5}}, "gold": {"q": ["a"]}},
        {"run": {"q": ["a", "x"]}},
        1.0,
        "RR",
    ),
    Case(
        "iteration-column",
        "use --read gold_format=subtopic-qrels",
        {"run": {"q": ["a", "b", "c"]}},
        {"gold_format": "subtopic-qrels"},
        1.0,
        files={"gold": "q 1 a 1\nq 1 b 1\nq 2 c 1\n"},
    ),
    Case(
        "blank-in-id",
        "give ids without blanks",
        {"gold": {"q": ["ab"]}},
        {},
        1.0,
        files={"run": "q\tQ0\ta b\t1\t1\tt\n", "fixed": "q\tQ0\tab\t1\t1\tt\n"},
    ),
    Case(
        "text-behind-tag",
        "check that no id contains a blank",
        {"gold": {"q": ["a"]}},
        {},
        1.0,
        files={"run": "q Q0 a 1 1 t more\n", "fixed": "q Q0 a 1 1 t\n"},
    ),
    Case(
        "failed-query",
        "look at the reasons",
        {
            "run": lambda question: None if "2" in question else ["a"],
            "gold": [{"query": n, "question": f"question {n}", "gold": ["a"]} for n in ("1", "2")],
        },
        {"run": lambda _: ["a"]},
        1.0,
    ),
    Case(
        "id-as-text",
        "name a corpus if these are ids",
        {"run": {"q": ["é1"]}, "gold": {"q": [{"quote": "Four hours."}]}, "by": "rouge"},
        {"corpus": {"é1": "four hours"}},
        1.0,
    ),
    Case(
        "unknown-text",
        "complete the corpus",
        {
            "run": {"q": ["c1", "c2"]},
            "gold": {"q": ["c2"]},
            "by": "exact",
            "corpus": {"c2": "Two."},
        },
        {"corpus": {"c1": "One.", "c2": "Two."}},
        1 / 2,
        "RR",
    ),
]

# kinds whose fix does not change a number of the evaluation that raises them, and why
OUTSIDE = {
    "asked-again": "traces: tests/read",
    "bare-text": "counted, never reported",
    "below-window": "fusion: tests/tuning",
    "cut-label": "chunks and documents: tests/evaluation/test_chunking.py",
    "disputed-label": "labels of people: tests/labels",
    "dropped-document": "fusion: tests/tuning",
    "empty-query": "pools: tests/labels",
    "equal-scores": "fusion: tests/tuning",
    "failed-setting": "tuning: tests/tuning",
    "few-shared-documents": "fusion: tests/tuning/test_overlap.py",
    "few-queries": "tuning: asks for more labels",
    "judge-failed": "a judge: tests/judges",
    "judge-limits": "a judge: tells what it is worth, no fix",
    "left-out-text": "chunks and documents: tests/evaluation/test_chunking.py",
    "not-remembered": "tuning: tests/tuning/test_history.py",
    "retriever-asked-again": "a retriever: tests/retrievers/test_retrieve.py",
    "reused-held-out": "tuning: tests/tuning/test_history.py",
    "short-list": "asks for longer lists: tests/measures/test_budgets.py",
    "left-out-query": "tuning: tests/tuning",
    "lost-chunk": "anchoring: tests/labels/test_anchor.py",
    "incomplete-trace": "traces: tests/read",
    "malformed-trace": "traces: tests/read",
    "misfit-offsets": "synthetic questions: tests/labels",
    "negative-scores": "fusion: tests/tuning",
    "no-question": "pools: tests/labels",
    "not-judged": "pools: tests/labels",
    "other-choice": "comparison of saved results: tests/comparison",
    "other-configuration": "kept answers: tests/retrievers",
    "other-gold": "comparison of saved results: tests/comparison",
    "partly-labelled": "estimates: tests/labels",
    "query-left-empty": "anchoring: no fix",
    "replaced-gold": "a gold with two references for a query: the same as without the first",
    "resumed-answer": "kept answers: tests/retrievers",
    "sampled-queries": "Spark: asks to look at another table",
    "shared-query": "comparison: no fix",
    "single-label": "labels of people: tests/labels",
    "synthetic-question": "asks for questions of users",
    "circular-judge": "asks for another judge, or labels of people",
    "judge-yes-rate": "asks for a comparison, or another threshold",
    "unchecked-judge": "asks for a card of the judge",
    "uncalibrated-judge": "asks for labels that set the threshold",
    "too-few-questions": "synthetic questions: tests/labels",
    "uncalibrated-threshold": "a threshold: needs labelled pairs",
    "undefined-query": "tuning: no fix",
    "unpaired-query": "comparison: no fix",
    "cut-text": "a judge: tests/judges/test_reranker.py",
    "unproven-verdict": "a judge: asks to look",
    "unshared-query": "fusion: tests/tuning",
    "unused-split": "a folder of BEIR: tests/read",
    **dict.fromkeys(
        ("unread-text", "perhaps-unread-text", "unread-language", "unmeasured-language"),
        "a model of embeddings or a judge, and a language: tests/relate/test_semantic.py",
    ),
}


def made_kinds() -> set[str]:
    """Return the kinds of findings that the sources name."""
    found = {str(kind) for kind in FindingKind}
    for path in SRC.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(name in text for name in MAKERS) else ():
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "id", "")
            first = node.args[0]
            if name in MAKERS and isinstance(first, ast.Constant):
                found.add(str(first.value))
    return found


def test_every_kind_has_a_case_or_a_reason() -> None:
    tried = {case.kind for case in CASES}
    assert made_kinds() <= tried | OUTSIDE.keys()
    assert not tried & OUTSIDE.keys()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}: {case.words[:30]}")
def test_a_printed_fix_is_safe(case: Case, tmp_path: Path) -> None:
    given, fixed = dict(case.given), case.given | case.fixed
    for name, text in case.files.items():
        path = tmp_path / f"{name}{'.csv' if ',' in text and '{' not in text else '.txt'}"
        path.write_text(text, encoding="utf-8")
        if name == "fixed":
            fixed["run"] = path
        else:
            given[name] = path
            fixed.setdefault(name, path)
    found = evaluated(given, case.measure)
    fixes = [each.fix for each in found.findings if each.kind == case.kind]
    assert fixes, json.dumps([each.as_dict() for each in found.findings], indent=1)
    assert any(case.words in fix for fix in fixes), fixes
    after = evaluated(fixed, case.measure)
    assert case.kind not in {each.kind for each in after.findings}
    assert after[case.measure] == pytest.approx(case.right)


def evaluated(inputs: dict[str, Any], measure: str) -> findwell.Result:
    options = dict(inputs)
    return findwell.evaluate(
        options.pop("run"), options.pop("gold", None), measure, **grouped(options)
    )
