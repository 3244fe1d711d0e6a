"""`findwell fuse`: several runs become one, by the formula of an engine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import envelope, options
from findwell.cli.command import Command, Settings, option
from findwell.show.grid import Grid
from findwell.show.tables import reading_width, terminal, wrap

if TYPE_CHECKING:
    from findwell.loop.tuning import Engine

RUNS = ("trec", "jsonl")
LISTS = ("table", "json")
LEGEND = "w weight (1 or equal unless shown), r rank from 1, s score, n normalised score"


def _numbers(_: click.Context, __: click.Parameter, text: str | None) -> list[float] | None:
    """Read a list of numbers such as 0.7,0.3."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers such as 0.7,0.3") from None


engine_settings = option(
    "-E",
    "How the engine fuses: k, window, normaliser or fill. May be repeated; "
    "--help-engine lists all.",
    name="engine_settings",
    cls=Settings,
    table="fusion",
    topic="engine",
    sections=["engine"],
)


@click.command("fuse", cls=Command, short_help="Fuse runs by the formula of an engine.")
@click.argument("runs", nargs=-1, metavar="RUN RUN...")
@option("--engine NAME", "Search engine whose formula to use; --list shows all.")
@option(
    "--weights W,W,…",
    "Weights of the runs, in their order (default: those of the engine).",
    callback=_numbers,
)
@engine_settings
@option(
    "--top N",
    "Documents of each query to keep (default: all that the engine returns).",
    name="depth",
    low=1,
)
@options.disjoint
@option("--list", "Show the formulas, or that of --engine.", name="listed")
@options.read(*options.RUN_READING)
@option(
    "--format NAME",
    "Format of the output: trec or jsonl (default: by the name of FILE, else trec); with "
    "--list table or json (default: table).",
    name="how",
    type=click.Choice([*RUNS, *LISTS]),
)
@options.output_file()
def command(
    *,
    runs: tuple[str, ...],
    engine: str | None,
    listed: bool,
    how: str | None,
    output: str | None,
    engine_settings: dict[str, Any],
    weights: list[float] | None,
    depth: int | None,
    disjoint: bool,
    **read: Any,  # noqa: ANN401
) -> int:
    """Fuse RUN files into one, as an engine would: with its formula and its own defaults.

    \b
    findwell fuse bm25.trec dense.trec --engine elasticsearch-rrf -o fused.trec
    findwell fuse bm25.trec dense.trec --engine weaviate-relative --weights .3,.7
    findwell fuse a.trec b.trec c.trec --engine opensearch-rrf -E k=20
    findwell fuse --list
    findwell fuse --list --engine qdrant-rrf

    The weights are used as given; `findwell tune` chooses them. Where an engine distinguishes
    keyword from vector search, the keyword run comes first. `--list` prints the formulas.
    """
    if listed:
        if runs:
            raise click.UsageError("--list shows formulas and takes no RUN")
        from findwell.loop.tuning import ENGINES, find_engine  # noqa: PLC0415

        listed_as = _one_of(how, LISTS)
        engines = [find_engine(engine)] if engine is not None else [*ENGINES.values()]
        if listed_as == "json":
            envelope.answer({"engines": [_facts(each) for each in engines]}, output)
        else:
            text = _listing() if engine is None else _explanation(engines[0])
            options.write(text, output)
        return 0
    if engine is None:
        raise click.UsageError("--engine is missing: `findwell fuse --list` shows the names")
    form = _one_of(how, RUNS[::-1] if (output or "").endswith(".jsonl") else RUNS)
    from findwell.core.errors import naming_files  # noqa: PLC0415
    from findwell.io.read import load_run  # noqa: PLC0415
    from findwell.io.read.trec import as_trec  # noqa: PLC0415
    from findwell.loop.tuning import find_engine, fuse  # noqa: PLC0415
    from findwell.retrievers.answers import as_json_lines  # noqa: PLC0415

    chosen = find_engine(engine)

    files, _ = options.paths(runs)
    format_ = read.pop("run_format", None)
    loaded = [load_run(file, format=format_, texts=True, **read).collect() for file in files]
    if "," in engine_settings.get("normaliser", ""):
        engine_settings["normaliser"] = engine_settings["normaliser"].split(",")
    named = [
        (f"run {at} ({run.name})", f"run {run.name}", run.name)
        for at, run in enumerate(loaded, start=1)
    ]
    places = {name: file for names, file in zip(named, runs, strict=True) for name in names}
    with naming_files(places):
        fused = fuse(
            loaded, chosen, weights=weights, depth=depth, disjoint=disjoint, **engine_settings
        )
    options.write(as_trec(fused) if form == "trec" else "".join(as_json_lines(fused)), output)
    options.print_findings(fused.findings)
    return 0


def _one_of(how: str | None, formats: tuple[str, ...]) -> str:
    """Return the format, the first unless another is asked for."""
    if how is not None and how not in formats:
        kind = "the formulas are" if formats == LISTS else "a run is"
        raise click.UsageError(f"{kind} written as {' or '.join(formats)}, not as {how}")
    return how or formats[0]


def _listing() -> str:
    """Say what the engines compute."""
    from findwell.loop.tuning import ENGINES  # noqa: PLC0415

    columns = {
        "engine": lambda engine: engine.name,
        "formula": lambda engine: engine.formula,
        "defaults": _short_defaults,
    }
    title = "engines · `findwell fuse --list --engine NAME` says all about one"
    table = terminal(Grid.of(title, columns, ENGINES.values(), left=3), **options.screen(None))
    return f"{table}{wrap(f' {LEGEND}', options.width(None))}\n"


def _short_defaults(engine: Engine) -> str:
    """Return the settings that the engine has by itself, as far as a narrow table has room."""
    setting = engine.setting(len(engine.roles) or 2)
    weights = setting.weights if len(set(setting.weights)) > 1 else ()
    short = replace(setting, weights=weights, normaliser=())
    return str(short).replace("0.", ".") or "–"


def _facts(engine: Engine) -> dict[str, Any]:
    """Return what is known about an engine."""
    setting = engine.setting(len(engine.roles) or 2)
    return {
        "name": engine.name,
        "formula": engine.formula,
        "knobs": list(engine.knobs),
        "defaults": setting.as_dict(),
        "weights": engine.weights.about if engine.weights else None,
        "normalisers": list(engine.normalisers),
        "runs": list(engine.roles),
        "needs_scores": engine.needs_scores,
        "precision": engine.precision,
        "notes": list(engine.notes),
        "not_reproduced": engine.exact,
        "source": engine.source,
        "snippet": engine.snippet(setting, engine.roles or ("bm25", "dense")),
    }


def _explanation(engine: Engine) -> str:
    """Say all about an engine."""
    facts = _facts(engine)
    lines, setting = [f"{engine.name}: {engine.formula}"], engine.setting(len(engine.roles) or 2)
    if engine.roles:
        lines.append(f"Runs, in this order: {', '.join(engine.roles)}.")
    lines.append(f"Can be set: {', '.join(engine.knobs)}. Defaults: {str(setting) or 'none'}.")
    if "normaliser" in engine.knobs:
        lines.append(f"Normaliser: {', '.join(engine.normalisers)}.")
    if facts["weights"]:
        lines.append(f"Weights: {facts['weights']}.")
    lines += [f"{note[0].upper()}{note[1:]}." for note in engine.notes]
    if engine.exact:
        lines.append(f"Not reproduced: {engine.exact}.")
    lines.append(f"Read in: {engine.source}.")
    body = wrap("\n".join(lines), reading_width(options.width(None)), hang=2)
    return f"{body}\n\n{facts['snippet']}"
