"""What holds for tests, doctests and documentation alike."""

from collections.abc import Iterator

import pytest

from karat.measures import known_measures
from karat.measures.measure import REGISTRY

known_measures()  # the built-in ones belong to every test


@pytest.fixture(autouse=True)
def _same_measures_for_every_test() -> Iterator[None]:
    """Forget the measures that a test or an example registers."""
    before = dict(REGISTRY)
    yield
    for name in REGISTRY.keys() - before.keys():
        del REGISTRY[name]
