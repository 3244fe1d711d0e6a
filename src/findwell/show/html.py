"""HTML from templates, in one environment where every text of others is only text."""

from __future__ import annotations

import base64
import functools
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from findwell import __version__
from findwell.core.spelling import counted
from findwell.show import escape
from findwell.show.charts.svg import asset
from findwell.show.tables import decimals, interval, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment


def render(template: str, **context: object) -> str:
    """Return a template of the folder `templates`, filled in."""
    return _environment().get_template(template).render(context)


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - help is light

    environment = Environment(
        loader=PackageLoader("findwell.show"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        count="{:,}".format,
        exact=lambda value: "" if value is None else f"{value:.12g}",
        interval=lambda row: interval(row["low"], row["high"]),
        number=number,
        time="{:%Y-%m-%d %H:%M}".format,
        value=lambda row: number(row["value"], decimals(row["low"], row["high"])),
        queries=counted,
    )
    return environment


def _visible(value: Any) -> Any:  # noqa: ANN401
    """Write out control characters of every text but markup, before it is escaped."""
    plain = isinstance(value, str) and not hasattr(value, "__html__")
    return escape.visible(value) if plain else value


def document(
    template: str,
    title: str,
    *,
    sections: Mapping[str, str] | None = None,
    data: Mapping[str, Any] | None = None,
    live: Mapping[str, Any] | None = None,
    kind: PageKind | None = None,
    **context: object,
) -> str:
    """Return a whole page; `data` is what its script reads, `live` where a server answers it."""
    kind = kind or REPORT
    known = dict(data or {}) | ({} if live is None else {"live": live})
    return render(
        template,
        title=title,
        sections=sections or {},
        data=escape.script_json(known),
        live=live is not None,
        policy=content_policy(kind, live=live is not None),
        style=kind.style(),
        script=kind.script(),
        version=__version__,
        **context,
    )


def content_policy(*kinds: PageKind, live: bool) -> str:
    """Return a content security policy under which only the pages' styles and scripts count."""
    allowed = {
        "default-src": "'none'",
        "style-src": " ".join(_hash(kind.style()) for kind in kinds),
        "script-src": " ".join(_hash(kind.script()) for kind in kinds),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'self'" if live else "'none'",
    }
    if live:
        allowed["connect-src"] = "'self'"
    return "; ".join(f"{what} {whom}" for what, whom in allowed.items())


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@dataclass(frozen=True, slots=True)
class PageKind:
    """The assets of a page, in addition to those that all pages share."""

    styles: tuple[str, ...]
    scripts: tuple[str, ...]

    def style(self) -> str:
        """Return the style, light and dark."""
        return _colours() + "".join(map(asset, self.styles))

    def script(self) -> str:
        """Return the script."""
        return "".join(map(asset, self.scripts))


REPORT = PageKind(("chart.css", "report.css"), ("page.js", "tables.js", "query.js", "report.js"))
TUNING = PageKind(("chart.css", "report.css", "tuning.css"), ("page.js", "tables.js", "tuning.js"))
RESULTS = PageKind(
    ("chart.css", "report.css", "results.css"), ("page.js", "tables.js", "results.js")
)
MONITOR = PageKind(("chart.css", "report.css", "monitor.css"), ("page.js", "monitor.js"))
LABELLING = PageKind(("report.css", "label.css"), ("page.js", "passage.js", "label.js"))


@functools.cache
def _colours() -> str:
    light, dark = asset("light.css"), asset("dark.css")
    return (
        f":root {{ {light} }}\n"
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}\n'
        f':root[data-theme="dark"] {{ {dark} }}\n'
        f"@media print {{ :root:root:root {{ {light} }} }}\n"
    )
