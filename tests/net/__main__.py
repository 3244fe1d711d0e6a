"""Compare today's answers with the recorded ones, or record them: see the package."""

from __future__ import annotations

import argparse
import datetime as dt
import difflib
import json
import sys
import tempfile
from pathlib import Path

from tests.net import commands, values

RECORDED = Path(__file__).parent / "recorded"
SHOWN_LINES = 60


def today() -> dict[str, str]:
    """Return today's answers as the texts of files."""
    files = {
        f"values/{dialect}.tsv": values.spelled(rows) for dialect, rows in values.recorded().items()
    }
    with tempfile.TemporaryDirectory() as root, commands.folder(Path(root)):
        for name, arguments in commands.COMMANDS.items():
            found = commands.answer(arguments)
            text = json.dumps(found, indent=1, ensure_ascii=False)
            files[f"commands/{name}.json"] = text.replace(root, "FOLDER") + "\n"
    return files


def differences(files: dict[str, str]) -> list[str]:
    """Return what differs from the record, as lines of a unified diff."""
    known = {str(path.relative_to(RECORDED)) for path in RECORDED.glob("*/*")}
    lines: list[str] = []
    for name in sorted(known | files.keys()):
        before = (RECORDED / name).read_text() if name in known else ""
        lines += difflib.unified_diff(
            before.splitlines(), files.get(name, "").splitlines(), name, name, lineterm="", n=0
        )
    return lines


def main() -> int:
    """Compare or record."""
    parser = argparse.ArgumentParser(prog="python -m tests.net", description=__doc__)
    parser.add_argument("--accept", metavar="REASON", help="record today's answers, and why")
    given = parser.parse_args()
    files = today()
    changed = differences(files)
    if given.accept is None:
        print("\n".join(changed[:SHOWN_LINES]))
        if len(changed) > SHOWN_LINES:
            print(f"… and {len(changed) - SHOWN_LINES} more lines")
        print(f"{len(changed)} changed lines in {len(files)} files")
        return 1 if changed else 0
    for old in RECORDED.glob("*/*"):
        old.unlink()
    for name, text in files.items():
        (RECORDED / name).parent.mkdir(parents=True, exist_ok=True)
        (RECORDED / name).write_text(text)
    date = dt.datetime.now(tz=dt.UTC).date()
    with (RECORDED / "CHANGES.md").open("a") as log:
        log.write(f"- {date}: {given.accept} ({len(changed)} lines)\n")
    print(f"recorded {len(files)} files, {len(changed)} changed lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
