"""The configuration file: `findwell.toml`, or `[tool.findwell]` in pyproject.toml.

Its keys are the names of options and arguments. A key at the top holds for every command that has
such an option, a table named after a command for this one alone. What stands on the command line
comes before the file, and so does what an environment variable says.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findwell.core.errors import InputError, OptionError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FILE, PROJECT = "findwell.toml", "pyproject.toml"
VARIABLE, NONE = "FINDWELL_CONFIG", "none"
# commands about findwell itself or about this file, of which a project has nothing to settle
UNCONFIGURED = ("init", "explain-config", "choose", "demo", "measures", "trust")
# a reader of the file expects one word for what two commands name differently
SAME = {"runs": ("runs", "systems")}
# metavars of what is a file or a folder, which is looked for beside the configuration
PATHS = {"FILE", "PATH", "DIR", "FOLDER", "POOL", "RUN", "RESULT", "GOLD", "LABELS", "PLACE"}
PATHS |= {"FIRST", "SECOND"}
# tables of Spark: names of its catalogue, and places that Spark finds
TABLES = ("table:", "delta:")
Values = dict[str, Any]
Source = tuple[click.Parameter, tuple[str, ...], Any]  # which is set, by which keys, to what


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a project has settled about its evaluation."""

    path: Path
    settings: Values
    table: str = ""  # where in the file it stands
    foreign: str = ""  # why another user could have written it

    @classmethod
    def find(cls, named: str | None = None) -> Configuration | None:
        """Return the configuration of the working folder or of the nearest folder above it.

        The search ends at the root of a repository. `named` is a file, or `none` for no
        configuration; by default the variable FINDWELL_CONFIG names it.
        """
        named = named or os.environ.get(VARIABLE)
        if named == NONE:
            return None
        if named:
            return cls.read(Path(named)) or cls(Path(named), {})
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (found := cls.of_folder(folder)) is not None or (folder / ".git").exists():
                return found
        return None

    @classmethod
    def of_folder(cls, folder: Path) -> Configuration | None:
        """Return the configuration that stands in a folder."""
        paths = [path for name in (FILE, PROJECT) if (path := folder / name).is_file()]
        return next(filter(None, map(cls.read, paths)), None)

    @classmethod
    def read(cls, path: Path) -> Configuration | None:
        """Read a file; None for a pyproject.toml that says nothing about findwell."""
        import tomllib  # noqa: PLC0415 - most commands find no file

        from findwell.cli.trust import why_foreign  # noqa: PLC0415

        text = b""
        try:
            with path.open("rb") as file:
                text, foreign = file.read(), why_foreign(os.fstat(file.fileno()), path)
            content = tomllib.loads(text.decode())
        except OSError as error:
            raise InputError(
                f"the configuration cannot be read: {error.strerror}", where=str(path)
            ) from error
        except ValueError as error:
            if path.name == PROJECT and b"tool.findwell" not in text:
                return None  # that is the business of other tools
            fix = "correct this line; `findwell init` writes a file to start from"
            raise InputError(f"this is not TOML: {error}", where=str(path), fix=fix) from error
        if path.name != PROJECT:
            return cls(path, content, foreign=foreign)
        settings = content.get("tool", {}).get("findwell")
        return cls(path, settings, "tool.findwell", foreign) if isinstance(settings, dict) else None

    @property
    def shown(self) -> str:
        """The file as a user would name it."""
        with contextlib.suppress(ValueError):
            return str(self.path.relative_to(Path.cwd()))
        return str(self.path)

    def where(self, *keys: str) -> str:
        """Return the place of a setting, for messages."""
        inside = ".".join(key for key in (self.table, *keys) if key)
        return f"{self.shown}: {inside}" if inside else self.shown

    def defaults(self, group: click.Group, context: click.Context, name: str) -> Values:
        """Return the values of a command's parameters; of a group of commands, one table each."""
        commands = commands_of(group, context)
        self._check(self.settings, commands, context)
        return self._values(commands[name], context, (name,))

    def _values(
        self, command: click.Command, context: click.Context, names: Sequence[str]
    ) -> Values:
        """Return what the common settings and the command's own table say."""
        own = self._table(names)
        if isinstance(command, click.Group):
            inner = commands_of(command, context)
            self._check(own, inner, context, *names)
            return {
                each: self._values(found, context, (*names, each)) for each, found in inner.items()
            }
        self._check(own, {}, context, *names, known=by_key(command))
        return {
            parameter.name or "": self._value(parameter, value, keys, context)
            for parameter, keys, value in self._sources(command, names)
        }

    def sources(self, group: click.Group, context: click.Context, *names: str) -> Iterator[Source]:
        """Go through the parameters of all commands that the file sets, with where and to what."""
        for name, command in commands_of(group, context).items():
            if isinstance(command, click.Group):
                yield from self.sources(command, context, *names, name)
            else:
                yield from self._sources(command, (*names, name))

    def _sources(self, command: click.Command, names: Sequence[str]) -> Iterable[Source]:
        """Return what sets the parameters of a command: its own table comes before those above."""
        parameters, found = by_key(command), {}
        for depth in range(len(names) + 1):
            for key, value in self._table(names[:depth]).items():
                parameter = parameters.get(spelled(key))
                if parameter is not None and parameter.name and not isinstance(value, dict):
                    found[parameter.name] = (parameter, (*names[:depth], key), value)
        return found.values()

    def _table(self, names: Sequence[str]) -> Values:
        """Return the table of a command."""
        own = self.settings
        for each in names:  # a word may name an option as well, as `measures` does
            own = table if isinstance(table := own.get(each), dict) else {}
        return own

    def _check(
        self,
        settings: Values,
        commands: Mapping[str, click.Command],
        context: click.Context,
        *names: str,
        known: Mapping[str, click.Parameter] | None = None,
    ) -> None:
        """Refuse keys that no command knows."""
        if known is None:
            found = commands.values()
            known = {key: each for some in found for key, each in every_key(some, context)}
        for key, value in settings.items():
            if spelled(key) in known or (key in commands and isinstance(value, dict)):
                continue
            owner = f"the command {' '.join(names)}" if names and not commands else "every command"
            suggestion = nearest(spelled(key), [*known, *commands])
            raise OptionError(
                f"{owner} lacks an option {key!r}. {suggestion}".strip(),
                where=self.where(*names),
                fix="`findwell COMMAND --help` lists the options",
            )

    def _value(
        self, parameter: click.Parameter, value: object, keys: Sequence[str], context: click.Context
    ) -> object:
        """Return the value of a parameter, as its type wants it, with paths beside this file."""
        several = parameter.multiple or parameter.nargs != 1
        values = value if isinstance(value, list) else [value]
        if isinstance(value, dict) or (isinstance(value, list) and not several):
            kind = "one value" if not several else "a value or a list of values"
            raise OptionError(f"this must be {kind}", where=self.where(*keys))
        flag = isinstance(parameter, click.Option) and parameter.is_flag
        for each in values:
            if isinstance(each, bool) is not flag:
                wanted = "true or false" if flag else "a text or a number"
                raise OptionError(f"{each!r} is not {wanted}", where=self.where(*keys))
            try:
                parameter.type.convert(each if flag else str(each), parameter, context)
            except click.BadParameter as error:
                raise OptionError(error.message, where=self.where(*keys)) from None
        found = [each if flag else self._placed(parameter, str(each)) for each in values]
        return found if several else found[0]

    def _placed(self, parameter: click.Parameter, value: str) -> str:
        """Return a path as seen from the working folder, and any other value as it is."""
        if not is_path(parameter):
            return value
        if value == "-" or "://" in value or value.startswith(TABLES):
            return value
        beside = self.path.parent / value
        if (
            "|" in (parameter.metavar or "") and not beside.exists()
        ):  # it may be something else than a file
            return value
        with contextlib.suppress(ValueError):
            return os.path.relpath(beside) if not Path(value).is_absolute() else value
        return str(beside)  # on another drive


def is_path(parameter: click.Parameter) -> bool:
    """Tell whether a parameter names files or folders."""
    return not PATHS.isdisjoint(re.findall(r"[A-Z]+", parameter.metavar or ""))


def spelled(key: str) -> str:
    """Return a key as it is looked for: with hyphens, as options have them."""
    return key.replace("_", "-")


def commands_of(group: click.Group, context: click.Context) -> dict[str, click.Command]:
    """Return the commands that a project may settle something for."""
    found = {each: group.get_command(context, each) for each in group.list_commands(context)}
    return {name: each for name, each in found.items() if each and name not in UNCONFIGURED}


def by_key(command: click.Command) -> dict[str, click.Parameter]:
    """Return the parameters of a command by the keys that set them."""
    return dict(_keys(command))


def every_key(
    command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Parameter]]:
    """Go through the keys of a command, or of all commands of a group, with their parameters."""
    if isinstance(command, click.Group):
        for inner in commands_of(command, context).values():
            yield from every_key(inner, context)
    else:
        yield from _keys(command)


def _keys(command: click.Command) -> Iterator[tuple[str, click.Parameter]]:
    for each in command.params:
        if not each.expose_value and each.name in ("help", "debug"):
            continue
        for name in (*each.opts, each.name or ""):
            if name.startswith("--") or name == each.name:
                yield spelled(name.lstrip("-")), each
        for shared, names in SAME.items():
            if each.name in names:
                yield shared, each


def given(command: click.Command, context: click.Context, words: Sequence[str]) -> set[str]:
    """Return the names of the parameters that the words of a command line set."""
    inside = click.Context(command, parent=context)
    if isinstance(command, click.Group):
        inner = command.get_command(inside, words[0]) if words else None
        return given(inner, inside, words[1:]) if inner is not None else set()
    try:
        values, *_ = command.make_parser(inside).parse_args([*words])
    except click.UsageError:  # said when the command itself reads them
        return set()
    # an argument that is not there is in the list too, with a mark of click for nothing
    kinds = (str, list, bool, tuple)
    return {name for name, value in values.items() if isinstance(value, kinds) and value != ()}
