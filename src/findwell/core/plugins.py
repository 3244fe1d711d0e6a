"""Registries: things of one kind by name, built in, of installed packages, or of the user."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

from findwell.core.errors import PluginError, takes_options, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib import metadata

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Things of one kind by name: a mapping of all that are known.

    The modules of `package` register what is built in when they are imported. Installed packages
    add things by entry points of `group`: a module that registers them, or the thing itself, which
    `accept` then registers. Nothing is imported before it is asked for: a name that is known, or
    that is the name of a module, imports no other.

    >>> colours = Registry("colour")
    >>> colours.register("red", "#f00")
    '#f00'
    >>> colours.find("rad")
    Traceback (most recent call last):
    findwell.core.errors.OptionError: unknown colour 'rad'
      fix: did you mean red? (known: red)
    """

    def __init__(
        self,
        kind: str,
        *,
        package: str = "",
        group: str = "",
        accept: Callable[[Any], object] | None = None,
    ) -> None:
        self.kind = kind
        self._package, self._group, self._accept = package, group, accept
        self.registered: dict[str, T] = {}  # so far; nothing is imported for it
        self._loaded = self.plugged = False
        self._loading = 0  # the thread that loads plugins

    @takes_options()
    def register(self, name: str, entry: T, *, replaces: bool = False) -> T:
        """Add an entry; a name that something else has is refused, unless `replaces`."""
        taken = self.registered.get(name)
        if taken is not None and not replaces and not _same(taken, entry):
            raise PluginError(
                f"the name {name!r} of a {self.kind} is taken by {_origin(taken)}",
                fix=f"give the new {self.kind} another name",
            )
        self.registered[name] = entry
        return entry

    def __getitem__(self, name: str) -> T:
        return self.registered[name] if name in self.registered else self.known()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.known())

    def __len__(self) -> int:
        return len(self.known())

    def built_in(self, name: str) -> T | None:
        """Return the entry of this name, if it is registered or has a module of its name."""
        module = name.partition("-")[0]
        if name not in self.registered and module in self._modules:
            importlib.import_module(f"{self._package}.{module}")
        return self.registered.get(name)

    def find(self, name: str) -> T:
        """Return the entry of this name; an unknown name answers with the nearest ones."""
        found = self.built_in(name)
        if found is not None:
            return found
        known = self.known()
        if name not in known:
            raise unknown(self.kind, name, known)
        return known[name]

    def known(self) -> dict[str, T]:
        """Return all entries by name, in the order in which they were registered."""
        self.load_built_in()
        self.load_plugins()
        return dict(self.registered)

    @functools.cached_property
    def _modules(self) -> tuple[str, ...]:
        if not self._package:
            return ()
        import pkgutil  # noqa: PLC0415

        path = importlib.import_module(self._package).__path__
        return tuple(module.name for module in pkgutil.iter_modules(path))

    def load_built_in(self) -> None:
        """Import the modules of the package, once."""
        if not self._loaded:
            for module in self._modules:
                importlib.import_module(f"{self._package}.{module}")
            self._loaded = True  # not before: another thread would see a part

    def load_plugins(self) -> None:
        """Load what installed packages bring, once."""
        if self._group and not self.plugged and self._loading != get_ident():
            self._loading = get_ident()  # a plugin may ask for what is known
            for plugin in entry_points(group=self._group):
                self._load_plugin(plugin)
            self.plugged = True

    def _load_plugin(self, plugin: metadata.EntryPoint) -> None:
        try:
            loaded = plugin.load()
        except Exception as error:
            raise PluginError(
                f"the {self.kind} plugin {plugin.name!r} ({plugin.value}) does not load: {error}",
                fix="update or uninstall the package that brings it",
            ) from error
        if self._accept is not None:
            self._accept(loaded)


def _same(one: object, other: object) -> bool:
    """Tell whether two entries are one: equal, or a class whose module was imported again."""
    return one == other or (
        isinstance(one, type)
        and isinstance(other, type)
        and (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)
    )


def _origin(entry: object) -> str:
    named = entry if isinstance(entry, type) or callable(entry) else type(entry)
    return f"{named.__module__}.{getattr(named, '__qualname__', named)}"


@functools.cache
def _entry_points() -> Any:  # noqa: ANN401 - its type differs between versions of Python
    """Look at all installed packages, which takes a while, once for all groups."""
    from importlib import metadata  # noqa: PLC0415

    return metadata.entry_points()


@functools.cache
def _has_plugins() -> bool:
    """Tell whether an installed package may bring something; most often none does.

    Importing `importlib.metadata` takes longer than reading these small files. Packages that are
    found in another way than by a folder of `sys.path` are left to it.
    """
    from importlib.machinery import PathFinder  # noqa: PLC0415

    others = [finder for finder in sys.meta_path if finder is not PathFinder]
    if any(hasattr(finder, "find_distributions") for finder in others):
        return True
    return any(_may_hold_plugins(Path(folder)) for folder in dict.fromkeys(sys.path))


def _may_hold_plugins(folder: Path) -> bool:
    with suppress(OSError):  # it may not be looked into: Python imports nothing from it either
        if not folder.is_dir():
            return folder.exists()  # an archive
        for info in folder.iterdir():
            if info.suffix == ".egg":
                return True
            if info.suffix in (".dist-info", ".egg-info"):
                with suppress(OSError):  # most have no such file
                    if b"[findwell." in (info / "entry_points.txt").read_bytes():
                        return True
    return False


def entry_points(*, group: str) -> list[metadata.EntryPoint]:
    """Return the entry points of a group, such as `findwell.measures`."""
    return list(_entry_points().select(group=group)) if _has_plugins() else []
