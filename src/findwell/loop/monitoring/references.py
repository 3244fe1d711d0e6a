"""What signals are compared with: a corpus, the questions of the evaluation, a language."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from findwell.core.errors import OptionError
from findwell.core.texts.languages import ENGLISH, find_code
from findwell.io.read.corpus import load_corpus
from findwell.io.read.queries import load_queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from findwell.loop.monitoring.signals import Signal

NEEDED = {"corpus": "a corpus", "questions": "questions of an evaluation", "judge": "a judge"}
FIXES = {
    "corpus": "name the documents that can be retrieved: --corpus FILE (corpus=)",
    "questions": "name the questions of the evaluation: --questions FILE (questions=)",
    "judge": "judged signals are asked for with --judge NAME (judge=)",
}


@dataclass(frozen=True, slots=True)
class References:
    """What is known beside the traces.

    `corpus` has the columns of `findwell.load_corpus`, `questions` are those of the evaluation set,
    `embedder` compares questions with these, `expected_language` is the one that questions
    are expected in, and `date_key` the key of the documents' metadata that holds their date, if not
    a usual one.
    """

    corpus: pl.DataFrame | None = None
    questions: Sequence[str] = field(default=())
    embedder: object = "minilm"
    expected_language: str = ENGLISH
    date_key: str | None = None

    @classmethod
    def of(
        cls,
        *,
        corpus: object = None,
        questions: object = None,
        embedder: object = None,
        expected_language: str = ENGLISH,
        date_key: str | None = None,
    ) -> References:
        """Read what is given: paths, frames, records or plain lists."""
        return cls(
            corpus=None if corpus is None else load_corpus(corpus),
            questions=() if questions is None else _asked(questions),
            embedder="minilm" if embedder is None else embedder,
            expected_language=find_code(expected_language),
            date_key=date_key,
        )

    def require(self, signal: Signal) -> None:
        """Raise if what a signal is compared with is not given."""
        lacks = {"corpus": self.corpus is None, "questions": not self.questions, "judge": True}
        if lacks.get(signal.needs):
            raise OptionError(
                f"{signal.name} needs {NEEDED[signal.needs]}", fix=FIXES[signal.needs]
            )


NOTHING_GIVEN = References()


def _asked(given: object) -> list[str]:
    """Return the questions of a table of queries, or of a list of texts."""
    if isinstance(given, list | tuple | set) and all(isinstance(each, str) for each in given):
        return sorted(set(given))
    table = load_queries(given)
    if "question" not in table.columns:
        raise OptionError("the table has no questions", fix="add a column question")
    return table["question"].drop_nulls().unique().sort().to_list()
