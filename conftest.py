"""What holds for tests, doctests and documentation alike."""

import gc
from collections.abc import Iterator

import pytest

from karat.measures import known_measures
from karat.measures.measure import REGISTRY

known_measures()  # the built-in ones belong to every test


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every garbage collection to come."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _same_measures_for_every_test() -> Iterator[None]:
    """Forget the measures that a test or an example registers."""
    before = dict(REGISTRY)
    yield
    for name in REGISTRY.keys() - before.keys():
        del REGISTRY[name]
