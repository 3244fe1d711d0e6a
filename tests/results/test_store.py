"""Results on disk: what is replaced and what never, killed writers, readers beside, damage."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.cli.report import _require_input
from findwell.core.errors import InputError, SaveError
from findwell.evaluation.comparison.systems import gather
from findwell.evaluation.results import store
from findwell.io.storage import files, folders
from findwell.io.storage.folders import FILES, is_folder, replacing
from findwell.show.page import provenance
from findwell.show.panel import lay_side_by_side
from tests import saving
from tests.hostile import Jury

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Findwell, Save

OLD, NEW = 10, 20  # queries of 40 that find their document


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save two results, and return the folder with both."""
    folder = tmp_path_factory.mktemp("saved")
    saving.sample(OLD).save(folder / "old")
    saving.sample(NEW).save(folder / "new")
    return folder


@pytest.fixture
def old(saved: Path, tmp_path: Path) -> Path:
    """Return a saved result that a test may change."""
    return Path(shutil.copytree(saved / "old", tmp_path / "here" / "r"))


@pytest.fixture(params=["exchange", "aside"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Exchange folders, or do as systems must that cannot."""
    if request.param == "aside":
        monkeypatch.setattr(folders, "_exchange", saving.no_exchange)
    return str(request.param)


def found(folder: Path) -> int:
    """Load a result, and return how many queries find their document: no mix has a number."""
    result = findwell.load(folder)
    numbers = {result[name] for name in ("recall@1", "RR")}
    assert len(numbers) == 1
    return round(40 * (numbers.pop() or 0))


def names(folder: Path) -> set[str]:
    """Return the names of what is in a folder, hidden or not."""
    return {path.name for path in folder.iterdir()}


def tree(folder: Path) -> dict[str, bytes | str]:
    """Return everything below a folder."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


def _manifest_of_another(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"name": "npm", "layout": 2, "versions": {}}')


def _linked_file(folder: Path) -> None:
    (folder / "summary.json").rename(folder.parent / "mine.json")
    (folder / "summary.json").symlink_to(folder.parent / "mine.json")


FOREIGN: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file more": (lambda folder: (folder / "report.html").write_text("mine"), "report.html"),
    "a hidden file": (lambda folder: (folder / ".env").write_text("mine"), ".env"),
    "a folder": (lambda folder: (folder / "src").mkdir(), "src"),
    "a folder by our name": (lambda folder: (folder / "verdicts.parquet").mkdir(), "verdicts"),
    "a link by our name": (_linked_file, "summary.json"),
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), "no manifest.json"),
    "another's manifest": (_manifest_of_another, "no manifest.json that findwell wrote"),
    "a broken manifest": (lambda folder: (folder / "manifest.json").write_text("["), "manifest"),
}


class TestForeign:
    """Nothing but a result of findwell is replaced."""

    @pytest.mark.parametrize("name", FOREIGN)
    def test_it_is_left_alone(self, name: str, old: Path) -> None:
        change, said = FOREIGN[name]
        change(old)
        before = tree(old.parent)
        with pytest.raises(SaveError, match="not a findwell result") as refused:
            saving.sample(NEW).save(old)
        assert said in refused.value.what
        assert "name a new folder" in refused.value.fix
        assert tree(old.parent) == before

    def test_any_manifest_is_not_enough(self, cli: Findwell, save: Save) -> None:
        project = save("p/manifest.json", "{}").parent
        save("p/src/a", "x")
        record = save("two.jsonl", '{"query": "q", "retrieved": ["a"], "gold": ["a"]}\n')
        for command in (
            ["score", record, "--save", project],
            ["score", record, "--baseline", project, "--update-baseline"],
            ["demo", "--save", project],
        ):
            done = cli(*command)
            assert (done.code, done.out) == (2, "")
            assert "it holds src" in done.err
        assert tree(project) == {"manifest.json": b"{}", "src": "folder", "src/a": b"x"}

    def test_the_folder_one_is_in(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SaveError, match="the folder you are in"):
            saving.sample(NEW).save(".")

    def test_write_protected(self, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
        with pytest.raises(SaveError, match="write-protected"):
            saving.sample(NEW).save(old)
        assert found(old) == OLD

    @pytest.mark.usefixtures("way")
    def test_what_comes_while_we_write(self, old: Path) -> None:
        with pytest.raises(SaveError, match="it holds src"), replacing(old):
            (old / "src").mkdir()
        assert (old / "src").is_dir()
        assert names(old.parent) == {"r"}
        (old / "src").rmdir()
        assert found(old) == OLD

    def test_a_result_of_an_older_findwell_is_ours(self, old: Path) -> None:
        (old / "manifest.json").write_text('{"layout": 2, "versions": {"findwell": "0.1.0"}}')
        saving.sample(NEW).save(old)
        assert found(old) == NEW


@pytest.mark.usefixtures("way")
class TestReplacing:
    """How a new result takes the place of an old one."""

    @pytest.mark.parametrize("there", ["nothing", "an empty folder", "a result"])
    def test_over(self, there: str, old: Path) -> None:
        if there != "a result":
            shutil.rmtree(old)
        if there == "an empty folder":
            old.mkdir()
        saving.sample(NEW).save(old)
        assert found(old) == NEW
        assert names(old.parent) == {"r"}

    def test_a_link_stays_and_its_result_is_replaced(self, old: Path, tmp_path: Path) -> None:
        (tmp_path / "latest").symlink_to(old)
        saving.sample(NEW).save(tmp_path / "latest")
        assert (tmp_path / "latest").is_symlink()
        assert found(old) == NEW

    def test_permissions_stay(self, old: Path) -> None:
        old.chmod(0o700)
        saving.sample(NEW).save(old)
        assert stat.S_IMODE(old.stat().st_mode) == 0o700

    def test_writers_side_by_side(self, old: Path, saved: Path) -> None:
        with contextlib.ExitStack() as writers:
            for name in ("new", "old", "new"):
                draft = writers.enter_context(replacing(old))
                shutil.copytree(saved / name, draft, dirs_exist_ok=True)
            assert len(names(old.parent)) == 4  # nobody cleared away those who live
        assert found(old) == NEW  # of the one that ended last
        assert names(old.parent) == {"r"}

    @pytest.mark.parametrize("gone", [{"manifest.json"}, FILES])
    def test_others_clear_away_what_was_replaced(
        self, gone: set[str], old: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        exchange = folders._exchange

        def and_clear_away(draft: Path, target: Path) -> None:
            exchange(draft, target)
            for name in gone & names(draft):
                (draft / name).unlink()

        monkeypatch.setattr(folders, "_exchange", and_clear_away)
        saving.sample(NEW).save(old)
        assert found(old) == NEW
        assert names(old.parent) == {"r"}

    def test_a_failure_leaves_the_old_one(self, old: Path) -> None:
        with pytest.raises(ZeroDivisionError), replacing(old) as draft:
            (draft / "summary.json").write_text(f"{1 / 0}")
        assert found(old) == OLD
        assert names(old.parent) == {"r"}


class TestKilled:
    """Writers that are killed leave the old result or the new one, and no litter for long."""

    @pytest.mark.parametrize("there", ["nothing", "a result"])
    def test_at_every_step(self, there: str, way: str, saved: Path, tmp_path: Path) -> None:
        shutil.copytree(saved / "new", tmp_path / "new")
        if there == "a result":
            shutil.copytree(saved / "old", tmp_path / "old")
        with run("steps", tmp_path, way):
            pass
        states = sorted(tmp_path.glob("step*"))
        missing = [state for state in states if not (state / "r").exists()]
        assert bool(missing) == (there == "nothing" or way == "aside")
        whole = [state for state in states if there == "a result" or state not in missing]
        outcomes = [found(state / "r") for state in whole]
        assert set(outcomes) == ({OLD, NEW} if there == "a result" else {NEW})
        assert outcomes[-1] == NEW
        for state in states:
            with replacing(state / "r") as draft:
                shutil.copytree(saved / "new", draft, dirs_exist_ok=True)
            assert names(state) == {"r"}

    def test_what_stepped_aside_is_found_again(self, old: Path, cli: Findwell, save: Save) -> None:
        record = save("one.jsonl", '{"query": "q0", "retrieved": ["b"], "gold": ["a"]}\n')
        hidden, path = folders._name(old, folders.OLD_ENDING), str(old)
        worse = ["--baseline", path, "--update-baseline", "--require", "recall@1>=baseline"]
        for use, expected in (
            (lambda: len(gather([path])), 1),
            (lambda: findwell.labels.agree(path, path).kind, "systems"),
            (lambda: _require_input(path), None),
            (lambda: cli("score", record, *worse, "--decide", "value").code, 1),
        ):
            old.rename(hidden)
            assert use() == expected
            assert names(old.parent) == {"r"}

    def test_of_several_that_stepped_aside_the_last_one_comes_back(self, old: Path) -> None:
        long_ago = Path(shutil.copytree(old, folders._name(old, folders.OLD_ENDING)))
        os.utime(long_ago / "manifest.json", (1, 1))
        old.rename(folders._name(old, folders.OLD_ENDING))
        assert is_folder(old)
        assert long_ago.is_dir()

    @pytest.mark.parametrize("locks", [True, False])
    def test_what_is_cleared_away(
        self, locks: bool, old: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import fcntl

        def no_locks(*_: object) -> None:
            raise OSError(errno.ENOLCK, "no locks")

        if not locks:
            monkeypatch.setattr(fcntl, "flock", no_locks)
        young, long_dead, foreign, others = (
            folders._name(old, folders.NEW_ENDING) for _ in range(4)
        )
        others = others.with_name(".findwell-notes")
        for folder in (young, long_dead, foreign, others):
            folder.mkdir()
            (folder / "summary.json").touch()
        (foreign / "mine.txt").touch()
        os.utime(long_dead, (1, 1))
        os.utime(foreign, (1, 1))
        saving.sample(NEW).save(old)
        stay = {old.name, foreign.name, others.name} | (set() if locks else {young.name})
        assert names(old.parent) == stay
        assert names(foreign) == {"mine.txt", "summary.json"}


class TestReading:
    """What is read is what was saved, all of it by one writer."""

    @pytest.mark.usefixtures("way")
    @pytest.mark.parametrize("times", [1, 3])
    def test_replaced_while_it_is_opened(
        self, times: int, old: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left = iter(range(times))
        checked = store._checked

        def slow(folder: Path, content: bytes) -> dict[str, Any]:
            for number in left:
                saving.sample(NEW + number).save(folder)
                break
            return checked(folder, content)

        monkeypatch.setattr(store, "_checked", slow)
        assert found(old) == NEW + times - 1

    def test_replaced_while_it_is_read(self, old: Path) -> None:
        with store.opened(old) as (manifest, files):
            saving.sample(NEW).save(old)
            assert all(
                store._hash(name, file) == manifest["files"][name] for name, file in files.items()
            )

    @pytest.mark.parametrize("name", ["manifest.json", "summary.json", "relation.parquet"])
    def test_a_missing_file_is_named(self, name: str, old: Path) -> None:
        (old / name).unlink()
        with pytest.raises(InputError, match=f"not a complete findwell result: there is no {name}"):
            findwell.load(old)

    def test_ends_of_lines_may_change(self, old: Path) -> None:
        for name in ("manifest.json", "summary.json"):
            text = (old / name).read_bytes()
            (old / name).write_bytes(text.replace(b"\n", b"\r\n"))
        assert found(old) == OLD

    def test_a_changed_manifest_is_damage(self, old: Path) -> None:
        path = old / "manifest.json"
        path.write_text(path.read_text().replace('"recall@1"', '"recall@2"'))
        with pytest.raises(InputError, match="damaged") as damage:
            findwell.load(old)
        assert damage.value.where == str(path)

    def test_every_damaged_bit_is_noticed(self, tmp_path: Path) -> None:
        rows = [
            {"query": f"q{n}", "latency_ms": n, "retrieved": [{"doc": "a", "text": f"text {n}"}]}
            for n in range(9)
        ]
        gold = [{"query": f"q{n}", "question": f"{n}?", "gold": ["ab"[n % 2]]} for n in range(9)]
        measures = ["recall", "P/relevance"]
        result = findwell.evaluate(
            rows, gold, measures, judge=Jury(), reading=findwell.Reading(keep=3), level=None
        )
        folder = result.save(tmp_path / "r")
        assert {path.name for path in folder.iterdir()} == FILES
        chance = random.Random(12)
        for path in sorted(folder.iterdir()):
            content = path.read_bytes()
            for bit in chance.sample(range(8 * len(content)), 40):
                damaged = bytearray(content)
                damaged[bit // 8] ^= 1 << bit % 8
                path.write_bytes(damaged)
                with pytest.raises(InputError) as damage:
                    findwell.load(folder)
                assert path.name in f"{damage.value.where} {damage.value.what}" or (
                    "layout" in damage.value.what
                )
            path.write_bytes(content)
        assert findwell.load(folder).summary.equals(result.summary)


class TestOrigin:
    """What a saved result says about what made it, stays true."""

    def test_hashes_of_inputs_are_those_of_the_files_that_were_read(self, save: Save) -> None:
        gold = save("gold.json", '{"q": ["a"]}')
        folder = gold.parent / "r"
        first = findwell.load(findwell.evaluate({"q": ["a"]}, gold, "RR").save(folder))
        gold.write_text('{"q": ["b"]}')
        again = findwell.load(first.score("P@1").save(folder))
        assert again.provenance.inputs == first.provenance.inputs
        assert again.provenance.inputs[1].as_dict() == first.provenance.inputs[1].as_dict()

    def test_an_input_that_nobody_hashed_stays_unknown(self, save: Save) -> None:
        gold = save("gold.json", '{"q": ["a"]}')
        result = findwell.evaluate({"q": ["a"]}, gold, "RR")
        gold.unlink()
        loaded = findwell.load(result.save(gold.parent / "r"))
        gold.write_text("another")
        assert loaded.provenance.inputs[1].as_dict()["sha256"] is None

    def test_a_report_tells_about_the_result_it_read(self, old: Path) -> None:
        panel = lay_side_by_side([old])
        made = provenance(panel.systems[0])
        assert findwell.load(old).provenance.saved["created"] in dict(made).values()
        (old / "manifest.json").write_text('{"created": "later", "versions": {}, "inputs": []}')
        assert provenance(panel.systems[0]) == made

    def test_names_that_are_no_unicode(self, tmp_path: Path) -> None:
        gold = tmp_path / os.fsdecode(b"g\xff.json")
        gold.write_text('{"q": ["a"]}')
        folder = findwell.evaluate({"q": ["a"]}, gold, "RR").save(tmp_path / "r")
        assert findwell.load(folder).provenance.inputs[1].path == str(gold)


class TestFiles:
    """Single files: whole or not at all, and no more than was asked for."""

    def test_a_link_stays_and_so_do_permissions(self, save: Save) -> None:
        file = save("file", "old")
        file.chmod(0o600)
        link = file.with_name("link")
        link.symlink_to(file)
        files.write_text(link, "new \udcff")
        assert link.is_symlink()
        assert file.read_text() == "new \\udcff"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert names(file.parent) == {"file", "link"}

    def test_new_files_are_as_open_as_the_user_wants(self, tmp_path: Path) -> None:
        before = os.umask(0o077)
        try:
            files.write_text(tmp_path / "file", "new")
            saving.sample(NEW).save(tmp_path / "r")
        finally:
            os.umask(before)
        assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in tmp_path.rglob("*")} == {0}

    def test_write_protected(self, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
        file = save("file", "old")
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(SaveError, match="Permission denied"):
            files.write_text(file, "new")
        assert tree(file.parent) == {"file": b"old"}

    def test_streams_stay_streams(self, tmp_path: Path) -> None:
        code = "from findwell.io.storage.files import write_text; write_text('/dev/stdout', 'told')"
        with (tmp_path / "out").open("wb") as out:
            subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
            assert os.fstat(out.fileno()).st_size == 4  # this file, not one in its place
        assert Path("/dev/stdout").is_symlink()

    def test_the_demo_keeps_files_of_others(self, cli: Findwell, save: Save) -> None:
        mine = save("questions.jsonl", "mine")
        done = cli("demo", "--files", mine.parent)
        assert done.code == 2
        assert "questions.jsonl: a file of this name exists" in done.err
        assert tree(mine.parent) == {"questions.jsonl": b"mine"}

    def test_a_report_nobody_named_keeps_files_of_others(
        self, cli: Findwell, old: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(old.parent)
        for _ in range(2):
            assert cli("report", old).code == 0
        Path("report.html").write_text("mine")
        done = cli("report", old)
        assert done.code == 2
        assert "report.html: a file of this name exists, and findwell did not write it" in done.err
        assert Path("report.html").read_text() == "mine"
        assert cli("report", old, "-o", "report.html").code == 0


def run(what: str, folder: Path, way: str) -> subprocess.Popen[str]:
    """Start one of the programs that write results."""
    command = [sys.executable, "-m", saving.__name__, what, str(folder), way]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=here)


@contextlib.contextmanager
def writer(folder: Path, way: str) -> Iterator[None]:
    """Have a writer at work until it is killed."""
    with run("forever", folder, way) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield
            assert process.poll() is None  # it did not fail before
        finally:
            process.kill()


@pytest.mark.slow
def test_kill_minus_9_at_any_time(way: str, tmp_path: Path) -> None:
    chance = random.Random(9)
    folder = tmp_path / "here" / "r"
    saving.sample(OLD).save(folder)
    for _ in range(25):
        with writer(folder, way):
            time.sleep(0.02 + 0.05 * chance.random())
        assert found(folder) in (OLD, NEW)
        assert len(names(folder.parent)) <= 3  # what the last one left, no more
    saving.sample(OLD).save(folder)
    assert names(folder.parent) == {"r"}


@pytest.mark.slow
def test_a_reader_beside_two_writers(way: str, tmp_path: Path) -> None:
    folder = tmp_path / "here" / "r"
    saving.sample(OLD).save(folder)
    seen = []
    with writer(folder, way), writer(folder, way):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            seen.append(found(folder))
    assert set(seen) == {OLD, NEW}
    assert len(seen) > 200
