"""The core has no SciPy: the defaults give the same without it, the rest says what to install."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from findwell.core.errors import how_to_install

DEFAULTS = """
import json, sys
{block}
import numpy as np
from findwell.statistics.agreement import kappa
from findwell.statistics.intervals import intervals
from findwell.statistics.paired import paired
from findwell.statistics.significance import adjust, mcnemar
from findwell.statistics.significance import tukey
rng = np.random.default_rng(1)
values = rng.random((30, 3))
spans = intervals(values, clusters=[n // 3 for n in range(30)]) + intervals(values > 0.5)
(found,) = paired(values[:, 0], values[:, 1], permutations=200)
(pairs,) = tukey(values, permutations=200)
numbers = [number for span in spans for number in (span.low, span.high)]
numbers += [found.test.p, found.effect.value, *pairs.p.values()]
numbers += [kappa([0, 1, 0, 1], [0, 1, 1, 1]).low, mcnemar([1.0], [0.0])[0].p]
numbers += adjust([0.01, 0.04, 0.03])
print(json.dumps({{"numbers": numbers, "scipy": "scipy.stats" in sys.modules}}))
"""
BLOCKED = "sys.modules['scipy'] = None"
EXTRAS = [
    "from findwell.statistics.significance import paired_t; paired_t([0.1, 0.2])",
    "from findwell.statistics.sample_size import PlannedComparison as C; C(.2).queries_needed(.1)",
    "from findwell.statistics.agreement import kendall_tau; kendall_tau([1, 2], [1, 2])",
]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_defaults_are_the_same_without() -> None:
    found = [json.loads(run(DEFAULTS.format(block=block)).stdout) for block in ("", BLOCKED)]
    assert found[0] == found[1]
    assert not found[0]["scipy"]  # they do not wait for it either
    assert all(isinstance(number, float) for number in found[0]["numbers"])


@pytest.mark.parametrize("call", EXTRAS)
def test_what_needs_the_extra_names_it(call: str) -> None:
    done = run(f"import sys; {BLOCKED}\n{call}")
    assert done.returncode
    last = done.stderr.strip().splitlines()[-2:]
    assert last[0].startswith("findwell.core.errors.OptionError: this needs the package scipy")
    assert last[1] == f"  fix: {how_to_install('stats')}"
