"""Builds the native kernel if there is a compiler; findwell works without it.

A wheel with the kernel serves Python 3.11 and all later versions on its platform (abi3), one
without it serves them everywhere. `FINDWELL_NATIVE=0` builds without it, `FINDWELL_NATIVE=1` fails
if it cannot be built, which is what the release workflow wants.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src/findwell/io/native/_kernel.c")


class KernelBuildHook(BuildHookInterface[Any]):
    """Compiles `findwell.io.native._kernel` before the package is put together."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the kernel, and name the wheel after the platform if that went well."""
        del version
        wanted = os.environ.get("FINDWELL_NATIVE", "")
        if self.target_name != "wheel" or wanted == "0":
            return
        try:
            built = compile_kernel(Path(self.root))
        except Exception as error:
            if wanted == "1":
                raise
            self.app.display_warning(f"findwell is built without its native kernel: {error}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = (
            f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        )
        build_data["artifacts"].append(f"/{built.as_posix()}")


def compile_kernel(root: Path) -> Path:
    """Compile the kernel, put it beside its source, and return its path from the root."""
    from setuptools import Distribution, Extension  # noqa: PLC0415
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415

    fast = ["/O2"] if sys.platform == "win32" else ["-O3", "-g0"]
    extension = Extension(
        "_kernel",
        [str(root / SOURCE)],
        include_dirs=[str(root / SOURCE.parent)],
        extra_compile_args=fast,
        py_limited_api=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        command = build_ext(Distribution({"name": "findwell", "ext_modules": [extension]}))
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        command.run()
        made = Path(command.get_outputs()[0])
        place = SOURCE.with_name(made.name)
        # replaced at once: a process that has loaded the earlier one keeps it
        draft = root / place.with_suffix(".new")
        shutil.copyfile(made, draft)
        draft.replace(root / place)
    return place


if __name__ == "__main__":
    print(compile_kernel(Path(__file__).parent))  # noqa: T201
