"""A server under load that is killed in the middle: nothing that was acknowledged is lost."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.monitoring.sending import soak

if TYPE_CHECKING:
    from pathlib import Path

SECONDS, RATE, KILLS = 30.0, 600, 3  # benchmarks/traces.py does the same for ten minutes


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
@pytest.mark.parametrize("workers", [0, 1])
def test_nothing_is_lost(workers: int, tmp_path: Path) -> None:
    seconds = SECONDS / (1 + 2 * workers)
    found = soak(tmp_path / "store", seconds=seconds, rate=RATE, kills=KILLS, workers=workers)
    assert found.kills == KILLS
    assert found.again > 0  # what was under way when it was killed
    assert found.kept == found.expected
    assert found.rows == len(found.expected)
    assert found.counted == found.sent
