"""A disk that fails while a file is read says nothing about the file: the error is raised."""

import errno
import subprocess
from typing import get_args

from input_files import as_input, jsonl, numbers, write, zst
from prelude import Path, os, pl, pytest, sys

from assets.raw.readers.decompress import _last_good_blocks, _read_members
from assets.raw.readers.input_file import Compression, InputFile
from assets.raw.readers.read_tables import read_parquet
from resources.settings.sources import SourceConfig

TESTS = Path(__file__).resolve().parents[1]
MEMORY = Path("/proc/self/mem")  # no page is mapped at 0: reading it is an EIO
STRACE = ("strace", "-f", "-qq", "-o", "/dev/null")
READ = """
import sys
from pathlib import Path
from assets.raw.readers.formats import find_borders
from assets.raw.readers.read_tables import read_parquet
from input_files import as_input
from resources.settings.sources import SourceConfig

file, source = as_input(Path(sys.argv[2])), SourceConfig(name="s", where="x")
functions = {
    "find_borders": lambda: find_borders(file, source, 1 << 20),
    "read_parquet": lambda: list(read_parquet(file, source)),
}
try:
    functions[sys.argv[1]]()
except OSError as error:
    sys.exit(error.errno)
"""


def is_traceable() -> bool:
    try:
        return subprocess.run((*STRACE, "true"), capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("compression", get_args(Compression))
def test_the_second_reading_of_a_damaged_member_may_fail(compression: Compression) -> None:
    packed = InputFile(str(MEMORY), "mem", "jsonl", compression, 0, "")
    with MEMORY.open("rb") as file, pytest.raises(OSError) as raised:
        list(_last_good_blocks(file, packed, (0, 0), 0))
    assert raised.value.errno == errno.EIO


def fail_from_now(path: Path) -> None:
    """Let every read of an open file fail: put MEMORY in its place."""
    links = Path("/proc/self/fd").iterdir()
    [number] = [int(link.name) for link in links if os.path.realpath(link) == str(path)]
    with MEMORY.open("rb") as memory:
        os.dup2(memory.fileno(), number)


def test_a_read_in_a_compressed_stream_may_fail(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl.zst", zst(jsonl(*numbers(50_000))))
    blocks = _read_members(file)
    next(blocks)
    fail_from_now(file.path)
    with pytest.raises(OSError, match="Input/output error"):
        list(blocks)


def test_a_row_group_may_fail(tmp_path: Path) -> None:
    pl.DataFrame({"text": numbers(4000)}).write_parquet(tmp_path / "a.parquet", row_group_size=2000)
    file = as_input(tmp_path / "a.parquet")
    records = read_parquet(file, SourceConfig(name="s", where="x"))
    next(records)
    fail_from_now(file.path)
    with pytest.raises(OSError, match="Input/output error"):
        list(records)


@pytest.mark.skipif(not is_traceable(), reason="strace cannot trace a process here")
@pytest.mark.parametrize("function", ["find_borders", "read_parquet"])
def test_the_footer_may_fail(tmp_path: Path, function: str) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": numbers(100)}).write_parquet(path)
    calls = ("-P", str(path), "-e", "inject=pread64:error=EIO:when=1")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])}
    command = (*STRACE, *calls, sys.executable, "-c", READ, function, str(path))
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == errno.EIO, done.stderr
