"""Fields under other names: `--map ROLE.FIELD=MEANING`, in Python `Reading(fields=…)`.

One rule: what FIELD holds is read as MEANING, and nothing else is. The role says in which input the
field is, the run or the gold labels; a file that holds both has fields of both roles. Inside nested
objects a field is a path, such as `vars.context`. Other fields keep their usual meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from findwell.core.errors import InputError, OptionError, choose, nearest
from findwell.core.findings import shorten
from findwell.io.read.vocabulary import TABLE_COLUMNS

if TYPE_CHECKING:
    from findwell.core.frames import pl

Fields = Mapping[str, str]  # of one input: its fields, and what each of them means
NO_FIELDS: Fields = {}
TEXTS = {"retrieved_texts": "retrieved", "gold_texts": "gold"}
SIDES = frozenset({"retrieved", "gold", *TEXTS})
BY_DOCUMENT = ("doc", "text", "start", "end")  # columns of tables with one row per document
ABOUT = ("query", "question", "reference")
MEANINGS = {
    "run": ("retrieved", "retrieved_texts", "scores", *ABOUT, *BY_DOCUMENT, "score", "rank"),
    "gold": ("gold", "gold_texts", *ABOUT, *BY_DOCUMENT, "grade", "group"),
}
# words by which a field is suggested for a meaning
HINTS = {
    "retrieved": "retriev hit result found search context chunk passage doc id",
    "gold": "gold truth relevant expected correct target label reference context chunk doc id",
}
SHOWN_FIELDS = 20  # fields that a message lists


def fields_for(fields: object, *roles: str) -> Fields:
    """Return what the fields of these roles mean; all of the mapping is checked.

    A mapping is spelled as on the command line, or nested as in TOML.

    >>> fields_for({"gold.correct_chunks": "gold", "run": {"hits": "retrieved"}}, "gold")
    {'correct_chunks': 'gold'}
    """
    if not fields:
        return NO_FIELDS
    if not isinstance(fields, Mapping):
        what = f"fields is of type {type(fields).__name__}"
        raise OptionError(what, fix='give a dict: fields={"gold.FIELD": "gold"}')
    found: dict[str, str] = {}
    taken: dict[tuple[str, str], str] = {}
    for spelling, meaning in _flat(fields):
        role, dot, name = spelling.partition(".")
        if not (dot and name) or not isinstance(meaning, str):
            what = f"{shorten(f'{spelling}={meaning}')!r} is not ROLE.FIELD=MEANING"
            raise OptionError(what, fix="write for example --map gold.correct_chunks=gold")
        choose("role of a field", role, MEANINGS)
        other = next(each for each in MEANINGS if each != role)
        if meaning in MEANINGS[other] and meaning not in MEANINGS[role]:
            what = f"{meaning!r} is not a meaning of a field of the {role}"
            raise OptionError(what, fix=f"if {name!r} holds it: --map {other}.{name}={meaning}")
        choose(f"meaning of a field of the {role}", meaning, MEANINGS[role])
        if role not in roles:
            continue
        if found.get(name, meaning) != meaning:
            raise _two("a field is mapped to two meanings", name, found[name], meaning)
        if taken.setdefault(("", meaning), name) != name:
            raise _two("two fields are mapped to one meaning", meaning, taken["", meaning], name)
        found[name] = meaning
    return found


def _two(what: str, name: str, *both: str) -> OptionError:
    return OptionError(f"{what}: {name!r} ({' and '.join(both)})", fix="map one of them")


def _flat(fields: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def reach(record: Any, fields: Fields) -> Any:  # noqa: ANN401
    """Return a record in which mapped fields of inner objects are fields of its own.

    >>> reach({"vars": {"context": ["a"]}}, {"vars.context": "retrieved"})["vars.context"]
    ['a']
    """
    paths = [name for name in fields if "." in name]
    if not paths or not isinstance(record, Mapping):
        return record
    found = {}
    for path in paths:
        value: Any = record
        for name in path.split(".") if path not in record else ():
            value = value.get(name, ...) if isinstance(value, Mapping) else ...
        if path not in record and value is not ...:
            found[path] = value
    return {**record, **found} if found else record


def require_fields(fields: Fields, names: Iterable[str], where: str) -> None:
    """Raise if a mapped field is not there, with the fields that are."""
    given = list(dict.fromkeys(map(str, names)))
    for name, meaning in fields.items():
        if name not in given:
            typed = f"--map {_role(meaning)}.FIELD={meaning}"
            raise InputError(
                f"no field {shorten(name)!r}, which is mapped to {meaning!r}; "
                f"found {list_names(given)}",
                where=where,
                fix=nearest(name, given) or f"map one of them: {typed}",
            )


def list_names(names: Iterable[str]) -> str:
    """Return the names of fields, for a message."""
    given = list(names)
    more = f" and {len(given) - SHOWN_FIELDS} more" if len(given) > SHOWN_FIELDS else ""
    return ", ".join(map(shorten, given[:SHOWN_FIELDS])) + more or "nothing"


def _role(meaning: str) -> str:
    return next(role for role, known in MEANINGS.items() if meaning in known)


def suggestion(record: object, sides: Iterable[str], known: Collection[str] = ()) -> str:
    """Return the options to type for sides that no field of a record has by its name.

    Fields that are `known` have a meaning already.

    >>> suggestion({"id": 7, "question": "Why?", "best": ["a", "b"]}, ["gold"])
    'if best holds it: --map gold.best=gold (Reading(fields={"gold.best": "gold"}))'
    """
    every = _leaves(record) if isinstance(record, Mapping) else ()
    leaves = {name: value for name, value in every if name not in known}
    chosen: dict[str, str] = {}
    for side in sides:
        free = {name: value for name, value in leaves.items() if name not in chosen}
        if (name := _likely(free, side)) is not None:
            chosen[name] = side
    if not chosen:
        return ""
    typed = " ".join(f"--map {_role(side)}.{name}={side}" for name, side in chosen.items())
    python = ", ".join(f'"{_role(side)}.{name}": "{side}"' for name, side in chosen.items())
    hold = "holds it" if len(chosen) == 1 else "hold them"
    return f"if {' and '.join(chosen)} {hold}: {typed} (Reading(fields={{{python}}}))"


def _likely(leaves: Mapping[str, object], side: str) -> str | None:
    """Return the field that most likely holds a list of ids or texts, judged by name and value."""

    def fitness(name: str) -> tuple[bool, int]:
        hints = HINTS[side].split()
        word = name.rpartition(".")[2].casefold()
        at = next((len(hints) - nth for nth, hint in enumerate(hints) if hint in word), 0)
        return _is_list(leaves[name]), at

    best = max(leaves, key=fitness, default=None)
    if best is None:
        return None
    is_list, at = fitness(best)
    value: Any = leaves[best]
    if is_list and not (isinstance(value, list | tuple) and value and type(value[0]) is int):
        return best
    return best if at > 2 else None  # "doc" and "id" say too little


def _is_list(value: object) -> bool:
    if isinstance(value, str):
        return value.lstrip()[:1] in ("[", "(")
    if not isinstance(value, list | tuple):
        return False
    return not any(isinstance(each, float) for each in value)  # as a vector does


def _leaves(
    record: Mapping[Any, Any], before: str = "", depth: int = 0
) -> Iterator[tuple[str, object]]:
    for name, value in record.items():
        if isinstance(value, Mapping) and value and depth < 2:
            yield from _leaves(value, f"{before}{name}.", depth + 1)
        else:
            yield f"{before}{name}", value


def renamed(columns: Iterable[str], fields: Fields) -> dict[str, str]:
    """Return the columns of a table with one row per document, under the names of what they mean.

    A column that has the name of another one's meaning is left out.
    """
    usual = {role: words[0] for role, words in TABLE_COLUMNS.items()}
    new = {name: usual.get(meaning, meaning) for name, meaning in fields.items()}
    given = list(columns)
    taken = {new[name] for name in given if name in new}
    return {name: new.get(name, name) for name in given if name in new or name not in taken}


def rename(table: pl.DataFrame, fields: Fields, where: str) -> pl.DataFrame:
    """Return a table with one row per document whose mapped columns have the usual names."""
    if not fields:
        return table
    require_fields(fields, table.columns, where)
    names = renamed(table.columns, fields)
    return table.select(*names).rename(names)
