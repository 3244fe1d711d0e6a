"""Judged relations: a language model or a local model decides which unit covers which item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names

if TYPE_CHECKING:
    from findwell.evaluation.evaluate import judge
    from findwell.judges.cards.card import JudgeCard, JudgeComparison
    from findwell.judges.cards.card import compare_judges as compare
    from findwell.judges.cards.card import judge_card as card
    from findwell.judges.embeddings import find_embedder
    from findwell.judges.find import find_judge
    from findwell.judges.llm.check import JudgeCheck
    from findwell.judges.llm.check import judge_check as check
    from findwell.judges.llm.judge import LLMJudge
    from findwell.judges.local import LocalJudge
    from findwell.judges.taught import Teaching
    from findwell.judges.taught import teach_judge as teach
    from findwell.judges.verdicts import Sample

__all__ = [
    "JudgeCard", "JudgeCheck", "JudgeComparison", "LLMJudge", "LocalJudge", "Sample", "Teaching",
    "card", "check", "compare", "find_embedder", "find_judge", "judge", "teach",
]  # fmt: skip

if not TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = lazy_names(__name__)
