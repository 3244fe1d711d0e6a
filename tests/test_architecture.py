"""The shape of the code: imports point backwards, public names are pinned, start-up is light."""

import ast
import functools
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import findwell
from findwell.core.namespaces import NAMESPACES, names_of

SOURCE = Path(findwell.__file__).parent

ROOMS = tomllib.loads((Path(__file__).parent / "rooms.toml").read_text(encoding="utf-8"))


# the help does not wait for them
HEAVY = {"jinja2", "numpy", "pandas", "polars", "pyarrow", "rich", "scipy"}


def room(module: str) -> str:
    """Return the room of a module; what stands in none, a surface such as `__main__`, is cli's."""
    return name if (name := module.split(".")[1]) in ROOMS else "cli"


def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Go through the statements of a file, those inside others too, without their expressions."""
    inside = [tree]
    while inside:
        yield (node := inside.pop())
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            within = getattr(node, part, ())
            inside.extend(within if isinstance(within, list) else ())


@functools.cache
def imported(text: str) -> frozenset[str]:
    """Return the modules that a file imports, also inside functions, but not for types only.

    In a file that imports modules by name (`importlib.import_module`, `__import__`), every text
    that begins like a module of findwell counts, so that no import can hide in a string.
    """
    tree = ast.parse(text)
    for node in statements(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in statements(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "findwell":
            top = NAMESPACES["findwell"]
            named = [alias.name for alias in node.names]
            found |= {top[name][0] if name in top else f"findwell.{name}" for name in named}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("findwell."):
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if is_module(name) else str(node.module) for name in inside}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("findwell.")}
    by_name = {"importlib.import_module", "import_module", "__import__"}
    if any(name in text for name in by_name) and by_name & {
        ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)
    }:
        groups = [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword)]
        found |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and node not in groups  # of entry points
            and isinstance(node.value, str)
            and re.match(r"findwell\.[\w.]*$", node.value)
        }
    return frozenset(found - {"findwell.__version__"})


def imports(text: str) -> set[str]:
    """Return the rooms that a file imports."""
    return {room(name) for name in imported(text)}


@pytest.mark.parametrize(
    "hidden",
    [
        "import importlib\nimportlib.import_module('findwell.show.page')",
        "from importlib import import_module\nimport_module(f'findwell.show.{name}')",
        "import importlib\nHOME = 'findwell.show.page'\nimportlib.import_module(HOME)",
        "__import__('findwell.show')",
        "from findwell import report",
        "def late():\n    import findwell.show.page",
    ],
)
def test_an_import_by_name_is_seen(hidden: str) -> None:
    assert imports(hidden) == {"show"}


def test_the_modules_of_a_registry_are_no_edge() -> None:
    assert not imports("import importlib\nimportlib.import_module(f'{__name__}.{module.name}')")
    assert imports("from findwell import evaluate") == {"evaluation"}
    assert not imports("if TYPE_CHECKING:\n    from findwell.show import page")


FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def here(path: Path) -> str:
    return room(".".join(("findwell", *path.relative_to(SOURCE).with_suffix("").parts)))


def is_allowed(own: str, name: str) -> bool:
    """Return whether a room may import a module: its own, or an export of a room above it."""
    exports = ROOMS[other := room(name)]["exports"]
    exported = [[] if each == "." else [each] for each in exports]
    return other == own or (other in ROOMS[own]["imports"] and name.split(".", 2)[2:] in exported)


def test_a_file_imports_what_other_rooms_export() -> None:
    assert not [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in FILES
        for name in imported(path.read_text(encoding="utf-8"))
        if not is_allowed(here(path), name)
    ]


def test_the_rooms_are_layers() -> None:
    order = list(ROOMS)
    for name, about in ROOMS.items():
        assert set(about["imports"]) <= set(order[: order.index(name)])


def test_the_table_of_rooms_has_nothing_too_much() -> None:
    found: dict[str, dict[str, set[str]]] = {
        name: {"imports": set(), "exports": set()} for name in ROOMS
    }
    for path in FILES:
        own = here(path)
        for name in imported(path.read_text(encoding="utf-8")):
            if (other := room(name)) != own:
                found[own]["imports"].add(other)
                found[other]["exports"].add(".".join(name.split(".")[2:]) or ".")
    assert {name: {key: set(about[key]) for key in about} for name, about in ROOMS.items()} == found


def section(heading: str) -> str:
    """Return a section of ARCHITECTURE.md."""
    page = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def first_column(text: str) -> list[str]:
    """Return what stands in backticks in the first cells of the rows of a table."""
    cells = re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_the_rooms_are_described_in_the_order_of_the_path() -> None:
    assert first_column(section("The rooms")) == list(ROOMS)


def test_the_seams_that_are_described_exist() -> None:
    named = first_column(section("The seams"))
    assert "engines.BatchEngine" in named
    for name in named:
        assert pkgutil.resolve_name(f"findwell.{name}") is not None


def test_a_score_passes_the_modules_that_are_described(tmp_path: Path) -> None:
    """They are entered in this order, though not at once after each other."""
    (tmp_path / "run").write_text("q1 Q0 d1 1 2.0 tag\nq1 Q0 d2 2 1.0 tag\n")
    (tmp_path / "qrels").write_text("q1 0 d2 1\nq2 0 d1 1\n")
    done = subprocess.run(
        [sys.executable, "-c", ENTERED, "score", "run", "--gold", "qrels", "-m", "nDCG@10"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCE.parent), "FINDWELL_NATIVE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    entered = done.stderr.splitlines()
    described = first_column(section("From the command to the table"))
    assert [name for name in entered if name in described] == described
    assert len(described) <= 20


# prints the modules whose functions are called, in order; what an import does is left out
ENTERED = """
import sys
from findwell.cli import main
importing, entered = 0, {}
def note(frame, event, _):
    global importing
    code = frame.f_code
    if code.co_name == "<module>":
        importing += {"call": 1, "return": -1}.get(event, 0)
    elif event == "call" and not importing and "/findwell/" in code.co_filename.replace("\\\\",
    "/"):
        entered.setdefault(code.co_filename.replace("\\\\", "/").rpartition("/findwell/")[2])
sys.setprofile(note)
try:
    main(sys.argv[1:])
except SystemExit:
    sys.setprofile(None)
sys.stderr.write("\\n".join(entered))
"""


def test_measures_know_neither_readers_nor_matchers() -> None:
    for path in (SOURCE / "measures").glob("*.py"):
        found = imports(path.read_text(encoding="utf-8"))
        assert not found & {"io", "relations", "judges"}, path.name


def test_the_rooms_of_judges_are_separate_calls() -> None:
    """What all know of entities is in the local room."""
    allowed: dict[str, set[str]] = {"local": set(), "llm": {"local"}, "cards": {"local"}}
    rooms = SOURCE / "judges"
    for name, known in allowed.items():
        for path in (rooms / name).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            found = set(re.findall(r"(?:from|import) findwell\.judges\.(\w+)", text))
            assert found & allowed.keys() <= {name} | known, path.name


PINNED = {
    "findwell": "Comparison FindwellError Gold Judge Measure Reading Result Run compare evaluate "
    "explain gate load report retrieve",
    "findwell.io": "check doctor load_corpus load_gold load_run",
    "findwell.judges": "JudgeCard JudgeCheck JudgeComparison LLMJudge LocalJudge Sample Teaching "
    "card check compare find_embedder find_judge judge teach",
    "findwell.labels": "Agreement Estimates LabelPool Labels agree anchor drift pool ppi questions",
    "findwell.monitor": "Monitor",
    "findwell.plugins": "Shape find_matcher known_dialects known_measures parse_measure "
    "register_aspect register_detector register_dialect register_engine register_format "
    "register_matcher register_measure register_shape register_signal register_source",
    "findwell.retrievers": "HttpRetriever Retriever",
    "findwell.spark": "SparkResult evaluate load",
    "findwell.statistics": "PowerAnalysis choose curve power smallest_k",
    "findwell.tuning": "ENGINES Engine NORMALISERS Pool Setting Tuned Tuning convex_combination "
    "find_engine fuse reciprocal_rank_fusion tune tune_rrf_k tune_weight",
    "findwell.types": "Explanation Finding GateReport GoldLike Policy Relation RunLike",
}


def test_the_public_names_are_pinned() -> None:
    assert {each: " ".join(names_of(each)) for each in NAMESPACES} == PINNED
    namespaces = {each.partition(".")[2] for each in NAMESPACES} - {""}
    assert {*findwell.__all__, *namespaces} <= set(dir(findwell))


@pytest.mark.parametrize("namespace", PINNED)
def test_a_namespace_says_the_same_to_python_and_to_type_checkers(namespace: str) -> None:
    module = importlib.import_module(namespace)
    names = PINNED[namespace].split()
    assert sorted(module.__all__) == names
    assert set(names) <= set(dir(module))
    for name in names:
        assert getattr(module, name) is not None
    if not NAMESPACES[namespace]:  # it imports them itself
        return
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    typed = {
        alias.asname or alias.name: (node.module, alias.name)
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != "findwell"
        for alias in node.names
    }
    assert typed == NAMESPACES[namespace]


@pytest.mark.parametrize(
    ("namespace", "name", "message"),
    [
        ("findwell", "pool", "findwell has no pool; use findwell.labels.pool"),
        ("findwell", "judge_card", "findwell has no judge_card; use findwell.judges.card"),
        ("findwell", "evalute", "findwell has no evalute; did you mean evaluate?"),
        ("findwell", "zzz", "findwell has no zzz"),
        ("findwell.statistics", "load", "findwell.statistics has no load; use findwell.load"),
        ("findwell.judges", "cards_", "findwell.judges has no cards_; did you mean card?"),
        ("findwell.labels", "pol", "findwell.labels has no pol; did you mean pool?"),
    ],
)
def test_a_name_that_is_elsewhere(namespace: str, name: str, message: str) -> None:
    with pytest.raises(AttributeError) as refused:
        getattr(importlib.import_module(namespace), name)
    assert str(refused.value).startswith(message)


def test_no_module_hides_a_public_name() -> None:
    """Importing `findwell.x` sets the attribute x of the package, whatever it was before."""
    for namespace, names in PINNED.items():
        folder = SOURCE.joinpath(*namespace.split(".")[1:])
        modules = {path.stem for path in folder.glob("*")} if folder.is_dir() else set()
        assert not modules & set(names.split()), namespace


def test_documents_import_public_names() -> None:
    """What users copy from the documents does not break when a file moves."""
    root = SOURCE.parent.parent
    deep = re.compile(r"^(?:>>> |\.\.\. )?\s*(?:from|import) (findwell(?:\.\w+){2,})", re.MULTILINE)
    found = {
        (path.name, name)
        for path in [root / "README.md", *(root / "docs").glob("*.md")]
        for name in deep.findall(path.read_text(encoding="utf-8"))
    }
    assert not found


def test_help_waits_for_no_heavy_library() -> None:
    commands = ["", "score", "measures", "compare", "power", "labels agree"]
    asked = [["--version"], *([*command.split(), "--help"] for command in commands)]
    code = (
        "import sys\nfrom findwell.cli import main\n"
        f"for arguments in {asked!r}:\n"
        "    try: main(arguments)\n"
        "    except SystemExit as stop: assert not stop.code, stop.code\n"
        f"    print(*sorted({HEAVY!r} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "\n" * len(asked)


def test_no_file_is_too_long() -> None:
    long = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 800
    }
    assert not long
