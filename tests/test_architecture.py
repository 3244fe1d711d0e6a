"""The shape of the code: imports point backwards, public names are pinned, start-up is light."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import karat

SOURCE = Path(karat.__file__).parent

# The path of the data; a room imports only what stands before it.
PATH = [
    "errors",
    "findings",
    "progress",
    "spelling",
    "languages",
    "storage",
    "core",
    "read",
    "align",
    "client",
    "embeddings",
    "texts",
    "spans",
    "measures",
    "statistics",
    "judges",
    "relate",
    "dialects",
    "engines",
    "results",
    "evaluation",
    "explanation",
    "labels",
    "tuning",
    "comparison",
    "report",
    "web",
    "pytest_plugin",
    "cli",
    "__main__",
]


def room(module: str) -> str:
    return module.split(".")[1]


def imports(path: Path) -> set[str]:
    """Return the rooms that a file imports, also inside functions, but not for types only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "karat":
            found |= {alias.name for alias in node.names if alias.name in PATH}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("karat."):
            found.add(room(node.module or ""))
        elif isinstance(node, ast.Import):
            found |= {room(alias.name) for alias in node.names if alias.name.startswith("karat.")}
    return found


FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_backwards(path: Path) -> None:
    here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    allowed = PATH[: PATH.index(here) + 1]
    assert imports(path) <= set(allowed)


def test_measures_know_neither_readers_nor_matchers() -> None:
    for path in (SOURCE / "measures").glob("*.py"):
        assert not imports(path) & {"read", "align", "relate", "judges"}, path.name


def test_the_rooms_of_judges_are_separate_calls() -> None:
    """What all know of entities is in the local room."""
    allowed: dict[str, set[str]] = {"local": set(), "llm": {"local"}, "cards": {"local"}}
    rooms = SOURCE / "judges"
    for name, known in allowed.items():
        for path in (rooms / name).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            found = set(re.findall(r"(?:from|import) karat\.judges\.(\w+)", text))
            assert found & allowed.keys() <= {name} | known, path.name


def test_the_public_names_are_pinned() -> None:
    assert karat.__all__ == [
        "Agreement",
        "Comparison",
        "Explanation",
        "Finding",
        "GateReport",
        "Gold",
        "Judge",
        "JudgeCard",
        "KaratError",
        "Measure",
        "PowerAnalysis",
        "Result",
        "Run",
        "agree",
        "anchor",
        "check",
        "compare",
        "curve",
        "drift",
        "evaluate",
        "explain",
        "gate",
        "judge",
        "judge_card",
        "known_measures",
        "load",
        "load_gold",
        "load_run",
        "parse",
        "power",
        "register",
        "register_aspect",
        "smallest_k",
    ]
    for name in karat.__all__:
        assert getattr(karat, name).__module__.startswith("karat.")
    with pytest.raises(AttributeError):
        karat.nothing  # noqa: B018


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["score", "--help"]])
def test_help_waits_for_no_heavy_library(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom karat.cli import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'polars', 'rich', 'pandas'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_no_file_is_too_long() -> None:
    long = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 500
    }
    assert not long
