"""What holds for tests, doctests and documentation alike."""

import gc
from collections.abc import Iterator

import pytest

from karat.judges.aspects import ASPECTS
from karat.measures import known_measures
from karat.measures.measure import REGISTRY

known_measures()  # the built-in ones belong to every test


def pytest_collection_finish() -> None:
    """Leave what was imported out of the garbage collections to come, and have few of them."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(autouse=True)
def _same_measures_and_aspects_for_every_test() -> Iterator[None]:
    """Forget the measures and aspects that a test or an example registers."""
    before = [(registry, set(registry)) for registry in (REGISTRY, ASPECTS)]
    yield
    for registry, names in before:
        for name in set(registry) - names:
            del registry[name]
