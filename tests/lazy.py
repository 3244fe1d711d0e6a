"""Large packages, imported when a test first uses them: not for every run that only collects it."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """Stands for a module until a name of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest asks everything in a module for such
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def lazy(module: str) -> Any:
    """Return a module that is imported at its first use."""
    return _Later(module)
