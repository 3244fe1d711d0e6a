"""Judge samples with ragas and deepeval: for an environment that has them, not for findwell's own.

`python benchmarks/judge_peers.py ragas|deepeval BASE_URL < samples.json` prints the tool's version;
the server counts the calls. Each tool runs all its metrics of retrieved contexts, as it comes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from importlib import metadata
from typing import Any

os.environ |= {
    "RAGAS_DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "OPENAI_API_KEY": "none",
    "TOKENIZERS_PARALLELISM": "false",
}
MODEL = "gpt-4o-mini"


async def ragas(samples: list[dict[str, Any]], url: str) -> None:
    from openai import AsyncOpenAI  # type: ignore[import-not-found]
    from ragas.llms import llm_factory  # type: ignore[import-not-found]
    from ragas.metrics.collections import (  # type: ignore[import-not-found]
        ContextEntityRecall,
        ContextPrecisionWithReference,
        ContextRecall,
        ContextRelevance,
    )

    llm = llm_factory(MODEL, client=AsyncOpenAI(base_url=url, max_retries=0))
    for sample in samples:
        asked, found = {"user_input": sample["question"]}, {"retrieved_contexts": sample["chunks"]}
        answer = {"reference": sample["reference"]}
        await ContextPrecisionWithReference(llm=llm).ascore(**asked, **found, **answer)
        await ContextRecall(llm=llm).ascore(**asked, **found, **answer)
        await ContextEntityRecall(llm=llm).ascore(**found, **answer)
        await ContextRelevance(llm=llm).ascore(**asked, **found)


async def deepeval(samples: list[dict[str, Any]], url: str) -> None:
    from deepeval.metrics import (  # type: ignore[import-not-found]
        ContextualPrecisionMetric,
        ContextualRecallMetric,
        ContextualRelevancyMetric,
    )
    from deepeval.models import OpenAIModel  # type: ignore[import-not-found]
    from deepeval.test_case import LLMTestCase  # type: ignore[import-not-found]

    model = OpenAIModel(model=MODEL, base_url=url, api_key="none")
    for sample in samples:
        case = LLMTestCase(
            input=sample["question"],
            actual_output=sample["reference"],
            expected_output=sample["reference"],
            retrieval_context=sample["chunks"],
        )
        for metric in (
            ContextualPrecisionMetric(model=model),
            ContextualRecallMetric(model=model),
            ContextualRelevancyMetric(model=model),
        ):
            await metric.a_measure(case, _show_indicator=False)


if __name__ == "__main__":
    tool, address = sys.argv[1:]
    asyncio.run({"ragas": ragas, "deepeval": deepeval}[tool](json.load(sys.stdin), address))
    print(metadata.version(tool))
