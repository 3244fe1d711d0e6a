"""Small models as judges: every way to ask, on the labelled cases, and on real lists of ten chunks.

`python -m benchmarks.small_judges MODEL.gguf` serves a model with llama.cpp (the package
`xllamacpp`) and prints the rows of docs/judging-small-models.md. `--passages FILE` names the
answerable questions of ClapNQ (JSON lines), of which eight samples of ten chunks are made. `--way`
and `--cache` let a slow machine do it in several turns: what was answered is in the cache.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import findwell
from findwell.judges.client.cache import Cache
from findwell.judges.client.client import RetryPolicy
from findwell.judges.settings import WAYS

SERVER = """
import sys
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.port = int(sys.argv[2])
params.n_ctx = 8192
params.n_parallel = 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[3])
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
SAMPLES, CHUNKS = 8, 10
LONGEST = 200  # words of a passage
MEASURES = ["context_precision", "context_recall"]


@contextmanager
def served(model: Path, port: int, threads: int) -> Iterator[str]:
    """Serve a model on loopback; the port is a part of what answers are kept by."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(model), str(port), str(threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield f"{process.stdout.readline().strip()}/v1"
    finally:
        process.kill()
        process.communicate()


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def real_samples(path: Path) -> list[dict[str, Any]]:
    """Make samples of questions: the passage of each at place 4, among those most like it."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    texts = [row["passages"][0]["text"].strip() for row in rows]
    titled = [words(f"{row['passages'][0]['title']} {row['passages'][0]['text']}") for row in rows]
    counts = Counter(word for each in titled for word in each)
    rarity = {word: math.log(len(rows) / count) for word, count in counts.items()}
    fits = [len(text.split()) <= LONGEST for text in texts]
    samples: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        answers = [each["answer"] for each in row["output"] if each.get("answer")]
        reference = min(answers, key=len, default="")
        if not fits[number] or not 8 < len(reference.split()) < 45:
            continue
        asked = words(row["input"])
        others = sorted(
            (other for other in range(len(rows)) if other != number and fits[other]),
            key=lambda other: -sum(rarity[word] for word in asked & titled[other]),
        )
        chosen = [*others[:3], number, *others[3 : CHUNKS - 1]]
        samples.append(
            {
                "query": row["id"],
                "question": f"{row['input']}?",
                "reference": reference,
                "retrieved": [{"doc": f"p{each}", "text": texts[each]} for each in chosen],
            }
        )
    return samples[:SAMPLES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--passages", type=Path)
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--cache", type=Path, default=Path(".benchmarks/small_judges"))
    parser.add_argument("--port", type=int, default=18077)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    name = f"openai:{given.model.stem}"
    retry = RetryPolicy(concurrency=1, timeout=1800.0)
    with served(given.model, given.port, given.threads) as url, Cache.open(given.cache) as cache:
        for way in given.way or WAYS:
            judge = findwell.Judge(
                name, base_url=url, key="none", cache=cache, retry=retry, ask=way
            )
            [seen] = findwell.judges.check(judge).ways
            kappa = "undefined" if seen.kappa is None else f"{seen.kappa:.2f}"
            print(
                f"| {name} | {way} | {seen.calls} | {seen.prompt_tokens:,} | "
                f"{seen.completion_tokens:,} | {seen.failed} of {seen.verdicts} | "
                f"{seen.right_share:.0%} | {kappa} | {seen.seconds:.0f} s |",
                flush=True,
            )
            if given.passages is not None:
                samples = real_samples(given.passages)
                found = findwell.evaluate(samples, measures=MEASURES, judge=judge)
                about = found.judge
                lost, asked = (
                    sum(about[each].values()) for each in ("failed_verdicts", "verdicts")
                )
                print(
                    f"{name} {way}: {len(samples)} samples of {CHUNKS} chunks: {about['calls']} "
                    f"calls, {lost} of {asked} verdicts failed, {found.values}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
