"""The JSON object that every command prints with `--format json`: the envelope of its answer.

A command hands over what it found (`keep`, `show`). The object is written when the command has
ended, because the exit code, the files and what helps next are known only then. It has at most
LONGEST_ANSWER bytes, unless more was asked for: long tables keep their first rows, and the file
that `-o` names gets all of them.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from findwell import __version__
from findwell.cli.command import Settings
from findwell.core.findings import shorten
from findwell.core.verdict import UNCLEAR, WORSE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from findwell.core.errors import FindwellError
    from findwell.core.findings import Finding
    from findwell.show.document import Document

LONGEST_ANSWER: Final = 4096  # bytes, unless more was asked for
LONGEST_LINE: Final = 100  # of the JSON, where what it holds can be divided
LONGEST_DESCRIPTION: Final = 300  # letters of an object that stays, where tables do not suffice
LONGEST_TEXT: Final = 120  # letters of a text, where a shorter table does not suffice
FIRST_ROWS: Final = 64  # of a table, before it is looked at closely
KEPT_ROWS: Final = 3  # of the leading table, verdicts and findings: these stay
ANSWER: Final = "answer"  # key of what commands share
WHOLE_FILE: Final = "answer.json"  # as the suggested command calls it
# options that ask for long tables
MORE = frozenset(
    {"--per-query", "--slice", "--misses", "--explain-verdicts", "--details", "--all-pairs"}
    | {"--every", "--worst"}
)
# what a suggested command takes over from the one that was given
INPUT_FLAGS = frozenset({"--gold", "--corpus", "--by", "--dialect", "--read"})
INPUT_SETTINGS = frozenset(
    {
        "run_format",
        "skip_bad",
        "ids",
        "gold_format",
        "id_from",
        "query_from",
        "embedder",
        "run",
        "gold",
    }
)
SECRETS = re.compile(r"(headers|extra_body|options)\b.*", re.DOTALL)  # settings that may hold keys
SECRET_FLAGS = frozenset({"--webhook", "--token", "--header"})
WRITING_FLAGS = frozenset({"--output", "--save", "--update-baseline", "--junit", "--prometheus"})
READING_COMMANDS = frozenset({"score", "compare", "check", "curve", "power", "explain"})
_OPTION = re.compile(r"(?<!or )(--by|--read) ((?:\w+=)?(?:'[^']*'|[\w:#./-]*[\w#]))")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")  # in a command, such as RETRIEVER
_COMMAND = re.compile(r"`(findwell [^`…]+)`")


@dataclass
class CommandAnswer:
    """What a command has found so far, and what it is told about the command line."""

    command: str
    typed: CommandLine | None = None
    output: str | None = None  # file for all of it
    can_output: bool = False  # whether -o of this command is such a file
    result: dict[str, Any] | None = None
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    error: dict[str, str] | None = None

    def fail(self, kind: str, message: str, where: str = "", fix: str = "") -> None:
        """Note why the command does not end with exit code 0."""
        self.error = {"kind": kind, "message": message, "where": where, "fix": fix}

    def write(self, code: int) -> None:
        """Write the envelope: all of it to a file if one is named, and what fits to the screen."""
        from findwell.cli import options  # noqa: PLC0415 - it writes to this module

        if code and self.error is None:
            self.fail("Failed", f"the command ended with exit code {code}")
        if not code:
            self.error = None
        if self.result is None and not code:
            return  # something else was printed, as asked
        to_file = self.output not in (None, "-")
        if to_file:
            options.write(as_text(self.envelope()), self.output)
        asked_for_more = self.output == "-" or (self.typed is not None and self.typed.flags & MORE)
        shown = self.envelope()
        if to_file or not asked_for_more:
            shown = shortened(shown, self._next)
        options.write(as_text(shown), None)

    def envelope(self) -> dict[str, Any]:
        """Return all of the object that is written."""
        command = (lambda _: None) if self.typed is None else self.typed.fixing
        findings = [{**each, "command": command(each["fix"])} for each in self.findings]
        return {
            "ok": self.error is None,
            "command": self.command,
            "version": __version__,
            "result": self.result,
            "verdicts": self.verdicts,
            "findings": findings,
            "error": self.error,
            "next": self._next(cut=False),
            "files": self.files,
        }

    def _next(self, *, cut: bool) -> list[dict[str, str]]:
        """Return commands that would help now; `cut` says whether rows were left out."""
        found: dict[str, str] = {}
        for command in _commands_in((self.error or {}).get("fix", "")):
            found.setdefault(command, "shows what is possible")
        if self.typed is not None:
            if cut and self.output is None:
                whole = self.typed.whole(can_output=self.can_output)
                found |= {whole: "gives the rows that are left out here"} if whole else {}
            if self.result is not None:
                found |= dict(self.typed.suggestions(self))
        return [{"command": command, "why": why} for command, why in found.items()]


class CommandLine:
    """What was typed, so that other commands about the same inputs can be suggested."""

    def __init__(self, context: click.Context, words: Sequence[str]) -> None:
        self.context, self.words = context, list(words)
        self.name = context.command_path.partition(" ")[2]

    @cached_property
    def given(self) -> list[tuple[click.Parameter, list[str]]]:
        """The parameters that were typed, in their order, with their values as texts."""
        parser = self.context.command.make_parser(self.context)
        values, _, _ = parser.parse_args(args=list(self.words))
        found = []
        for each in self.context.command.params:
            value = values.get(each.name or "")
            several = value if isinstance(value, list | tuple) else [value]
            texts = [str(text) for text in several if isinstance(text, str)]
            if texts or value is True:
                found.append((each, texts))
        return found

    @cached_property
    def flags(self) -> frozenset[str]:
        """The options that were typed."""
        return frozenset(flag_of(each) for each, _ in self.given)

    @property
    def inputs(self) -> list[str]:
        """What the arguments name: runs or results."""
        found = [texts for each, texts in self.given if isinstance(each, click.Argument)]
        return [text for texts in found for text in texts]

    def whole(self, *, can_output: bool) -> str:
        """Return the command that gives all rows of this one; '' if there is none."""
        formats = next((each for each in self.context.command.params if each.name == "how"), None)
        choices = getattr(getattr(formats, "type", None), "choices", ())
        rows = next((each for each in ("jsonl", "csv") if each in choices), "")
        if can_output:
            return self._spelled(self.name, [*self.words_of(), "-o", WHOLE_FILE])
        if rows and "--output" not in self.flags:
            return self._spelled(self.name, [*self.words_of(), "--format", rows])
        return ""

    def words_of(self) -> list[str]:
        """Return what was typed, spelled again, without what writes files and may be secret."""
        found: list[str] = []
        for each, texts in self.given:
            flag = flag_of(each)
            if flag in WRITING_FLAGS:
                continue
            if isinstance(each, click.Argument):
                found += texts
            elif not texts:
                found.append(flag)
            for text in texts if isinstance(each, click.Option) else ():
                shown = "…" if flag in SECRET_FLAGS else text
                if isinstance(each, Settings):
                    shown = SECRETS.sub(r"\1=…", text)
                found += [flag, shown]
        return found

    def about_inputs(self, name: str, inputs: Sequence[str], *more: str) -> str:
        """Return another command about the same inputs."""
        found = list(inputs)
        for each, texts in self.given:
            flag = flag_of(each)
            if flag in INPUT_FLAGS:
                for text in texts:
                    if flag != "--read" or re.split("[.=]", text)[0] in INPUT_SETTINGS:
                        found += [flag, text]
        return self._spelled(name, [*found, *more])

    def _spelled(self, name: str, words: Iterable[str]) -> str:
        from findwell.cli.failures import without_secrets  # noqa: PLC0415

        return without_secrets(shlex.join(["findwell", *name.split(), *words]))

    def fixing(self, fix: str) -> str | None:
        """Return a command that applies a fix, and changes no file; None if there is none."""
        if commands := _commands_in(fix):
            return commands[0]
        found = _OPTION.search(fix)
        if self.name not in READING_COMMANDS or found is None:
            return None
        flag, value = found[1], found[2].replace("'", "")
        if (flag == "--read") != ("=" in value) or flag in self.flags - {"--read"}:
            return None
        measured = [word for name in self.measures for word in ("-m", name)]
        return self.about_inputs(self.name, self.inputs, *measured, flag, value)

    @property
    def measures(self) -> list[str]:
        """The measures that were typed."""
        return next((texts for each, texts in self.given if flag_of(each) == "--measure"), [])

    def suggestions(self, answer: CommandAnswer) -> Iterator[tuple[str, str]]:
        """Yield commands that follow from what was found, and why; none of them costs money."""
        runs = self.inputs
        for row in (answer.result or {}).get("project") or ():  # of the doctor
            if row["state"] != "ok" and row["command"] and not PLACEHOLDER.search(row["command"]):
                yield row["command"], row["sentence"]
        if self.name not in READING_COMMANDS or "--judge" in self.flags or "-" in runs:
            return
        rows = answer.verdicts
        unclear = _first_measure(rows, UNCLEAR, "undecided")
        if unclear and len(runs) <= 2:
            why = f"says how many queries would make {unclear} clear"
            yield self.about_inputs("power", runs, "-m", unclear), why
        if bad := _first_measure(rows, WORSE, "fail"):
            why = f"explains the queries with the lowest {bad}"
            yield self.about_inputs("explain", runs[-1:], "-m", bad, "--worst", "3"), why
        if self.name == "score" and len(runs) > 1:
            yield self.about_inputs("compare", runs), "tests whether one run is better than another"
        if answer.findings and self.name != "check" and all(Path(run).is_file() for run in runs):
            yield self.about_inputs("check", runs), "shows the findings about these inputs alone"


def _commands_in(fix: str) -> list[str]:
    """Return the commands in a text that can be run as they are; a bare name needs inputs."""
    found = _COMMAND.findall(fix)
    return [each for each in found if each.removeprefix("findwell ") not in READING_COMMANDS]


def _first_measure(rows: Iterable[Mapping[str, Any]], word: str, outcome: str) -> str:
    """Return the measure of the first verdict with this word or outcome; '' if there is none."""
    found = (row for row in rows if row["verdict"] == word or row["outcome"] == outcome)
    return next((row["measure"] for row in found), "")


def flag_of(parameter: click.Parameter) -> str:
    """Return the longest spelling of an option."""
    return max(parameter.opts, key=len)


def begin(context: click.Context, words: Sequence[str]) -> CommandAnswer:
    """Return the answer of a command that is to be JSON; `words` are what was typed behind it."""
    typed = CommandLine(context, words)
    answer = CommandAnswer(typed.name, typed)
    context.find_root().ensure_object(dict)[ANSWER] = answer
    return answer


def current() -> CommandAnswer | None:
    """Return the answer of the command that runs; None unless it is to be JSON."""
    context = click.get_current_context(silent=True)
    known = None if context is None else context.find_root().obj
    return known.get(ANSWER) if isinstance(known, dict) else None


def keep(
    result: Mapping[str, Any],
    *,
    findings: Iterable[Finding] = (),
    verdicts: Iterable[dict[str, Any]] = (),
) -> None:
    """Add to the answer; findings may also be in the result, as dictionaries."""
    if (known := current()) is not None:
        added = dict(result)
        known.findings += added.pop("findings", None) or [each.as_dict() for each in findings]
        known.verdicts += verdicts
        known.result = {**(known.result or {}), **added}


def answer(
    result: Mapping[str, Any], output: str | None, *, findings: Iterable[Finding] = ()
) -> None:
    """Give the answer of a command whose `-o` names the file for all of it."""
    keep(result, findings=findings)
    send_to(output)


def send_to(output: str | None) -> None:
    """Say which file gets the whole answer; without one, `-o` could name it."""
    if (known := current()) is not None:
        known.output, known.can_output = output, True


def wrote(path: object) -> None:
    """Note a file or folder that was written."""
    if (known := current()) is not None and str(path) not in known.files:
        known.files.append(str(path))


def fail(kind: str, message: str, *, fix: str = "") -> None:
    """Note why the command will not end with exit code 0, though it has a result."""
    if (known := current()) is not None:
        known.fail(kind, message, fix=fix)


def show(how: str, output: str | None, *documents: Document) -> None:
    """Write documents in a format."""
    from findwell.cli import options  # noqa: PLC0415

    options.prepare(how, output, *documents)()


def write_failure(
    shared: Mapping[str, Any], arguments: Sequence[str], error: FindwellError
) -> None:
    """Write the envelope of a failure, if JSON was asked for."""
    words = list(arguments)
    words = words[: words.index("--")] if "--" in words else words
    typed = "--format=json" in words or ("--format", "json") in pairwise(words)
    known = shared.get(ANSWER)
    if known is None and not typed:
        return
    command = known.command if known else next((word for word in words if word[:1] != "-"), "")
    answer = CommandAnswer(command, files=known.files if known else [])
    answer.fail(type(error).__name__, error.what, error.where, error.fix)
    with contextlib.suppress(OSError):  # it may have no reader
        click.echo(as_text(answer.envelope()), nl=False)


# how it is written


def as_text(value: object) -> str:
    """Return JSON that people can read as well: a row stands in one line."""
    return f"{_lines(value, '')}\n"


def _lines(value: object, indent: str) -> str:
    line = json.dumps(value, ensure_ascii=False)
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if len(indent) + len(line) <= LONGEST_LINE or not any(
        isinstance(each, dict | list) and each for each in inside
    ):
        return line
    deeper = f"{indent} "
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(str(key), ensure_ascii=False)}: {_lines(each, deeper)}"
            for key, each in value.items()
        ]
    else:
        parts = [_lines(each, deeper) for each in inside]
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{end}"


# how it is kept short


def shortened(
    envelope: dict[str, Any], suggest: Callable[..., list[dict[str, str]]]
) -> dict[str, Any]:
    """Return an envelope of at most LONGEST_ANSWER bytes: tables keep their first rows.

    The longest table of the result gives way first; the first one keeps some rows, unless there
    are verdicts. Objects that describe how it came about follow, then verdicts and findings, then
    long texts. `omitted` in
    the result counts the rows that each table lacks, and the fields of an object that is missing.
    """
    if _size(envelope) <= LONGEST_ANSWER or not envelope["result"]:
        return envelope
    short: dict[str, Any] = json.loads(json.dumps(envelope))
    short["next"] = suggest(cut=True)
    result, omitted = short["result"], dict[str, int]()
    result["omitted"] = omitted
    for path, table in list(_tables(result)):
        _drop(omitted, path, table, len(table) - FIRST_ROWS)
    while (excess := _size(short) - LONGEST_ANSWER) > 0:
        if found := _longest_table(short):
            path, table = found
            count, freed = 0, 0
            while freed < excess and count < len(table) / 2:
                count += 1
                freed += len(json.dumps(table[-count], ensure_ascii=False).encode())
            _drop(omitted, path, table, count)
        elif name := next((key for key, each in result.items() if _is_description(each)), ""):
            omitted[name] = len(result.pop(name))
        elif any(len(short[name]) > KEPT_ROWS for name in ("findings", "verdicts")):
            name = max("findings", "verdicts", key=lambda each: len(short[each]))
            _drop(omitted, f"/{name}", short[name], 1)
        else:
            short["result"] = _with_short_texts(result)
            break
    return short


def _longest_table(short: Mapping[str, Any]) -> tuple[str, list[Any]] | None:
    """Return the table of the result that is to lose rows next; None if all are short."""
    tables = list(_tables(short["result"]))
    lead = "" if short["verdicts"] else next((path for path, _ in tables), "")
    long = [each for each in tables if len(each[1]) > (KEPT_ROWS if each[0] == lead else 1)]
    inner = [each for each in long if not any(True for row in each[1] for _ in _tables(row))]
    return max(inner or long, key=lambda each: len(json.dumps(each[1])), default=None)


def _is_description(value: object) -> bool:
    """Tell a long object, such as the settings of a judge, from what was found."""
    return isinstance(value, dict) and len(json.dumps(value)) > LONGEST_DESCRIPTION


def _size(envelope: object) -> int:
    return len(as_text(envelope).encode())


def _tables(value: object, path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of rows in a result, with where they stand."""
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        yield path, value
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _tables(each, f"{path}.{key}".lstrip("."))


def _drop(omitted: dict[str, int], path: str, table: list[Any], count: int) -> None:
    """Leave out the last rows of a table, and count them."""
    if count <= 0:
        return
    del table[-count:]
    gone = tuple(f"{path}.{number}." for number in range(len(table), len(table) + count))
    for inner in [name for name in omitted if name.startswith(gone)]:
        del omitted[inner]
    omitted[path] = omitted.get(path, 0) + count


def _with_short_texts(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        return shorten(value, LONGEST_TEXT)
    if isinstance(value, list):
        return [_with_short_texts(each) for each in value]
    if isinstance(value, dict):
        return {key: _with_short_texts(each) for key, each in value.items()}
    return value
