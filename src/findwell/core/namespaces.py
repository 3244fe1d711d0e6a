"""Public names that are imported when they are first used.

`findwell/__init__.py` says where each name is found; a namespace finds it by `lazy_names`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from findwell.core.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# by namespace and public name: the module that defines it, and its name there
PUBLIC_NAMES: dict[str, dict[str, tuple[str, str]]] = {}


def register_names(namespace: str, modules: Mapping[str, str]) -> None:
    """Say which names of each module a namespace has; `card=judge_card` gives one another name."""
    PUBLIC_NAMES[namespace] = {
        public: (module, name or public)
        for module, names in modules.items()
        for public, _, name in (each.partition("=") for each in names.split())
    }


def lazy_names(namespace: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a namespace."""

    def find(name: str) -> Any:  # noqa: ANN401
        if name not in PUBLIC_NAMES[namespace]:
            raise AttributeError(_not_here(namespace, name), name=name)
        module, inside = PUBLIC_NAMES[namespace][name]
        return getattr(importlib.import_module(module), inside)

    return find, lambda: sorted(PUBLIC_NAMES[namespace])


def _not_here(namespace: str, name: str) -> str:
    """Return the message about a name that a namespace lacks, with where it is, or a near one."""
    elsewhere = [
        f"{other}.{public}"
        for other, names in PUBLIC_NAMES.items()
        for public, (_, inside) in names.items()
        if name in (public, inside)
    ]
    near = nearest(name, PUBLIC_NAMES[namespace], most=1)
    meant = f"use {' or '.join(elsewhere)}" if elsewhere else near
    return f"{namespace} has no {name}" + (f"; {meant}" if meant else "")
