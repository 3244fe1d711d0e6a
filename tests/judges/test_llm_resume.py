"""A judge that is killed goes on where it was."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.client.server import Barrier, Call, serve
from tests.judges.judging import TEXTS, sample
from tests.judges.model import spoilt

if TYPE_CHECKING:
    from tests.client.server import Server

ROOT = Path(__file__).parents[2]
SAMPLES, CONCURRENCY = 500, 8
JOB = f"""
import sys
from dataclasses import replace
from findwell.judges.client.cache import Cache
from findwell.judges.llm.judge import LLMJudge
from findwell.judges.settings import Judge
from tests.client.asking import HASTE
from tests.judges.judging import ALL
from tests.judges.test_llm_resume import samples
url, folder = sys.argv[1:]
retry = replace(HASTE, concurrency={CONCURRENCY})
with Cache.open(folder) as cache:
    judge = LLMJudge(Judge("openai:m", base_url=url, key="", cache=cache, retry=retry))
    judged = judge.judge(samples(), ALL)
print(repr(judged))
print(judge.about()["calls"])
"""


def samples() -> list[Any]:
    return [
        sample(number, TEXTS[: number % 6], f"The capital of Brazil is Brasília{number}.")
        for number in range(SAMPLES)
    ]


def forgetful(call: Call, said: dict[str, Any]) -> dict[str, Any]:
    """Leave out an answer now and then, always the same, so that parts are asked again."""
    if "relevance" in said and "attempt" not in call.prompt and len(call.prompt) % 3 == 0:
        said["relevance"] = said["relevance"][1:]
    return said


def start(server: Server, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", JOB, server.url, str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, int]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    judged, calls = out.splitlines()
    return judged, int(calls)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill so")
def test_killed_twice_it_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    script = spoilt(forgetful)
    with serve(script) as server:
        expected, calls = finish(start(server, tmp_path / "whole"))
        assert calls == len(server.calls) > 3 * SAMPLES * 5 // 6
        server.calls.clear()
        for answered in (400, 700):  # while entities are listed, then while chunks are judged
            server.script = barrier = Barrier(answered, script)
            process = start(server, tmp_path / "killed")
            assert barrier.reached.wait(120), process.communicate(timeout=5)
            process.kill()
            process.communicate()
            assert process.returncode == -signal.SIGKILL
            barrier.opened.set()
        server.script = script
        resumed, _ = finish(start(server, tmp_path / "killed"))
        assert resumed == expected
        assert calls <= len(server.calls) <= calls + 2 * CONCURRENCY
        assert max(server.prompts.values()) <= 3
        assert sum(count - 1 for count in server.prompts.values()) <= 2 * CONCURRENCY
