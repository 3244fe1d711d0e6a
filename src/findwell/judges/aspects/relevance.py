"""Relevance: how useful each chunk is for answering the question, graded."""

from findwell.judges.aspects.aspect import Aspect, VerdictShape

RELEVANCE = Aspect(
    name="relevance",
    about="judged: how much a chunk helps to answer the question, 0 to 3",
    shape=VerdictShape.CHUNKS,
    needs="question",
    unit="chunk",
    value="grade",
    grades={  # from 1 on a chunk is relevant, unless a measure says otherwise with rel
        0: "of no use for answering, even if it is on the topic",
        1: "of some use: a minor part of the answer, or what points to it",
        2: "of much use: a main part of the answer",
        3: "all that is needed for the answer",
    },
)
