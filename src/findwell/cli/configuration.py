"""The configuration file: `findwell.toml`, or `[tool.findwell]` in pyproject.toml.

Its keys are the names of options and arguments. A key at the top holds for every command that has
such an option, a table named after a command for this one alone. Settings that share an option have
a table, too: [judge] holds those of `-J`, [score.judge] the same for one command. What is on the
command line comes before the file, and so does what an environment variable says.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findwell.cli.command import SettingOption, Settings, is_path, plain_message, settings_of
from findwell.core.errors import InputError, OptionError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FILE, PROJECT = "findwell.toml", "pyproject.toml"
VARIABLE, NONE = "FINDWELL_CONFIG", "none"
# commands about findwell itself or about this file
UNCONFIGURED = ("init", "explain-config", "choose", "demo", "measures", "trust", "completion")
# a reader of the file expects one word for what two commands name differently
SAME_KEYS = {"runs": ("runs", "systems")}
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
            fix = f"check --config and {VARIABLE}; `findwell init` writes a {FILE}"
            what = f"the configuration cannot be read: {error.strerror}"
            raise InputError(what, where=str(path), fix=fix) from error
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
        self._check(own, {"": command}, context, *names)
        values: Values = {}
        for parameter, keys, value in self._sources(command, names):
            read = self._value(parameter, value, keys, context)
            if isinstance(parameter, SettingOption):
                values.setdefault(parameter.owner.name or "", {})[parameter.name] = read
            else:
                values[parameter.name or ""] = read
        return values

    def sources(self, group: click.Group, context: click.Context, *names: str) -> Iterator[Source]:
        """Go through the parameters of all commands that the file sets, with where and to what."""
        for _, each in self.sources_by_command(group, context, *names):
            yield each

    def sources_by_command(
        self, group: click.Group, context: click.Context, *names: str
    ) -> Iterator[tuple[str, Source]]:
        """Do the same with the names of the commands."""
        for name, command in commands_of(group, context).items():
            if isinstance(command, click.Group):
                yield from self.sources_by_command(command, context, *names, name)
            else:
                for each in self._sources(command, (*names, name)):
                    yield " ".join((*names, name)), each

    def _sources(self, command: click.Command, names: Sequence[str]) -> Iterable[Source]:
        """Return what sets the parameters of a command: its own table comes before those above."""
        parameters: dict[str, click.Parameter] = dict(_keys(command))
        found: dict[object, Source] = {}
        for depth in range(len(names) + 1):
            above = tuple(names[:depth])
            for key, value in self._table(above).items():
                parameter = parameters.get(spelled(key))
                if parameter is not None and parameter.name and not isinstance(value, dict):
                    found[parameter.name] = (parameter, (*above, key), value)
            for settings in settings_of(command):
                fields = _fields(settings, parameters)
                for key, value in self._table((*above, settings.table)).items():
                    setting = fields.get(spelled(key))
                    if setting is not None:
                        inside = (settings.table, setting.name)
                        name = inside if isinstance(setting, SettingOption) else setting.name
                        found[name] = (setting, (*above, settings.table, key), value)
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
    ) -> None:
        """Refuse keys that no command knows, here and in the tables of settings."""
        inside = "" in commands  # the table of one command, not of several
        known, tables = _known(commands.values(), context)
        if names:  # a group of commands may have the name of a table, as `judge` does
            known |= tables.get(names[-1], set())
        for key, value in settings.items():
            if isinstance(value, dict) and key in tables:
                group = commands.get(key)
                allowed = set(tables[key])
                if isinstance(group, click.Group):
                    allowed |= {spelled(each) for each in commands_of(group, context)}
                    allowed |= _known([group], context)[0]
                for each in value:
                    if spelled(each) not in allowed:
                        what = f"the table [{key}] has no setting {each!r}"
                        raise self._unknown(what, each, allowed, *names, key)
            elif spelled(key) not in known and not (key in commands and isinstance(value, dict)):
                table = next((name for name, keys in tables.items() if spelled(key) in keys), "")
                if table:
                    raise OptionError(
                        f"{key!r} is a setting of the table [{table}]",
                        where=self.where(*names),
                        fix=f"write it below a line [{'.'.join((*names, table))}]",
                    )
                what = f"unknown option {key!r}: no command has it"
                if inside:
                    what = f"the command {' '.join(names)} has no option {key!r}"
                raise self._unknown(what, key, {*known, *commands} - {""}, *names)

    def _unknown(self, what: str, key: str, known: Iterable[str], *names: str) -> OptionError:
        """Return the error about a key."""
        fix = "`findwell COMMAND --help-all` lists options, --help-judge and others settings"
        fix = f"{nearest(spelled(key), known)} {fix}".strip()
        return OptionError(what, where=self.where(*names), fix=fix)

    def _value(
        self, parameter: click.Parameter, value: object, keys: Sequence[str], context: click.Context
    ) -> object:
        """Return the value of a parameter, as its type wants it, with paths seen from this file."""
        if isinstance(parameter, SettingOption) and parameter.is_mapping:
            if not isinstance(value, dict):
                raise OptionError("this must be a table", where=self.where(*keys))
            return value
        several = parameter.multiple or parameter.nargs != 1
        values = value if isinstance(value, list) else [value]
        if isinstance(value, dict) or (isinstance(value, list) and not several):
            kind = "one value" if not several else "a value or a list of values"
            raise OptionError(f"this must be {kind}", where=self.where(*keys))
        flag = isinstance(parameter.type, click.types.BoolParamType)
        for each in values:
            if isinstance(each, bool) is not flag:
                wanted = "true or false" if flag else "a text or a number"
                raise OptionError(f"{each!r} is not {wanted}", where=self.where(*keys))
            try:
                parameter.type.convert(each if flag else str(each), parameter, context)
            except click.BadParameter as error:
                raise OptionError(plain_message(error), where=self.where(*keys)) from None
        found = [each if flag else self._placed(parameter, str(each)) for each in values]
        return found if several else found[0]

    def _placed(self, parameter: click.Parameter, value: str) -> str:
        """Return a path as seen from the working folder, and any other value as it is."""
        if not is_path(parameter):
            return value
        if value == "-" or "://" in value or value.startswith(TABLES):
            return value
        place = self.path.parent / value
        if "|" in (parameter.metavar or "") and not place.exists():  # it may not be a file
            return value
        with contextlib.suppress(ValueError):
            return os.path.relpath(place) if not Path(value).is_absolute() else value
        return str(place)  # on another drive


def spelled(key: str) -> str:
    """Return a key as it is looked for: with hyphens, as options have them."""
    return key.replace("_", "-")


def commands_of(group: click.Group, context: click.Context) -> dict[str, click.Command]:
    """Return the commands that a project may settle something for."""
    found = {each: group.get_command(context, each) for each in group.list_commands(context)}
    return {name: each for name, each in found.items() if each and name not in UNCONFIGURED}


def _known(
    commands: Iterable[click.Command], context: click.Context
) -> tuple[set[str], dict[str, set[str]]]:
    """Return the keys of commands, and those of their tables of settings by table."""
    keys: set[str] = set()
    tables: dict[str, set[str]] = {}
    for command in commands:
        if isinstance(command, click.Group):
            more, inner = _known(commands_of(command, context).values(), context)
            keys |= more
            for table, found in inner.items():
                tables.setdefault(table, set()).update(found)
        else:
            parameters = dict(_keys(command))
            keys |= parameters.keys()
            for settings in settings_of(command):
                tables.setdefault(settings.table, set()).update(_fields(settings, parameters))
    return keys, tables


def _fields(
    settings: Settings, parameters: Mapping[str, click.Parameter]
) -> dict[str, click.Parameter]:
    """Return what a table of settings sets, by key: `model` in [judge] is the option --judge."""
    fields: dict[str, click.Parameter] = {
        spelled(key): each for key, each in settings.fields.items()
    }
    if settings.main and settings.table in parameters:
        fields[settings.main] = parameters[settings.table]
    return fields


def _keys(command: click.Command) -> Iterator[tuple[str, click.Parameter]]:
    """Go through the keys of a command, with the parameters that they set."""
    for each in command.params:
        if isinstance(each, Settings):
            continue
        for name in (*each.opts, each.name or ""):
            if name.startswith("--") or name == each.name:
                yield spelled(name.lstrip("-")), each
        for shared, names in SAME_KEYS.items():
            if each.name in names:
                yield shared, each


def given(command: click.Command, context: click.Context, words: Sequence[str]) -> set[str]:
    """Return the parameters that the words of a command line set; of settings `table.name`."""
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
    found = {name for name, value in values.items() if isinstance(value, kinds) and value != ()}
    for each in settings_of(command):
        if each.name in found:
            found |= {f"{each.table}.{name}" for name in each.names_in(values[each.name])}
    return found


def used_parameters(
    command: click.Command, values: Values, typed: set[str]
) -> dict[str, click.Parameter]:
    """Return what a file sets for a command and the command line does not, as it is spelled."""
    found: dict[str, click.Parameter] = {}
    for each in command.params:
        if isinstance(each, Settings):
            for name in values.get(each.name or "", {}):
                found[f"{each.table}.{name}"] = each.fields[name]
        elif each.name in values:
            found[each.name or ""] = each
    return {name: each for name, each in found.items() if name not in typed}
