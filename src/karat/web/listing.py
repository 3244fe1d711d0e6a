"""The list of results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from karat.report.charts.svg import text
from karat.report.html.markup import scroll
from karat.report.layout import number
from karat.spelling import name_relations, spell_relation

if TYPE_CHECKING:
    from karat.web.folders import Found

SHOWN = 3  # runs of a result in its row


def listing(results: list[Found]) -> str:
    """Return the results as a form: pick one or several."""
    if not results:
        return (
            '<div class="card"><h2>No results yet</h2><p class="empty">'
            "<code>karat score … --save DIR</code> writes one. This page looks for new ones by "
            "itself.</p></div>"
        )
    rows = "".join(map(_row, results))
    heads = "".join(
        f'<th scope="col" class="left">{head}</th>'
        for head in ("Result", "Made", "Systems", "First measure")
    )
    table = (
        '<table class="sortable" id="results"><thead><tr>'
        f'<td></td>{heads}<th scope="col">Findings</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    return (
        '<div><h2 class="title">Results</h2>'
        f'<p class="lede">{len(results):,} results, newest first</p></div>'
        '<form class="card explorer" action="/report" method="get">'
        '<div class="tools"><label class="wide">Search<input type="search" data-filters="results" '
        'placeholder="a name, a system, a date" autocomplete="off"></label>'
        "<button>Show the chosen ones side by side</button></div>"
        f"{scroll(table, 'Results')}</form>"
    )


def _row(found: Found) -> str:
    runs = [str(run) for run in found.manifest.get("runs", [])]
    findings = len(found.manifest.get("findings", []))
    box = f'<input type="checkbox" name="r" value="{found.id}"'
    cells = [
        f'<td>{box} aria-label="Choose {text(found.name)}"></td>',
        f'<th scope="row" class="left"><a href="/report?r={found.id}">{text(found.name)}</a></th>',
        f'<td class="left">{text(_when(found.created))}</td>',
        f'<td class="left">{text(_some(runs))}</td>',
        f'<td class="left">{_headline(found)}</td>',
        f"<td>{findings}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _when(created: str) -> str:
    return created.replace("T", " ").removesuffix("+00:00") + (" UTC" if created else "")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _headline(found: Found) -> str:
    """Return the first measure, run by run."""
    try:
        rows: list[Any] = json.loads((found.path / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "–"
    rows = [row for row in rows if isinstance(row, dict) and {"run", "measure", "value"} <= {*row}]
    if not rows:
        return "–"
    first = [row for row in rows if row["measure"] == rows[0]["measure"]]
    told = [
        f"{text(str(row['run']))} <strong>{number(row['value'])}</strong>" for row in first[:SHOWN]
    ]
    return f"{text(str(rows[0]['measure']))}{text(_matched_by(found))}: {' · '.join(told)}"


def _matched_by(found: Found) -> str:
    """Name the relations of a result with their parameters, unless it is plain ids."""
    relations = found.manifest.get("relations")
    if not isinstance(relations, dict):
        return ""
    told = (
        spell_relation(name, each if isinstance(each, dict) else {})
        for name, each in relations.items()
    )
    return name_relations(told, " by ")
