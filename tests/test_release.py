"""What a release would hold: packages that work as users install them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# no compiler: neither the one that is named, nor what a package would look for
NO_COMPILER = {"CC": "false", "CXX": "false", "LDSHARED": "false"}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sources, and a wheel without the kernel."""
    folder = tmp_path_factory.mktemp("dist")
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("uv builds the packages: make .venv/uv")
    subprocess.run(
        [uv, "build", "--quiet", "--out-dir", folder, "--python", sys.executable, ROOT],
        check=True,
        env={**os.environ, "FINDWELL_NATIVE": "0"},
    )
    return folder


@pytest.mark.slow
def test_the_wheel_works_where_there_is_no_compiler(packages: Path) -> None:
    (wheel,) = packages.glob("*-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/NOTICE") for name in names)
    assert not any(name.startswith(("tests/", "docs/", "website/")) for name in names)
    install: list[str | Path] = [ROOT / ".github" / "installed.sh", wheel, sys.executable]
    done = subprocess.run(
        install, capture_output=True, text=True, check=False, env={**os.environ, **NO_COMPILER}
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "== done" in done.stdout


@pytest.mark.slow
def test_the_sources_are_whole(packages: Path, tmp_path: Path) -> None:
    (sources,) = packages.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    for name in (
        "Makefile",
        "LICENSE",
        "NOTICE",
        "CHANGELOG.md",
        "mkdocs.yml",
        "requirements.lock",
    ):
        assert (folder / name).exists(), name
    for name in ("tests", "docs", "examples", "website"):
        assert (folder / name).is_dir(), name
