"""Compiled kernels are taken from disk unless any file of their package has changed."""

import ast
import subprocess

from prelude import Callable, Path, os, pytest, sys
from tables import cases

from resources.kernel_cache import digest_file, digest_of, digest_of_file, remove_damaged

ROOT = Path(__file__).parents[2]
PACKAGES = sorted((ROOT / "assets").glob("*/kernels"))
INIT = """
from resources.kernel_cache import keep_compiled
keep_compiled(__file__)
"""
CALLER = """
from numba import njit
from kernels.callee import add
@njit(cache=True)
def answer(number):
    return add(number)
"""
CALLEE = """
from numba import njit
@njit(cache=True)
def add(number):
    return number + {added}
"""
CALL = """
from kernels.below.caller import answer
result = answer(1)
print(result, sum(answer.stats.cache_hits.values()), sum(answer.stats.cache_misses.values()))
"""

INLINED = """
from numba import njit
from kernels.callee import add
add(1)
twice = njit(lambda number: 2 * add(number))
print(twice(1), sum(add.stats.cache_hits.values()))
"""

READY = """
import sys
from kernels.below.caller import answer
answer(1)
print("numba.cpython.randomimpl" in sys.modules)
"""

SAY = """
from resources.kernel_cache import fallback_line
print(fallback_line("kernels"))
"""
ALONE = """
import time
from pathlib import Path
from resources.kernel_cache import compiling_alone
import kernels
here = Path({here!r})
if {number} == 2:
    (here / "ready").touch()
with compiling_alone("kernels"):
    if {number} == 1:
        print(1, flush=True)
        while not (here / "ready").exists():
            time.sleep(0.01)
        time.sleep(0.3)
    with open(here / "order", "a") as order:
        order.write("{number}")
"""


def write_kernels(folder: Path, added: int) -> None:
    """A package with our `__init__`, and a kernel in a folder below that calls one of it."""
    (folder / "kernels/below").mkdir(parents=True, exist_ok=True)
    (folder / "kernels/__init__.py").write_text(INIT)
    (folder / "kernels/below/__init__.py").touch()
    (folder / "kernels/below/caller.py").write_text(CALLER)
    (folder / "kernels/callee.py").write_text(CALLEE.format(added=added))


def start(folder: Path, code: str = CALL, cache: Path | None = None) -> subprocess.Popen[str]:
    """Run code that imports the package in a fresh interpreter."""
    environment = {key: os.environ[key] for key in os.environ if not key.startswith("NUMBA_")}
    environment |= {"PYTHONPATH": f"{folder}:{ROOT}", "XDG_CACHE_HOME": str(folder / "user")}
    if cache:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    command = [sys.executable, "-B", "-c", code]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def call(folder: Path, cache: Path | None = None) -> list[int]:
    """Result, cache hits and compilations of one call in a fresh interpreter."""
    output, _ = start(folder, cache=cache).communicate()
    return [int(number) for number in output.split()]


def test_a_changed_callee_in_another_file_is_noticed(tmp_path: Path) -> None:
    found, digests = [], []
    for added in (10, 10, 20, 10):  # again, changed, and a version that comes back
        write_kernels(tmp_path, added)
        found.append(call(tmp_path))
        digests.append(digest_of([tmp_path / "kernels"]))

    assert found == [[11, 0, 1], [11, 1, 0], [21, 0, 1], [11, 1, 0]]
    assert not (tmp_path / "kernels/__pycache__").exists()  # all is in the user's cache
    (tmp_path / "kernels/below/caller.py").write_text(CALLER + "\n")
    assert len({*digests, digest_of([tmp_path / "kernels"])}) == 3  # folders below count


@cases(
    """
    code    | expected
    # Kernels from disk are inlined by those compiled later.
    INLINED | [["22", "0"], ["22", "1"]]
    # What only loads kernels is not made ready to compile.
    READY   | [["True"], ["False"]]
""",
    INLINED=INLINED,
    READY=READY,
)
def test_a_second_process_takes_kernels_from_disk(
    tmp_path: Path, code: str, expected: list[list[str]]
) -> None:
    write_kernels(tmp_path, added=10)

    assert [start(tmp_path, code).communicate()[0].split() for _ in range(2)] == expected


def test_processes_that_start_at_once_share_the_cache(tmp_path: Path) -> None:
    write_kernels(tmp_path, added=10)
    outputs = [process.communicate()[0] for process in [start(tmp_path) for _ in range(3)]]

    assert {output.split()[0] for output in outputs} == {"11"}
    assert call(tmp_path) == [11, 1, 0]


def test_checkouts_of_the_same_code_share_the_cache(tmp_path: Path) -> None:
    for checkout in ("one/code", "two/code"):
        write_kernels(tmp_path / checkout, added=10)
    calls = [call(tmp_path / name / "code", cache=tmp_path / "mine") for name in ("one", "two")]

    assert calls == [[11, 0, 1], [11, 1, 0]]
    assert [path.name[:5] for path in (tmp_path / "mine").iterdir()] == ["code-"]


@pytest.mark.parametrize("cache", [None, "file/below"])
def test_a_folder_that_cannot_be_made_is_passed_over(tmp_path: Path, cache: str | None) -> None:
    write_kernels(tmp_path, added=10)
    (tmp_path / "file").touch()
    (tmp_path / "user").touch()  # a file: no folder can be made in it
    own = tmp_path / cache if cache else None

    assert [call(tmp_path, own), call(tmp_path, own)] == [[11, 0, 1], [11, 1, 0]]
    assert len(list((tmp_path / "kernels/__pycache__").glob(f"{tmp_path.name}-*"))) == 1
    line, _ = start(tmp_path, SAY, own).communicate()
    preferred = own or tmp_path / "user/tokenmill/kernels"
    assert f"kernels/__pycache__, since {preferred} cannot be written to: set NUMBA" in line


def test_only_the_versions_that_were_used_last_are_kept(tmp_path: Path) -> None:
    write_kernels(tmp_path, added=10)
    cache = tmp_path / "user/tokenmill/kernels"
    call(tmp_path)
    [own] = cache.glob(f"{tmp_path.name}-*")
    os.utime(own, (1e9 - 20, 1e9 - 20))
    for age in range(10):
        for old in (cache / f"{tmp_path.name}-{age}", cache / f"other-{age}"):
            old.mkdir(parents=True)
            os.utime(old, (1e9 - age, 1e9 - age))

    assert call(tmp_path) == [11, 1, 0]
    assert own.stat().st_mtime > 1e9  # it has been used now

    names = {path.name for path in cache.glob(f"{tmp_path.name}-?")}
    assert names == {f"{tmp_path.name}-{age}" for age in range(7)}
    assert len(list(cache.glob("other-*"))) == 10


def test_who_compiles_waits_for_the_one_before(tmp_path: Path) -> None:
    write_kernels(tmp_path, added=10)
    first = start(tmp_path, ALONE.format(here=str(tmp_path), number=1))
    assert first.stdout and first.stdout.read(1) == "1"
    start(tmp_path, ALONE.format(here=str(tmp_path), number=2)).communicate()
    first.communicate()

    assert (tmp_path / "order").read_text() == "12"


def test_emptied_files_are_compiled_again_with_one_line(tmp_path: Path) -> None:
    write_kernels(tmp_path, added=10)
    call(tmp_path)
    [folder] = (tmp_path / "user/tokenmill/kernels").glob(f"{tmp_path.name}-*")
    emptied = [path for path in folder.iterdir() if not path.write_bytes(b"")]

    output, line = start(tmp_path, CALL).communicate()

    assert [len(emptied), *output.split()] == [8, "11", "0", "1"]
    told = f"Compiling kernels of {tmp_path.name} again: 4 files in {folder} do not match"
    assert line == f"{told} their digests.\n"
    assert call(tmp_path) == [11, 1, 0]


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A compiled file with its digest, and the mark that all is compiled."""
    path = tmp_path / "own/words.count-1.py311.1.nbc"
    path.parent.mkdir()
    path.write_bytes(bytes(range(256)) * 40)
    digest_file(path).write_text(digest_of_file(path))
    (path.parent / "all").touch()
    return path


def test_whole_files_are_kept_and_cut_ones_removed(compiled: Path) -> None:
    assert remove_damaged(compiled.parent) == 0
    assert {path.suffix for path in compiled.parent.iterdir()} == {".nbc", ".xxh3", ""}

    os.truncate(compiled, 4096)
    assert remove_damaged(compiled.parent) == 1
    assert not compiled.exists()


@pytest.mark.parametrize("place", range(0, 256 * 40, 512))
def test_a_file_with_a_flipped_bit_is_removed(compiled: Path, place: int) -> None:
    content = bytearray(compiled.read_bytes())
    content[place] ^= 1 << place // 512 % 8
    compiled.write_bytes(content)

    assert remove_damaged(compiled.parent) == 1
    assert [path.suffix for path in compiled.parent.iterdir()] == [".xxh3"]


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"\xff")])
def test_a_file_without_a_digest_is_removed(
    compiled: Path, damage: Callable[[Path], object]
) -> None:
    damage(digest_file(compiled))

    assert remove_damaged(compiled.parent) == 1
    assert not compiled.exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_kernels_inline_only_what_their_digest_covers(package: Path) -> None:
    own = f"assets.{package.parent.name}.kernels"
    tree = ast.parse((package / "__init__.py").read_text("utf-8"))
    imported = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    used = {f"{node.module}.kernels" for node in imported if node.names[0].name == "kernels"}
    plain = ("assets.text.buffers", "assets.text.table_rows", "resources.kernel_cache")
    for name in plain:  # there are no kernels to inline
        assert "\n@njit" not in (ROOT / f"{name.replace('.', '/')}.py").read_text("utf-8")
    allowed = (own, "assets.text.kernels", *used, *plain)
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                is_ours = node.module.split(".")[0] in ("assets", "resources", "pipeline_defs")
                is_covered = node.module.startswith(allowed) or path.name == "__init__.py"
                assert not is_ours or is_covered, path


def test_an_edit_compiles_its_own_stage_only(tmp_path: Path) -> None:
    for stage in ("one", "two"):
        write_kernels(tmp_path / stage, added=10)
        (tmp_path / stage / "kernels").rename(tmp_path / stage / f"kernels_{stage}")

    def folders(stage: str) -> set[str]:
        code = f"import kernels_{stage}"
        start(tmp_path / stage, code=code).communicate()
        cache = tmp_path / stage / "user/tokenmill/kernels"
        return {path.name for path in cache.glob(f"{stage}-*")}

    before = {stage: folders(stage) for stage in ("one", "two")}
    (tmp_path / "one/kernels_one/callee.py").write_text(CALLEE.format(added=20))

    assert len(folders("one") - before["one"]) == 1
    assert folders("two") == before["two"]
