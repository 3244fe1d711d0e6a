"""How commands are declared: options in groups, settings as NAME=VALUE, help in layers.

A command that has many options shows the usual ones, one line each; `--help-all` shows all of them
in full, and a topic such as `--help-judge` one group. Settings that are rarely given share one
option, such as `-J votes=3`; each of them is a table of its own in the configuration file.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from findwell.core.errors import OptionError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from click.core import ParameterSource

SCREEN_LINES = 60  # a longer help is shown in layers
SENTENCE = re.compile(r"(?<=[.…])\s+(?=[A-Z0-9`-])")  # between two of a help text
TYPED_SETTINGS = "findwell.typed_settings"  # key in a context: settings of the command line
TYPED_WORDS = "findwell.typed_words"  # and what was typed after its name
DEBUG, DEBUG_VARIABLE = "--debug", "FINDWELL_DEBUG"
DEFAULT_GROUP = "Options"
# types by what values are called in the help; others are texts, and a|b|c is a choice
KINDS: dict[str, click.ParamType[Any]] = {"N": click.INT, "K": click.INT, "yes|no": click.BOOL}
KINDS |= dict.fromkeys(
    ("NUMBER", "SHARE", "SECONDS", "MONEY", "GRADE", "SCORE", "D", "SD", "R", "P"), click.FLOAT
)
# metavars of what is a file or a folder: a shell completes it, and a configuration file names it
# as seen from its own folder
PATHS = {"FILE", "PATH", "DIR", "FOLDER", "POOL", "RUN", "RESULT", "GOLD", "LABELS", "PLACE"}
PATHS |= {"FIRST", "SECOND"}
MAPPING = ".NAME=VALUE"  # what the values of a setting that holds several by name are called

Decorator: TypeAlias = "Callable[[Callable[..., Any]], Callable[..., Any]]"


class Option(click.Option):
    """An option of a group of the help; a rare one is shown by `--help-all` only."""

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401
        group: str = "",
        rare: bool = False,
        **attributes: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.group, self.rare = group, rare


def option(
    spelling: str,
    help: str,  # noqa: A002 - as click calls it
    *,
    name: str = "",
    type: click.ParamType[Any] | type | None = None,  # noqa: A002
    low: float | None = None,
    high: float | None = None,
    **attributes: Any,  # noqa: ANN401
) -> Decorator:
    """Return a decorator that adds an option, spelled as in the help.

    `--level SHARE`, `-m, --measure MEASURE...` for one that may be repeated, `--on
    local|spark` for a choice, and `--strict` alone for a flag. What the values are called says
    of which type they are; `name` is the parameter that gets them, `low` and `high` are limits.
    """
    *flags, values = (
        spelling.split(" ") if spelling.rpartition(" ")[2][0] != "-" else (spelling, "")
    )
    kind = type or _kind(values.removesuffix("..."))
    if low is not None or high is not None:
        limited: Callable[..., Any] = click.IntRange if kind is click.INT else click.FloatRange
        kind = limited(low, high)
    if values.endswith("..."):
        attributes["multiple"] = True
    if not values and "cls" not in attributes:
        attributes["is_flag"] = True
    elif "cls" not in attributes:
        attributes["type"] = kind
        if not isinstance(kind, click.Choice) or values.isupper():
            attributes["metavar"] = values.removesuffix("...")
    declared = [flag.rstrip(",") for flag in " ".join(flags).split()] + ([name] if name else [])
    return click.option(*declared, **{"cls": Option, "help": help, **attributes})


def _kind(values: str) -> click.ParamType[Any]:
    """Return the type of values that are called so: a choice a|b|c, a number, or a text."""
    if values in KINDS:
        return KINDS[values]
    return click.Choice(values.split("|")) if "|" in values and values.islower() else click.STRING


def option_set(
    *decorators: Decorator, group: str = "", make: Callable[..., Mapping[str, Any]] | None = None
) -> Decorator:
    """Return a decorator that adds several options, in this order, to one group of the help.

    The command gets what `make` returns of their values, instead of the values.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        added: list[click.Parameter] = []

        def call(**given: Any) -> object:  # noqa: ANN401
            values = {each.name: given.pop(each.name) for each in added}
            return command(**(make(**values) if make else values), **given)

        function: Callable[..., Any] = functools.wraps(command)(call)
        before = len(getattr(function, "__click_params__", ()))
        for decorator in reversed(decorators):
            function = decorator(function)
        added += getattr(function, "__click_params__", ())[before:] if make else ()
        for each in getattr(function, "__click_params__", ())[before:]:
            if isinstance(each, Option):
                each.group = each.group or group
        return function

    return add


class SettingOption(click.Option):
    """One of the settings that share an option; it has a name, a type and a help of its own."""

    def __init__(self, owner: Settings, flag: str, name: str, values: str, about: str) -> None:
        self.is_mapping = values == MAPPING
        super().__init__([f"--{name}", name], type=_kind(values), metavar=values, help=about)
        self.owner = owner
        self.spelling = f"{flag} {name}"  # how it is named on the command line

    def read(self, context: click.Context, value: object) -> object:
        """Return a value of the command line or of a file as the program wants it."""
        if self.is_mapping:
            return value
        try:
            return self.type.convert(value, self, context)
        except click.BadParameter as error:
            raise OptionError(f"{self.spelling}: {plain_message(error)}") from None


class Settings(Option):
    """An option such as `-J NAME=VALUE`, which may be repeated, for the fields of a table.

    `sections` of settings.toml describe the fields; of these the option takes `names`, or all.
    `check` sees every value.
    What the configuration file has in the table of this name holds unless it is given here.
    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401
        table: str,
        topic: str,
        sections: Sequence[str],
        names: Sequence[str] = (),
        check: Callable[[str, object], object] = lambda _, value: value,
        defaults: Callable[[], Mapping[str, object]] = dict,
        main: str = "",
        **attributes: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, multiple=True, metavar="NAME=VALUE", **attributes)
        self.table, self.topic, self.main = table, topic, main
        self._sections, self._names = sections, names
        self._check, self._defaults = check, defaults

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return max(self.opts, key=len)

    @functools.cached_property
    def fields(self) -> dict[str, SettingOption]:
        """The settings by name."""
        found = {}
        for section in self._sections:
            flag = f"--{section}" if f"--{section}" in self.opts else self.flag
            for spelling, about in _described_settings()[section].items():
                name, sign, values = re.split("([.=])", spelling, maxsplit=1)
                if not self._names or name in self._names:
                    kind = MAPPING if sign == "." else values
                    found[name] = SettingOption(self, flag, name, kind, about)
        return found

    def find(self, name: str, value: str = "") -> SettingOption:
        """Return the setting of this name; an unknown one answers with the nearest."""
        found = self.fields.get(name.strip().replace("-", "_"))
        if found is None:
            shown = re.split(r"[^\w-]", name.strip())[0]  # the rest may be a secret
            flags = " or ".join(self.opts)
            if "--map" in self.opts and (role := {"retrieved": "run", "gold": "gold"}.get(value)):
                what = f"--map {shown}={value} does not say in which input the field is"
                raise OptionError(what, fix=f"write --map {role}.{shown}={value}")
            fix = f"{nearest(name, self.fields)} --help-{self.topic} lists the settings"
            raise OptionError(f"unknown setting {shown!r} of {flags}", fix=fix.strip())
        return found

    def process_value(self, ctx: click.Context, value: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the settings by name: those of the command line before those of a file."""
        configured = ctx.lookup_default(self.name or "") or {}
        typed: dict[str, object] = {}
        for pair in value if isinstance(value, tuple | list) else ():
            self._read_pair(pair, typed)
        ctx.meta.setdefault(TYPED_SETTINGS, {})[self.name] = set(typed)
        return {
            name: self._check(name, self.fields[name].read(ctx, each))
            for name, each in {**configured, **typed}.items()
        }

    def _read_pair(self, pair: str, found: dict[str, object]) -> None:
        """Read NAME=VALUE, or NAME.KEY=VALUE for a setting that holds several values by name."""
        left, equals, value = pair.partition("=")
        name, dot, key = left.strip().partition(".")
        setting = self.find(name, value)
        if not equals or (dot and not (setting.is_mapping and key)):
            raise OptionError(
                f"this is not NAME=VALUE: {setting.spelling} …",  # the rest may be a secret
                fix=f"write {setting.spelling}{MAPPING if setting.is_mapping else '=VALUE'}",
            )
        if not setting.is_mapping:
            found[setting.name or ""] = value.strip()
        elif dot:
            known = found.setdefault(setting.name or "", {})
            if isinstance(known, dict):
                known[key.strip()] = read_json(value.strip())
        else:
            found[setting.name or ""] = _read_object(value, setting)

    def names_in(self, pairs: Iterable[str]) -> set[str]:
        """Return the names of the settings that pairs give."""
        names = (re.split("[.=]", pair, maxsplit=1)[0] for pair in pairs)
        return {name.strip().replace("-", "_") for name in names}

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a setting."""
        del ctx
        return [
            CompletionItem(f"{name}=", help=each.help)
            for name, each in self.fields.items()
            if name.startswith(incomplete)
        ]

    def help_records(self) -> list[tuple[str, str]]:
        """Return the lines of the help about the settings."""
        usual = self._defaults()
        records = []
        for name, each in self.fields.items():
            values = each.metavar if each.is_mapping else f"={each.metavar}"
            default = usual.get(name)
            shown = "" if default in (None, False, "") else f" (default: {default})"
            text = each.help or ""
            records.append((f"{name}{values}", f"{text.removesuffix('.')}{shown}."))
        return records


@functools.cache
def _described_settings() -> dict[str, dict[str, str]]:
    """Return what settings.toml says about settings, by section and spelling."""
    import tomllib  # noqa: PLC0415 - most commands need no setting

    return tomllib.loads(Path(__file__).with_name("settings.toml").read_text(encoding="utf-8"))


def plain_message(error: click.BadParameter) -> str:
    """Return what is wrong with a value, in words that are not those of a programmer."""
    kinds = {"float": "a number", "integer": "a whole number", "boolean": "yes or no"}
    message = error.message.partition(". Recognized")[0].removesuffix(".")
    for kind, words in kinds.items():
        message = re.sub(rf"is not a valid {kind}( range)?", f"is not {words}", message)
    value, outside, limits = message.partition(" is not in the range ")
    if not outside:
        return message
    signs = {"<=x": "at least", "<x": "above", "x>=": "at least", "x>": "above"}
    signs |= {"x<=": "at most", "x<": "below"}
    low, x, high = re.split(r"(x)", limits)
    parts = [f"{signs[sign + x]} {at}" for at, sign in re.findall(r"([\d.]+)(<=?)", low)]
    parts += [f"{signs[x + sign]} {at}" for sign, at in re.findall(r"([<>]=?)([\d.]+)", high)]
    return f"{value.removesuffix('.0')} must be {' and '.join(parts)}"


def read_json(text: str) -> object:
    """Read a value: JSON, or a word that stands for itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read_object(text: str, setting: SettingOption) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError as error:
        fix = f"write {setting.spelling}{MAPPING}, or an object of JSON"
        raise OptionError(f"{setting.spelling}: not JSON: {error}", fix=fix) from None
    if not isinstance(found, dict):
        raise OptionError(f'{setting.spelling}: not a JSON object, such as {{"top_k": 20}}')
    return found


def settings_of(command: click.Command) -> list[Settings]:
    """Return the options of a command that hold settings."""
    return [each for each in command.params if isinstance(each, Settings)]


def typed_options(context: click.Context) -> dict[str, str]:
    """Return what stands on the command line: the names of options and settings, as spelled."""
    found: dict[str, str] = {}
    typed = context.meta.get(TYPED_SETTINGS, {})
    for each in context.command.params:
        if isinstance(each, Settings):
            found |= {name: each.fields[name].spelling for name in typed.get(each.name, ())}
        elif isinstance(each, click.Option) and is_typed(
            context.get_parameter_source(each.name or "")
        ):  # an argument may have the name of a setting, such as run
            found[each.name or ""] = max(each.opts, key=len)
    return found


def is_path(parameter: click.Parameter) -> bool:
    """Tell whether a parameter names files or folders."""
    return not PATHS.isdisjoint(re.findall(r"[A-Z]+", parameter.metavar or ""))


def is_typed(source: ParameterSource | None) -> bool:
    """Tell whether the user gave a value for this call, by the command line or by a variable."""
    from click.core import ParameterSource  # noqa: PLC0415

    return source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


class Command(click.Command):
    """A command whose help has layers, which knows `--debug`, and whose JSON is an envelope."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **attributes)
        for each in self.params:
            if each.type is click.STRING and is_path(each):
                each.type = click.Path()  # which a shell completes

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; the words are kept, to suggest other commands by them."""
        ctx.meta[TYPED_WORDS] = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click forgets it where a value is missing
            raise

    def invoke(self, ctx: click.Context) -> object:
        """Call the command, and write its answer if that is to be JSON."""
        if ctx.params.get("how") != "json":
            return super().invoke(ctx)
        from findwell.cli import envelope  # noqa: PLC0415 - few commands write JSON

        answer = envelope.begin(ctx, ctx.meta[TYPED_WORDS])
        try:
            code = super().invoke(ctx)
        except click.exceptions.Exit as stop:
            code = stop.exit_code
        answer.write(code if isinstance(code, int) else 0)
        return code

    @functools.cached_property
    def _layers(self) -> list[click.Option]:
        """The options that show a part of the help, and `--debug`, which `main` looks for."""
        layers = [_layer("--help-all", "Show every option, in full.", Command.full_help)]
        for each in settings_of(self):
            show = functools.partial(Command.topic_help, settings=each)
            about = f"List the settings of {each.flag}."
            layers.append(_layer(f"--help-{each.topic}", about, show))
        debug = Option([DEBUG], is_flag=True, expose_value=False, hidden=True)
        return [*layers, debug]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with those of the help."""
        return [*super().get_params(ctx), *self._layers]

    def get_help(self, ctx: click.Context) -> str:
        """Return the help: all of it where it fits a screen, else what is needed first."""
        full = self.full_help(ctx)
        return full if full.count("\n") < SCREEN_LINES else self._help(ctx, full=False)

    def full_help(self, ctx: click.Context) -> str:
        """Return all of the help."""
        return self._help(ctx, full=True)

    def _help(self, ctx: click.Context, *, full: bool) -> str:
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        self._write_text(formatter, full=full)
        grouped: dict[str, list[tuple[str, str]]] = {}
        for each in self.params:
            record = each.get_help_record(ctx)
            if record is None or not isinstance(each, click.Option):
                continue
            group = (each.group if isinstance(each, Option) else "") or DEFAULT_GROUP
            if not full and getattr(each, "rare", False):
                continue
            text = record[1] if full else SENTENCE.split(each.help or "")[0]
            grouped.setdefault(group, []).append((record[0], text))
        layers = [each.get_help_record(ctx) for each in super().get_params(ctx)[-1:]]
        layers += [each.get_help_record(ctx) for each in self._layers] if full else []
        if full:
            grouped["Help"] = [each for each in layers if each is not None]
        for group, records in grouped.items():
            with formatter.section(group):
                formatter.write_dl(records)
        if not full:
            names = ", ".join(each.opts[0] for each in self._layers[1:-1])
            more = f"{names} list the settings of one option. " if names else ""
            formatter.write_paragraph()
            formatter.write_text(f"More: --help-all shows every option in full. {more}".strip())
        return _fitted(formatter.getvalue().rstrip("\n"))

    def _write_text(self, formatter: click.HelpFormatter, *, full: bool) -> None:
        """Write what the command does, examples, and, where there is room, what else is to say."""
        parts = inspect.cleandoc(self.help or "").split("\n\n")
        examples = [part for part in parts if part.startswith("\b")]
        others = [part for part in parts[1:] if not part.startswith("\b")]
        parts = [*parts[:1], *examples, *(others if full else ())]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join(parts))

    def topic_help(self, ctx: click.Context, settings: Settings) -> str:
        """Return the help about the settings of one option."""
        formatter = ctx.make_formatter()
        first = next(iter(settings.fields.values()))
        shown = f"{first.spelling}{MAPPING if first.is_mapping else '=VALUE'}"
        formatter.write_text(
            f"Settings of {ctx.command_path}: {shown}, which may be repeated; in "
            f"findwell.toml the table [{settings.table}]."
        )
        with formatter.section("Settings"):
            formatter.write_dl(settings.help_records())
        return formatter.getvalue().rstrip("\n")


def _fitted(text: str) -> str:
    """Break what click leaves as it is, such as examples, where a terminal is narrower."""
    from findwell.cli import options  # noqa: PLC0415 - it imports this module
    from findwell.show.tables import wrap  # noqa: PLC0415

    return wrap(text, options.width(None), hang=4)


def _layer(name: str, about: str, show: Callable[[Any, click.Context], str]) -> click.Option:
    """Return an option that prints a part of the help."""

    def print_help(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            click.echo(show(context.command, context))
            context.exit()

    return Option(
        [name], is_flag=True, is_eager=True, expose_value=False, callback=print_help, help=about
    )


class Group(click.Group):
    """Commands by name, which may be shown in sections; an unknown name suggests others."""

    command_class = Command
    sections: Mapping[str, Sequence[str]] = {}

    def get_help(self, ctx: click.Context) -> str:
        """Return the help, as wide as the terminal."""
        return _fitted(super().get_help(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command."""
        found = super().get_command(ctx, cmd_name)
        if found is None:
            raise self.unknown(ctx, cmd_name)
        return found

    def unknown(self, ctx: click.Context, name: str) -> OptionError:
        """Return the error about a command that is not there."""
        known = self.list_commands(ctx)
        inside = [
            f"{group} {inner}"
            for group in known
            for inner in self._inside(ctx, group)
            if name in (inner, f"{group}-{inner}")
        ]
        suggestion = f"did you mean {' or '.join(inside)}?" if inside else nearest(name, known)
        fix = f"{suggestion} `{ctx.command_path} --help` lists the commands"
        return OptionError(f"unknown command {name!r}", fix=fix.strip())

    def _inside(self, ctx: click.Context, name: str) -> list[str]:
        """Return the commands inside a command, if it is a group."""
        found = self.get_command(ctx, name)
        return found.list_commands(ctx) if isinstance(found, click.Group) else []

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of use."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their sections."""
        known = self.list_commands(ctx)
        listed = {name for names in self.sections.values() for name in names}
        others = [name for name in known if name not in listed]
        for section, names in {**self.sections, "Commands": others}.items():
            rows = list(self._rows(ctx, [name for name in names if name in known]))
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows)

    def _rows(self, ctx: click.Context, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        for name in names:
            found = self.get_command(ctx, name)
            if found is not None and not found.hidden:
                yield name, found.get_short_help_str(100)
