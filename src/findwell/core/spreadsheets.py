"""Tables as CSV and TSV in which a spreadsheet finds no formulas.

Ids, questions and texts come from outside. A spreadsheet takes a cell that begins with one of
`= + - @`, a tab or a line break for a formula, which can send the other cells away. Before such a
text an apostrophe is written, the spreadsheets' own sign for a text. Numbers stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from findwell.core.frames import pl

# one more apostrophe before those that are there, so that taking one away is exact
FORMULA = "^'*[=+\\-@\t\r\n＝＋－＠]"
MARKED_FORMULA = "^'+[=+\\-@\t\r\n＝＋－＠]"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?%?$"
# columns by which findwell knows the tables that it wrote and reads again
OWN = (
    frozenset({"query", "doc", "annotator", "planned", "stratum", "design", "state"}),
    frozenset({"span_id", "document_position", "annotator_kind", "identifier"}),
)


def to_csv(table: pl.DataFrame, separator: str = ",") -> str:
    r"""Return a table as text, with an apostrophe before what would be a formula.

    >>> to_csv(pl.DataFrame({"doc": ["=1+1", "-3", "d7"], "difference": [-0.5, 0.1, 0.2]}))
    "doc,difference\n'=1+1,-0.5\n-3,0.1\nd7,0.2\n"
    """
    names = pl.DataFrame({"name": table.columns}, {"name": pl.String})
    guarded = names.select(_guarded("name"))["name"]
    named = table.rename(dict(zip(table.columns, guarded, strict=True)))
    texts = [name for name, kind in named.schema.items() if kind == pl.String]
    return named.with_columns(_guarded(name) for name in texts).write_csv(separator=separator)


def is_own(columns: Iterable[str]) -> bool:
    """Tell whether findwell wrote a table with these columns, so that its apostrophes are known."""
    names = {*columns}
    return any(own <= names for own in OWN)


def without_apostrophes(table: pl.LazyFrame) -> pl.LazyFrame:
    """Take away what `to_csv` put before texts, in a table whose columns are all texts."""
    marked = pl.all().str.contains(MARKED_FORMULA)
    return table.with_columns(pl.when(marked).then(pl.all().str.slice(1)).otherwise(pl.all()))


def _guarded(name: str) -> pl.Expr:
    text = pl.col(name)
    formula = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
    return pl.when(formula).then(pl.lit("'") + text).otherwise(text).alias(name)
