"""A remote file as a stream: the same bytes, a bounded read-ahead, and requests that stop."""

import io
import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from prelude import Path, given, pytest, st

from assets.raw.places import fetch_ranges
from assets.raw.places.fetch_ranges import reachable
from assets.raw.readers.input_file import STREAM_END, Fetch, InputFile
from assets.raw.readers.open_input import (
    AHEAD,
    FIRST_BYTES,
    HELD_BYTES,
    IN_FLIGHT,
    WINDOW_BYTES,
    RangeFile,
    open_arrow,
    open_input,
    with_content,
)
from corpus_loader.places.errors import CorpusError

SIZE = 40 << 20
DATA = random.Random(7).randbytes(SIZE)
MOST_AHEAD = (AHEAD + 1) * WINDOW_BYTES


class Server:
    """Sends ranges, and counts them; while `is_open` is not set, requests wait."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data, self.asked = data, list[tuple[int, int]]()
        self.is_open = threading.Event()
        self.is_open.set()

    def fetch(self, start: int, stop: int) -> bytes:
        self.asked.append((start, stop))
        self.is_open.wait()
        return self.data[start:stop]

    @property
    def num_bytes(self) -> int:
        """Count the bytes that were asked for."""
        return sum(stop - start for start, stop in self.asked)


def opened(server: Server, stop: int = STREAM_END) -> io.BufferedReader:
    return io.BufferedReader(RangeFile(server.fetch, len(server.data), stop), 1 << 16)


Steps = Sequence[tuple[int, int, int]]
STEPS = st.lists(
    st.tuples(st.sampled_from([0, 1, 2]), st.integers(-3_000_000, SIZE), st.integers(0, 9_000_000)),
    max_size=12,
)


@given(STEPS, st.one_of(st.just(STREAM_END), st.integers(0, SIZE)))
def test_it_reads_as_a_file_in_memory_does(steps: Steps, stop: int) -> None:
    ours, plain = opened(Server(), stop), io.BytesIO(DATA)
    for whence, offset, size in steps:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: plain.tell(), io.SEEK_END: SIZE}[whence]
        place = min(max(base + offset, 0), SIZE + 10)
        assert ours.seek(place) == plain.seek(place) == ours.tell()
        assert ours.read(size) == plain.read(size)


def test_a_reader_that_waits_stops_the_requests() -> None:
    """Bytes that were asked for and not consumed: never more than the windows ahead."""
    server = Server()
    with opened(server) as stream:
        done = 0
        for _ in range(SIZE >> 20):
            done += len(stream.read(1 << 20))
            assert server.num_bytes - done <= MOST_AHEAD
    assert server.num_bytes == SIZE


def test_a_slice_is_fetched_up_to_its_stop() -> None:
    server = Server()
    with opened(server, 21 << 20) as stream:
        stream.seek(10 << 20)
        assert stream.read(11 << 20) == DATA[10 << 20 : 21 << 20]
        assert server.num_bytes <= (11 << 20) + (1 << 17)
        assert stream.read(1000) == DATA[21 << 20 :][:1000]
    assert server.num_bytes <= (11 << 20) + (1 << 18)


def test_a_header_costs_one_small_request() -> None:
    server = Server()
    with opened(server) as stream:
        stream.read(10)
    assert server.asked == [(0, FIRST_BYTES)]


def test_windows_are_under_way_while_one_is_read() -> None:
    server = Server()
    with opened(server) as stream:
        stream.read(1)
        server.is_open.clear()
        stream.read(100_000)
        assert [start for start, _ in server.asked] == [0, 1 << 20, 3 << 20]
        server.is_open.set()


def test_an_error_is_raised_by_who_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(start: int, stop: int) -> bytes:
        raise CorpusError("refused")

    monkeypatch.setattr(fetch_ranges, "fetch_at_once", lambda _: fail)
    file = reachable(InputFile("s3://bucket/a", "s3://bucket/a", "jsonl", None, 100, ""))
    with pytest.raises(CorpusError, match="refused"):
        open_input(file).read()
    with pytest.raises(CorpusError, match="refused"):
        open_arrow(file).read()
    with pytest.raises(CorpusError, match="refused"):
        list(with_content([file]))


def remote(number: int, size: int) -> InputFile:
    name = f"s3://bucket/{number}"
    return reachable(InputFile(name, name, "jsonl", None, size, ""))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    found = Server()

    def fetch_at_once(file: InputFile) -> Fetch:
        return found.fetch

    monkeypatch.setattr(fetch_ranges, "fetch_at_once", fetch_at_once)
    yield found
    found.is_open.set()


def test_small_files_are_fetched_ahead_and_large_ones_not(server: Server) -> None:
    sizes = [1000, 0, 5 << 20, *[3000] * 40]
    files = [remote(number, size) for number, size in enumerate(sizes)]
    found = with_content(files)
    assert next(found).content == DATA[:1000]
    assert len(server.asked) <= IN_FLIGHT + 1
    rest = list(found)
    assert [file.name for file in rest] == [file.name for file in files[1:]]
    assert (rest[0].content, rest[1].content, rest[2].content) == (None, None, DATA[:3000])
    assert open_input(rest[0]).read() == b""


def test_contents_ahead_are_bounded(server: Server) -> None:
    found = with_content(remote(number, 4 << 20) for number in range(40))
    for done, file in enumerate(found, 1):
        assert file.content is not None
        assert server.num_bytes - (done << 22) <= HELD_BYTES


def test_a_local_file_is_an_ordinary_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    file = InputFile(str(tmp_path / "a"), "a", "txt", None, 3, "")
    with open_input(file) as stream:
        assert isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)
    with open_arrow(file) as native:
        assert isinstance(native, pa.OSFile)
    assert [file] == list(with_content([file]))


@pytest.mark.usefixtures("dagster_home")
def test_the_pace_of_a_host_is_kept_by_all_threads_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch_ranges.time, "monotonic", lambda: 1000.0)
    with ThreadPoolExecutor(8) as pool:
        waits = pool.map(lambda _: fetch_ranges.seconds_to_turn("http://a:1/x?sig=1", 4), range(20))
        assert sorted(waits) == [number / 4 for number in range(20)]
    assert fetch_ranges.seconds_to_turn("http://b:1/x", 4) == 0
    monkeypatch.setattr(fetch_ranges.time, "monotonic", lambda: 1010.0)
    assert fetch_ranges.seconds_to_turn("http://a:1/y", 4) == 0
    monkeypatch.setattr(fetch_ranges.time, "monotonic", lambda: -9000.0)  # restarted
    assert fetch_ranges.seconds_to_turn("http://a:1/y", 4) == 0
