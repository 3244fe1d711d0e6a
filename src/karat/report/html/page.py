"""The page: sections, style, script and data in one file."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from karat import __version__
from karat.report.charts.palette import DARK, LIGHT, chart_css, variables
from karat.report.charts.svg import text
from karat.report.html import sections
from karat.report.html.markup import as_json, policy
from karat.spelling import name_relations

if TYPE_CHECKING:
    from karat.report.html.prepared import Prepared

EXPLORER = """
<div class="card explorer">
<noscript><p class="note">This table needs JavaScript.</p></noscript>
<div class="chips" id="chips" role="group" aria-label="Which queries"></div>
<div class="tools">
<label class="wide">Search<input type="search" id="search" placeholder="words of the question, or an id" autocomplete="off"></label>
<span id="pickers" class="tools"></span>
</div>
<p class="note" id="query-count" role="status" aria-live="polite"></p>
<div class="scroll"><table class="queries"><caption class="sr">Queries; a button opens each</caption>
<thead id="query-head"></thead><tbody id="query-rows"></tbody></table></div>
<p class="empty" id="query-empty" hidden>No query is like that.</p>
<p class="pager"><button type="button" id="query-more" hidden>Show more</button></p>
</div>"""  # noqa: E501


LONGEST = 70  # letters of a title
STAYS = "Everything is in this file; nothing is fetched from anywhere."
SERVED = "Served by this machine, to this machine only."


def page(prepared: Prepared, *, live: dict[str, Any] | None = None, tools: str = "") -> str:
    """Return a report as HTML; `live` tells its script where a server answers."""
    panel = prepared.panel
    named = {
        "overview": ("Overview", sections.overview(prepared)),
        "comparison": ("Comparison", sections.comparison(prepared)),
        "queries": ("Queries", _notes(prepared) + EXPLORER),
        "distributions": ("Distributions", sections.distributions(prepared)),
        "cutoffs": ("Cutoffs", sections.cutoffs(prepared)),
        "slices": ("Slices", sections.slices(prepared)),
        "findings": ("Findings", sections.findings(panel)),
        "provenance": ("What made the numbers", sections.provenance(panel)),
    }
    shown = {key: each for key, each in named.items() if each[1]}
    body = "".join(
        f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{title}</h2>'
        f"{content}</section>"
        for key, (title, content) in shown.items()
    )
    title = " · ".join(panel.names)
    if len(title) > LONGEST and len(panel.names) > 1:
        title = f"{len(panel.names)} systems"
    result = panel.systems[0].result
    lede = f"{panel.queries.height:,} queries · dialect {text(result.dialect)}"
    lede += text(name_relations(result.matched_by.values()))
    if judges := {each.result.judge["name"]: None for each in panel.systems if each.result.judge}:
        lede += f" · judge {text(', '.join(judges))}"
    if panel.only is not None:
        lede += f" · only where {text(panel.only[0])} is {text(panel.only[1])}"
    if len(panel.names) > 1:
        lede += f" · baseline {text(panel.names[0])}"
    head = f'<div><h2 class="title">{text(title)}</h2><p class="lede">{lede}</p>{tools}</div>'
    links = {f"#{key}": title for key, (title, _) in shown.items()}
    return document(f"{title} · karat", links, head + body, prepared.data, live)


def document(
    title: str,
    links: dict[str, str],
    body: str,
    data: dict[str, Any],
    live: dict[str, Any] | None = None,
) -> str:
    """Return a whole page: its style and script are the only ones that its policy lets run."""
    style, script = stylesheet(), asset("report.js")
    rules = policy(style, script, live=live is not None)
    listed = "".join(
        f'<li><a href="{text(target)}">{text(label)}</a></li>' for target, label in links.items()
    )
    home = '<a href="/">karat</a>' if live is not None else "karat"
    news = (
        '<p class="banner" id="news" role="status" hidden>A new result has appeared. '
        '<a href="/">Show the list</a></p>'
        if live is not None
        else ""
    )
    word = "report" if live is None else "view"
    told = data if live is None else data | {"live": live}
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f'<meta name="generator" content="karat {__version__}">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#main">Skip to the content</a>\n'
        f'<header class="top"><h1><span class="gem" aria-hidden="true"></span>{home}'
        f'<span class="word">{word}</span></h1><nav aria-label="Sections"><ul>{listed}</ul></nav>'
        '<button type="button" id="theme" title="Colours: as the system, light or dark">Theme'
        f'</button></header>\n<main id="main">{body}{news}</main>\n'
        f"<footer>Made by karat {__version__}. {STAYS if live is None else SERVED}</footer>\n"
        f'<script type="application/json" id="data">{as_json(told)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _notes(prepared: Prepared) -> str:
    return "".join(f'<p class="note">{text(note)}</p>' for note in prepared.notes)


@functools.cache
def asset(name: str) -> str:
    """Return a file that comes with the package."""
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


@functools.cache
def stylesheet() -> str:
    """Return the style of the page and its charts, light and dark."""
    dark = variables(DARK)
    return (
        f":root{{{variables(LIGHT)}}}\n"
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f':root[data-theme="dark"]{{{dark}}}\n'
        f"@media print{{:root:root:root{{{variables(LIGHT)}}}}}\n"
        + chart_css()
        + asset("report.css")
    )
