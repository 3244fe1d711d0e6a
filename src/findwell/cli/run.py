"""`findwell run`: ask a retriever, and write what it found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import options
from findwell.cli.command import Command, option

if TYPE_CHECKING:
    from findwell.core.data import Run

PARTIAL_ENDING = ".part"  # the file next to the output that holds the answers so far


@click.command("run", cls=Command, short_help="Ask a retriever, and write a run.")
@click.argument("retriever", metavar="RETRIEVER")
@option(
    "--queries FILE",
    "Questions: a table or records with the columns query and question.",
    required=True,
)
@option("-k K", "Documents per question (default: all found).", low=1)
@option(
    "--concurrency N",
    "Questions asked at a time: in threads, or in tasks if the retriever is async.",
    low=1,
    default=1,
)
@option(
    "--timeout SECONDS",
    "Time after which a question has failed (default: none).",
    type=click.FloatRange(0, min_open=True),
)
@option("--retries N", "How often a question that failed is asked again.", low=0, default=0)
@option(
    "--warmup N", "How many questions are asked once before the measured ones.", low=0, default=0
)
@option(
    "--max-errors N",
    "Stop when more questions than this have failed (default: only if the first 10 all fail).",
    low=0,
)
@option("--id-from FIELD", "Field that holds the id of a document, such as metadata.chunk.")
@option("--name NAME", "Name of the run (default: that of the retriever).")
@option(
    "--template FILE",
    "JSON body that is sent to an address, with {{question}} and {{k}} in it.",
    type=click.Path(path_type=Path),
)
@option("--hits KEYS", "Where in the answer of an address the hits are, such as hits.hits.")
@option(
    "--header NAME=VALUE...",
    "Header for an address; a secret as NAME=env:VARIABLE or NAME=file:PATH; may be repeated.",
    name="headers",
)
@option("--fresh", "Ignore saved answers and ask everything again.")
@option("-o, --output FILE", "Write to this file instead of standard output.")
def command(
    *,
    retriever: str,
    queries: str,
    output: str | None,
    fresh: bool,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Ask a RETRIEVER every question, and write what it found as a run, with what that cost.

    \b
    findwell run app.search:retriever --queries questions.jsonl -k 20 -o run.jsonl
    findwell run app:search --queries gold.jsonl --concurrency 8 --timeout 5
    findwell run http://localhost:9200/docs/_search --template body.json \\
        --hits hits.hits --queries questions.jsonl -k 20 -o run.jsonl
    findwell score run.jsonl --gold gold.jsonl --require "p90<=300ms"

    RETRIEVER is module:attribute, of the working folder or of an installed package: a function of
    a question, sync or async, or an object with invoke, retrieve or run; or an http address.
    With arguments, as in 'app:make_retriever(size=500)', the retriever is what the function
    returns. A question that fails is recorded with the reason; it counts as nothing retrieved.
    With -o, answers are kept in FILE.part as they come: after an interruption the same command asks
    only for what is missing.
    """
    from findwell.retrievers.answers import as_json_lines  # noqa: PLC0415
    from findwell.retrievers.retrieve import ask_all, load_questions  # noqa: PLC0415
    from findwell.retrievers.retriever import Retriever  # noqa: PLC0415

    asked = load_questions(queries).select("query", "question")
    part = None if output in (None, "-") else Path(f"{output}{PARTIAL_ENDING}")
    if fresh and part is not None:
        part.unlink(missing_ok=True)
    how = {name: choices.pop(name) for name in ("template", "hits", "headers")}
    target = _target(retriever, how, choices)
    own_name = "" if "://" in retriever else retriever.rpartition(":")[2]
    choices["name"] = choices["name"] or own_name
    settings = Retriever(target, resume=part, **choices)
    with options.progress("asking") as progress:
        run = ask_all(settings, asked, progress)
    options.write("".join(as_json_lines(run)), output)
    if part is not None:
        part.unlink(missing_ok=True)
    options.print_findings(run.findings)
    _print_costs(run)
    return 0


def _target(text: str, how: dict[str, Any], choices: dict[str, Any]) -> object:
    """Return the retriever that is named: an object of Python, or an address."""
    from findwell.retrievers.http import HttpRetriever  # noqa: PLC0415
    from findwell.retrievers.retriever import import_retriever  # noqa: PLC0415

    if not text.startswith(("http://", "https://")):
        given = [f"--{name.removesuffix('s')}" for name, each in how.items() if each]
        if given:
            raise click.UsageError(f"{given[0]} is for a retriever that is an http address")
        return import_retriever(text)
    pairs = [each.partition("=") for each in how["headers"]]
    if not all(name.strip() and sign for name, sign, _ in pairs):
        raise click.UsageError("write a header as NAME=VALUE")
    return HttpRetriever(
        text,
        how["template"],
        hits=how["hits"],
        headers={name.strip(): value for name, _, value in pairs},
        timeout=choices["timeout"],
    )


def _print_costs(run: Run) -> None:
    """Print on standard error what asking took."""
    from findwell.evaluation.results.timing import timing  # noqa: PLC0415
    from findwell.show.tables import render_grids  # noqa: PLC0415
    from findwell.show.timing import timing_grid  # noqa: PLC0415

    found = None if run.about is None else timing(run.about)
    if found is not None:
        table = render_grids([timing_grid({run.name: found})], "table", width=options.error_width())
        click.echo(table, err=True)
