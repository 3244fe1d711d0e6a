"""The reference program trec_eval: a ready one, or one that is built from its sources.

`TREC_EVAL` names a program, `TREC_EVAL_SRC` the folder with trec_eval's own Makefile. A copy of
that folder is built, with -O2, as the Makefile by itself does not optimise; the sources are left
alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PROGRAM, SOURCES = "TREC_EVAL", "TREC_EVAL_SRC"


def program() -> str | None:
    """Return the path of the program, None if there is none."""
    named = os.environ.get(PROGRAM)
    if named:
        found = shutil.which(named)
        if not found:
            raise SystemExit(f"{PROGRAM}={named} is no program that can be run")
        return found
    return shutil.which("trec_eval")


def provide(folder: Path) -> None:
    """Build the program if sources are named and no program is; name it for all that follows."""
    sources = os.environ.get(SOURCES)
    if sources and not os.environ.get(PROGRAM):
        os.environ[PROGRAM] = str(build(Path(sources), folder))


def build(sources: Path, folder: Path) -> Path:
    """Build a copy of the sources, and return the program, which is put into the folder."""
    if not (sources / "Makefile").is_file():
        raise SystemExit(f"{SOURCES}={sources} holds no Makefile: name the folder of trec_eval's")
    target = folder / "trec_eval"
    with tempfile.TemporaryDirectory(prefix="trec_eval-") as made:
        copy = Path(made) / "sources"
        shutil.copytree(sources, copy)
        (copy / "trec_eval").unlink(missing_ok=True)  # built before, perhaps otherwise
        compiler = os.environ.get("CC", "cc")
        done = subprocess.run(
            ["make", f"CC={compiler} -O2", "trec_eval"],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not (copy / "trec_eval").is_file():
            raise SystemExit(f"trec_eval could not be built from {sources}:\n{done.stderr}")
        shutil.copy2(copy / "trec_eval", target)
    return target
