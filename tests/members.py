"""Tests of many members, such as all measures: in one test, or most of them in `make slow`."""

from __future__ import annotations

import functools
import inspect
import itertools
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SHOWN = 5  # failures with a traceback


def over(
    names: tuple[str, ...] = (),
    rows: Iterable[tuple[Any, ...]] = ((),),
    /,
    **members: Iterable[Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a test run for every row of arguments and every combination of others, as a single test.

    It costs a fraction of as many parametrised tests. All members are tried, and one that skips is
    left out; the message has the names of those that fail, and the tracebacks of the first ones.
    """
    combinations = [
        dict(zip((*names, *members), (*row, *chosen), strict=True))
        for row, *chosen in itertools.product(rows, *members.values())
    ]
    assert combinations

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def every(*given: Any, **fixtures: Any) -> None:
            failed: list[BaseException] = []
            for chosen in combinations:
                try:
                    test(*given, **fixtures, **chosen)
                except pytest.skip.Exception:
                    continue
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
                    error.add_note(f"for {', '.join(map(_named, chosen.values()))}")
                    failed.append(error)
            if failed:
                names = "; ".join(error.__notes__[-1] for error in failed)
                message = f"{len(failed)} of {len(combinations)} fail: {names}"
                raise BaseExceptionGroup(message, failed[:SHOWN])

        own = inspect.signature(test)
        rest = [each for name, each in own.parameters.items() if name not in combinations[0]]
        every.__signature__ = own.replace(parameters=rest)  # type: ignore[attr-defined]
        return every

    return decorate


def _named(member: object) -> str:
    """Return how a member is called in a message."""
    return member.__name__ if isinstance(member, type) else str(member)[:100]


def quick(values: Iterable[Any], *chosen: Any) -> list[Any]:
    """Return the values of a parameter, of which only the chosen ones are tried by `make test`."""
    return [
        value if value in chosen else pytest.param(value, marks=pytest.mark.slow)
        for value in values
    ]
