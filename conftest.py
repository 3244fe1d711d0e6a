"""What holds for tests, doctests and documentation alike."""

import gc
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, settings

# `make test` lets polars have one thread: to wake more for a few rows takes longer than the rows.
# Only while it is imported: findwell's own threads and processes of the tests are as many as ever
with pytest.MonkeyPatch.context() as _patch:
    if "POLARS_THREADS_OF_TESTS" in os.environ:
        _patch.setenv("POLARS_MAX_THREADS", os.environ["POLARS_THREADS_OF_TESTS"])
    import polars as pl  # noqa: F401 - starts its threads

from findwell.core.measure import MEASURES
from findwell.core.plugins import Registry
from findwell.io.read import known_formats
from findwell.io.read.format import FORMATS
from findwell.io.read.objects import OBJECT_SOURCES, known_sources
from findwell.io.read.shapes import SHAPES, known_shapes
from findwell.judges.aspects import ASPECTS
from findwell.measures import known_measures
from findwell.measures.dialects import known_dialects
from findwell.measures.dialects.dialect import DIALECTS
from findwell.relations.match import known_matchers
from findwell.relations.match.matcher import MATCHERS

REGISTRIES: tuple[dict[str, Any] | Registry[Any], ...] = (
    ASPECTS,
    DIALECTS,
    FORMATS,
    MATCHERS,
    MEASURES,
    OBJECT_SOURCES,
    SHAPES,
)
# How many examples a property draws is decided here: `make test` takes `dev`, `make slow` `ci`.
# Both draw the same ones in every run; `--hypothesis-profile=nightly` draws others, and many more.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=100,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),  # without slow tracing
)
settings.register_profile("dev", settings.get_profile("ci"), max_examples=10)
settings.register_profile(
    "nightly", settings.get_profile("ci"), derandomize=False, max_examples=1000
)
settings.load_profile("dev")
gc.set_threshold(100_000, 20, 20)  # few collections: most of what is made stays, or goes by itself

# the built-in ones belong to every test
for load in (
    *(known_dialects, known_formats, known_matchers, known_measures),
    *(known_shapes, known_sources),
):
    load()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the pages of the documentation, whose examples `make docs` runs."""
    if item.path.suffix == ".md":
        item.add_marker("docs")


def pytest_collection_finish() -> None:
    """Leave what was imported out of the garbage collections to come."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_folder_for_temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leave nothing among the temporary files of others, also by processes that tests start."""
    folder = str(tmp_path_factory.mktemp("tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_memory_of_tunings() -> Iterator[None]:
    """Let no tuning of a test know of another, also in processes that tests start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINDWELL_TUNINGS", "none")
        yield


@pytest.fixture(autouse=True)
def _same_registries_for_every_test() -> Iterator[None]:
    """Forget the measures, shapes, aspects, … that a test or an example registers."""
    entries = [each.registered if isinstance(each, Registry) else each for each in REGISTRIES]
    before = [dict(registry) for registry in entries]
    yield
    for registry, known in zip(entries, before, strict=True):
        registry.clear()
        registry.update(known)
