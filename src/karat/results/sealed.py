"""The manifest of a result knows the hash of every file, and its own: damage does not stay hidden.

Readers get the files of one result, even while writers replace it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.errors import InputError
from karat.storage.folders import FILES, MANIFEST, SUMMARY, is_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

LAYOUT = 4  # raised when the files change so that other versions cannot read them
TRIES, PAUSE = 20, 0.001  # how often a folder may change while its files are opened; seconds


def seal(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest of a folder, with the hashes of all that is in it."""
    files = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            files[path.name] = _hash(path.name, file)
    told = manifest | {"files": files}
    write_json(folder / MANIFEST, told | {"sha256": _own_hash(json.loads(json.dumps(told)))})


def write_json(path: Path, value: object) -> None:
    """Write JSON that people can read; letters that UTF-8 cannot write are escaped."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, BufferedReader]]]:
    """Open a result: the manifest, and the other files, all as they were saved together."""
    with contextlib.ExitStack() as held:
        manifest, files = _open(folder, held)
        for name, file in files.items():
            if _hash(name, file) != manifest["files"][name]:
                raise _damaged(folder / name)
            file.seek(0)
        yield manifest, files


def _open(
    folder: Path, held: contextlib.ExitStack
) -> tuple[dict[str, Any], dict[str, BufferedReader]]:
    """Open all files between two looks at the same manifest: no two saved results share one."""
    path = folder / MANIFEST
    reason = ""
    for _ in range(TRIES):
        try:
            content = path.read_bytes()
            manifest = _checked(folder, content)
            names = sorted(FILES & manifest["files"].keys())
            files = {name: held.enter_context((folder / name).open("rb")) for name in names}
            if path.read_bytes() == content:
                return manifest, files
            reason = "it is replaced all the time"
        except FileNotFoundError as error:
            reason = f"there is no {Path(error.filename).name}"
        except OSError as error:
            raise _incomplete(folder, str(error.strerror)) from None
        held.close()
        is_folder(folder)
        time.sleep(PAUSE)
    raise _incomplete(folder, reason)


def _checked(folder: Path, content: bytes) -> dict[str, Any]:
    try:
        told = json.loads(content)
        layout = told.get("layout")
    except (ValueError, AttributeError, RecursionError) as error:
        raise _incomplete(folder, f"{MANIFEST}: {error}") from None
    if layout != LAYOUT:
        version = told.get("versions", {}).get("karat", "of another version")
        raise InputError(
            f"the result has layout {layout}, this karat reads {LAYOUT}",
            where=str(folder),
            fix=f"use karat {version}, or save the result again",
        )
    if told.pop("sha256", None) != _own_hash(told):
        raise _damaged(folder / MANIFEST)
    return dict(told)


def _hash(name: str, file: BufferedReader) -> str:
    if name == SUMMARY:  # a text to git, which may check it out with other ends of lines
        return hashlib.sha256(file.read().replace(b"\r\n", b"\n")).hexdigest()
    return hashlib.file_digest(file, "sha256").hexdigest()


def _own_hash(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path) -> InputError:
    return InputError(
        "the file is damaged: it is not what was saved",
        where=str(path),
        fix="save the result again, or take the folder from a copy",
    )


def _incomplete(folder: Path, reason: str) -> InputError:
    return InputError(
        f"this is not a complete karat result: {reason}",
        where=str(folder),
        fix="name a folder written by result.save() or `karat score --save`",
    )
