"""Why two dialects give two numbers: said from their formulas and policies, not by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.explanation.accounts import LACKING

if TYPE_CHECKING:
    from karat.dialects import Dialect
    from karat.explanation.accounts import Account

# What each choice of a policy does, in words.
POLICIES: dict[str, dict[str, str]] = {
    "scores": {
        "float64": "compares scores as 64-bit floats",
        "float32": "compares scores as 32-bit floats, so that close ones tie",
    },
    "duplicates": {
        "first": "counts the first of a repeated document",
        "error": "refuses repeated documents",
    },
    "missing": {
        "zero": "scores a query that the run lacks 0",
        "skip": "leaves out a query that the run lacks",
        "error": "stops at a query that the run lacks",
    },
    "no_relevant": {
        "undefined": "has no value for a query without a relevant item",
        "zero": "scores a query without a relevant item 0",
    },
    "nothing": {
        "zero": "scores a query for which nothing was retrieved 0",
        "undefined": "has no value for a query for which nothing was retrieved",
    },
    "blank": {
        "error": "refuses blank ids",
        "undefined": "has no value for a query with a blank id",
        "kept": "takes a blank text for a unit that covers nothing",
    },
    "grades": {"any": "takes any grade", "integer": "takes whole grades"},
}


def differences(accounts: list[Account], dialects: list[Dialect]) -> list[str]:
    """Say what makes the numbers of two dialects differ, from their formulas and policies."""
    base = dialects[0]
    said: list[str] = []
    own = {account.measure: account for account in accounts if account.dialect == base.name}
    for other in dialects[1:]:
        for account in accounts:
            mine = own.get(account.measure)
            if account.dialect != other.name or mine is None or account.value == mine.value:
                continue
            said += (f"{account.measure}: {cause}" for cause in _causes(mine, account, base, other))
    return said


def _causes(mine: Account, theirs: Account, base: Dialect, other: Dialect) -> list[str]:
    causes = []
    if theirs.parts:  # what they are made of is told before
        causes.append(f"it is made of {' and '.join(theirs.parts)}, see there")
    elif theirs.adds != mine.adds:
        verb = _third if theirs.divisor is not None else _object
        causes.append(f"{other.name} {verb(theirs.adds)}; {base.name} {verb(mine.adds)}")
    if theirs.divided_by != mine.divided_by:
        causes.append(
            f"{other.name} divides by {theirs.divided_by}, {base.name} by {mine.divided_by}"
        )
    if theirs.relation != mine.relation:
        causes.append(f"{other.name} matches by {theirs.relation}, {base.name} by {mine.relation}")
    if None in (mine.value, theirs.value) or not causes:
        lacking = {mine.reason, theirs.reason} & set(LACKING.values())
        for field, says in POLICIES.items():
            a, b = getattr(base.policy, field), getattr(other.policy, field)
            if a != b and bool(lacking) == (field == "missing"):
                causes.append(f"{other.name} {says[b]}; {base.name} {says[a]}")
    if base.run_ids != other.run_ids:
        causes.append(f"{other.name} normalises the ids of the run ({other.run_ids})")
    return causes


def _third(words: str) -> str:
    """Turn an instruction into a statement: Count the units → counts the units."""
    verb, _, rest = words.partition(" ")
    return f"{verb.lower()}s {rest}"


def _object(words: str) -> str:
    """Turn a definition into a statement: How many units → takes how many units."""
    return f"takes {words[:1].lower()}{words[1:]}"
