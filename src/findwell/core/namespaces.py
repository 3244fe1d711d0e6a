"""Public names: `findwell/__init__.py` says which namespaces there are, and where names are found.

Most namespaces are modules that import their names. Those that are rooms as well, and the package
itself, import a name when it is first used (`lazy_names`). Type checkers do not see that,
and so know a name that is not there.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# by namespace and name: the module that defines it, and its name there; empty: a plain module
NAMESPACES: dict[str, dict[str, tuple[str, str]]] = {}


def register_namespace(namespace: str, modules: Mapping[str, str]) -> None:
    """Say which names of each module a namespace has; `card=judge_card` gives one another name."""
    NAMESPACES[namespace] = {
        public: (module, name or public)
        for module, names in modules.items()
        for public, _, name in (each.partition("=") for each in names.split())
    }


def names_of(namespace: str) -> list[str]:
    """Return the public names of a namespace."""
    return sorted(NAMESPACES[namespace] or importlib.import_module(namespace).__all__)


def lazy_names(namespace: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a namespace."""

    def find(name: str) -> Any:  # noqa: ANN401
        if name not in NAMESPACES[namespace]:
            hidden = name.startswith("_")  # such as what a debugger looks for
            said = f"{namespace} has no {name}"
            raise AttributeError(said if hidden else said + _where(namespace, name), name=name)
        module, inside = NAMESPACES[namespace][name]
        return getattr(importlib.import_module(module), inside)

    return find, lambda: names_of(namespace)


def _where(namespace: str, name: str) -> str:
    """Return where a name is that a namespace lacks, or which one was meant."""
    former = {
        inside: f"{other}.{public}"
        for other, names in NAMESPACES.items()
        for public, (_, inside) in names.items()
        if public != inside
    }
    found = [f"{other}.{name}" for other in NAMESPACES if name in names_of(other)]
    found += [former[name]] if name in former else []
    from findwell.core.errors import nearest  # noqa: PLC0415 - signals are not caught yet

    near = nearest(name, names_of(namespace), most=1)
    return f"; use {' or '.join(found)}" if found else f"; {near}" if near else ""
