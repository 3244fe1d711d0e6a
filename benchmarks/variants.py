"""The same run, written otherwise: other separators, compressed, in another order, as JSON."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.commands import Spent, findwell_command, findwell_numbers, spend
from benchmarks.data import ROOT, Files, ensure
from benchmarks.report import MB, Table, shown_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.sections import Facts

REMARK = """\
`findwell score` as a whole command, on one run of {files} and its judgements, which stay as they
are; the run is written in several ways that hold the same. All numbers must be equal, digit for
digit.
*Ratio* is the time divided by that of the plain file."""
PLAIN = "one space between fields"


def variants(files: Files, rounds: int, facts: Facts) -> Table:
    """Time findwell on every way to write the same run."""
    ensure(files)
    paths = {PLAIN: files.run} | {name: _file(files, name) for name in WRITERS}
    best: dict[str, Spent] = {}
    for _ in range(rounds):
        for name, path in paths.items():
            spent, printed = spend(findwell_command(path, files.gold))
            spent = Spent(spent.wall, spent.cpu, spent.peak, findwell_numbers(printed))
            best[name] = spent.best(best.get(name))
            print(f"{name}: {spent.wall:.3g} s, CPU {spent.cpu:.3g} s", file=sys.stderr)
    plain = best[PLAIN]
    facts.disagreements += [
        f"{name}, {files}: {measure} is {value!r}, with {PLAIN} {plain.numbers[measure]!r}"
        for name, spent in best.items()
        for measure, value in spent.numbers.items()
        if value != plain.numbers[measure]
    ]
    facts.variants = {name: spent.cpu / plain.cpu for name, spent in best.items()}
    rows = [
        (
            name,
            f"{paths[name].stat().st_size / MB:,.0f}",
            shown_seconds(spent.wall),
            shown_seconds(spent.cpu),
            f"{spent.wall / plain.wall:.2f}",
            f"{spent.cpu / plain.cpu:.2f}",
            f"{spent.peak / MB:,.0f}",
        )
        for name, spent in best.items()
    ]
    header = ("run", "run MB", "wall s", "CPU s", "ratio, wall", "ratio, CPU", "peak MB")
    title = "15. The same run, written otherwise"
    return Table(title, REMARK.format(files=files), header, rows)


def _file(files: Files, name: str) -> Path:
    """Write a variant unless it is there, in a process of its own."""
    suffix, _ = WRITERS[name]
    path = files.run.with_suffix(suffix)
    if not path.exists():
        print(f"writing {path.name}", file=sys.stderr)
        arguments = [str(files.folder), str(files.queries), str(files.depth), name]
        command = [sys.executable, "-m", "benchmarks.variants", *arguments]
        subprocess.run(command, cwd=ROOT, check=True)
    return path


def _lines(files: Files) -> Iterator[str]:
    with files.run.open() as lines:
        yield from lines


def _separated(by: str) -> Callable[[Files, Path], None]:
    def write(files: Files, path: Path) -> None:
        with path.open("w") as out:
            out.writelines(line.replace(" ", by) for line in _lines(files))

    return write


def _gzip(files: Files, path: Path) -> None:
    import gzip

    with gzip.open(path, "wt", compresslevel=6) as out:
        out.writelines(_lines(files))


def _zstd(files: Files, path: Path) -> None:
    from findwell.io.read.format import ZSTD_MODULE

    with importlib.import_module(ZSTD_MODULE).open(path, "wt") as out:
        out.writelines(_lines(files))


def _by_rank(files: Files, path: Path) -> None:
    """Write the first document of every query, then the second, …"""
    lines = list(_lines(files))
    with path.open("w") as out:
        for rank in range(files.depth):
            out.writelines(lines[rank :: files.depth])


def _queries(files: Files) -> Iterator[tuple[str, dict[str, float]]]:
    """Go through the queries with the scores of their documents."""
    docs: dict[str, float] = {}
    for line in _lines(files):
        query, _, doc, _, score, _ = line.split()
        docs[doc] = float(score)
        if len(docs) == files.depth:
            yield query, docs
            docs = {}


def _json_lines(files: Files, path: Path) -> None:
    import json

    with path.open("w") as out:
        for query, docs in _queries(files):
            listed = [{"doc": doc, "score": score} for doc, score in docs.items()]
            out.write(json.dumps({"query": query, "retrieved": listed}) + "\n")


def _json_lists(files: Files, path: Path) -> None:
    """Write the ids alone, in the order that their scores give, equal ones by id."""
    import json

    with path.open("w") as out:
        for query, docs in _queries(files):
            ids = sorted(docs, key=lambda doc: (docs[doc], doc), reverse=True)
            out.write(json.dumps({"query": query, "retrieved": ids}) + "\n")


def _json(files: Files, path: Path) -> None:
    import json

    with path.open("w") as out:
        out.write("{")
        for number, (query, docs) in enumerate(_queries(files)):
            out.write(f"{',' if number else ''}\n{json.dumps(query)}: {json.dumps(docs)}")
        out.write("\n}\n")


WRITERS: dict[str, tuple[str, Callable[[Files, Path], None]]] = {
    "tabs": (".tabs.trec", _separated("\t")),
    "two spaces": (".spaces.trec", _separated("  ")),
    "gzip": (".trec.gz", _gzip),
    "zstd": (".trec.zst", _zstd),
    "interleaved by rank": (".interleaved.trec", _by_rank),
    "JSON lines, ids": (".ids.jsonl", _json_lists),
    "JSON lines, scores": (".jsonl", _json_lines),
    "JSON": (".json", _json),
}


def main() -> None:
    """Write one variant; it appears under its name when it is whole."""
    folder, queries, depth, name = sys.argv[1:]
    files = Files(Path(folder), int(queries), int(depth))
    suffix, write = WRITERS[name]
    draft = files.run.with_suffix(".draft")
    write(files, draft)
    draft.replace(files.run.with_suffix(suffix))


if __name__ == "__main__":
    main()
