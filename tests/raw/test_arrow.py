"""Arrow IPC files and streams."""

import gzip
import io
import struct
import subprocess
from datetime import datetime
from typing import Literal

import pyarrow as pa
import pyarrow.parquet
from input_files import COMPRESS, chunks, numbers, read, texts, write
from prelude import Callable, Path, assert_frame_equal, given, os, pl, pytest, settings, st, sys

from assets.raw.readers.decompress import BlockStream, BrokenStream
from assets.raw.readers.read_arrow import needs_footer, next_message

WRITERS: dict[str, Callable[..., pa.ipc.RecordBatchStreamWriter]] = {
    "file": pa.ipc.new_file,
    "stream": pa.ipc.new_stream,
}


def arrow(table: pa.Table, kind: str = "file", codec: str | None = None, rows: int = 10) -> bytes:
    sink, options = io.BytesIO(), pa.ipc.IpcWriteOptions(compression=codec)
    with WRITERS[kind](sink, table.schema, options=options) as writer:
        for batch in table.to_batches(rows):
            writer.write_batch(batch)
    return sink.getvalue()


def table(count: int = 40, width: int = 300) -> pa.Table:
    return pa.table({"id": list(range(count)), "text": numbers(count, width=width)})


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
@pytest.mark.parametrize("suffix", ["arrow", "feather", "arrow.gz"])
def test_all_forms_of_a_table_have_its_rows(
    tmp_path: Path, kind: str, codec: str | None, suffix: str
) -> None:
    pack = COMPRESS.get(suffix.rpartition(".")[2], bytes)
    rows = table()

    chunk = read(write(tmp_path, f"a.{suffix}", pack(arrow(rows, kind, codec))))

    assert texts(chunk) == rows["text"].to_pylist()
    assert chunk.documents["meta"][3] == '{"id":3}'
    assert chunk.documents["origin"].struct.field("row").to_list() == list(range(40))


def test_documents_of_arrow_are_those_of_the_same_parquet(tmp_path: Path) -> None:
    values = {
        "text": ["a", "b"],
        "n": [1.5, None],
        "at": [datetime(2020, 1, 2), None],
        "kind": pa.array(["x", "y"]).dictionary_encode(),
        "tags": [["p"], []],
        "large": pa.array(["q", "r"], pa.large_string()),
        "view": pa.array(["s", "a string view of some length"], pa.string_view()),
    }
    rows = pa.table(values)
    pa.parquet.write_table(rows, tmp_path / "a.parquet")
    parquet = read(write(tmp_path, "a.parquet", (tmp_path / "a.parquet").read_bytes()))

    for kind in ("file", "stream"):
        chunk = read(write(tmp_path, "a.arrow", arrow(rows, kind)))
        assert chunk.documents["meta"].to_list() == parquet.documents["meta"].to_list()
    assert chunk.documents["doc_id"][0] == "d5d7185c2e5bd8f850594600ec672cf9"


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("suffix", ["arrow", "arrow.gz"])
def test_slices_of_arrow_have_the_documents_of_the_whole(
    tmp_path: Path, kind: str, suffix: str
) -> None:
    pack = COMPRESS.get(suffix.rpartition(".")[2], bytes)
    data = arrow(table(200), kind, "lz4")
    packed = b"".join(pack(data[i : i + 2000]) for i in range(0, len(data), 2000))
    file = write(tmp_path, f"a.{suffix}", packed)

    whole, sliced = read(file, 1 << 30), chunks(file, 1000)

    assert len(sliced) > 8
    assert [row for each in sliced for row in each.documents.rows()] == whole.documents.rows()
    assert len(whole.documents) == 200


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_files_of_polars_are_read_by_their_footer(
    tmp_path: Path, compression: Literal["uncompressed", "lz4", "zstd"]
) -> None:
    values = numbers(200, width=300)
    frames = [pl.DataFrame({"text": values[i : i + 20]}) for i in range(0, 200, 20)]
    pl.concat(frames, rechunk=False).write_ipc(
        tmp_path / "a.arrow", compression=compression, record_batch_size=20
    )
    file = write(tmp_path, "a.arrow", (tmp_path / "a.arrow").read_bytes())

    whole, sliced = read(file, 1 << 30), chunks(file, 1000)

    assert texts(whole) == values and not len(whole.quarantine)
    assert len(sliced) > 3
    assert [row for each in sliced for row in each.documents.rows()] == whole.documents.rows()

    cut = read(write(tmp_path, "b.arrow", file.path.read_bytes()[:-100]))
    assert (len(cut.documents), len(cut.quarantine)) == (0, 1)


def test_a_file_with_dictionaries_is_read_in_one_piece(tmp_path: Path) -> None:
    rows = table().append_column("kind", pa.array(["x", "y"] * 20).dictionary_encode())
    file = write(tmp_path, "a.arrow", arrow(rows))

    assert [len(each.documents) for each in chunks(file, 1 << 20)] == [40]


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_cut_file_gives_the_batches_before(tmp_path: Path, kind: str) -> None:
    data = arrow(table(), kind)

    chunk = read(write(tmp_path, "a.arrow", data[: len(data) // 2]))

    assert texts(chunk) == table()["text"].to_pylist()[: len(chunk.documents)]
    assert len(chunk.documents) in (10, 20)
    assert chunk.quarantine["error"][0] == "Arrow stream ends within a message (truncated)"
    assert chunk.quarantine["position"][0] == f"row {len(chunk.documents)}"


def test_a_stream_without_its_end_mark_is_flagged(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "a.arrow", arrow(table(), "stream")[:-8]))

    assert len(chunk.documents) == 40
    assert chunk.quarantine["error"][0].endswith("without its end mark (truncated)")


def test_a_row_that_is_not_utf_8_goes_to_quarantine_alone(tmp_path: Path) -> None:
    data = arrow(pa.table({"text": ["one", "t~o", "three"]})).replace(b"t~o", b"t\xffo")

    chunk = read(write(tmp_path, "a.arrow", data))

    assert texts(chunk) == ["one", "three"]
    assert chunk.quarantine["position"][0] == "row 1"
    assert chunk.quarantine["error"][0].startswith("not valid UTF-8: ")


def test_a_row_that_leads_out_of_its_buffer_goes_to_quarantine(tmp_path: Path) -> None:
    data = arrow(pa.table({"text": ["one", "two", "three"]}))
    ends = struct.pack("<4i", 0, 3, 6, 11)
    assert ends in data
    data = data.replace(ends, struct.pack("<4i", 0, 3, 1 << 30, 11))

    chunk = read(write(tmp_path, "a.arrow", data))

    assert texts(chunk) == ["one"]
    assert chunk.quarantine["position"].to_list() == ["row 1", "row 2"]
    assert chunk.quarantine["error"][0].startswith("Arrow row is broken: ")


def test_a_table_without_the_column_of_the_text_says_which_it_has(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "a.arrow", arrow(pa.table({"body": ["a"]}))))

    assert chunk.rows_in == 1
    assert chunk.quarantine["error"][0].startswith("no column `text`; columns: body")


def test_a_compressed_buffer_that_claims_all_memory_is_a_bomb(tmp_path: Path) -> None:
    data = bytearray(arrow(table(4, 500), "stream", "zstd"))
    place = data.index(b"\x28\xb5\x2f\xfd") - 8  # the size before the frame
    data[place : place + 8] = struct.pack("<q", 1 << 40)

    file = write(tmp_path, "a.arrow", bytes(data))
    stream = BlockStream(iter([bytes(data)]))
    next_message(stream, file)
    with pytest.raises(BrokenStream, match=r"decompression bomb: .* claim to become 1,099,511"):
        next_message(stream, file)


def test_a_bomb_ends_its_file(tmp_path: Path) -> None:
    rows = pa.table({"text": ["\0" * (1 << 20)] * 300})

    chunk = read(write(tmp_path, "a.arrow", arrow(rows, codec="zstd", rows=300)))

    assert len(chunk.documents) == 0
    assert "decompression bomb" in chunk.quarantine["error"][0]


@pytest.mark.parametrize("form", ["stream", "file", "polars"])
def test_a_batch_that_is_too_large_is_refused_with_a_remedy(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.raw.readers.read_arrow.MOST_BODY_BYTES", 10_000)
    if form == "polars":
        pl.DataFrame({"text": numbers(200, width=300)}).write_ipc(tmp_path / "in.arrow")
        data = (tmp_path / "in.arrow").read_bytes()
    else:
        data = arrow(table(200), form, rows=200)

    chunk = read(write(tmp_path, "a.arrow", data))

    assert (len(chunk.documents), len(chunk.quarantine)) == (0, 1)
    assert "has a record batch of 6" in chunk.quarantine["error"][0]
    assert "record_batch_size" in chunk.quarantine["next_step"][0]


def forms(rows: pa.Table, codec: Literal["lz4", "zstd"] | None) -> list[bytes]:
    """Return a table as one batch: a file, a stream, and as Polars writes it."""
    sink = io.BytesIO()
    pl.DataFrame(pl.from_arrow(rows)).write_ipc(sink, compression=codec or "uncompressed")
    return [
        *(arrow(rows, kind, codec, max(rows.num_rows, 1)) for kind in WRITERS),
        sink.getvalue(),
    ]


def test_a_large_batch_of_a_local_file_is_mapped_whatever_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.raw.readers.read_arrow.MAPPED_BYTES", 5_000)
    monkeypatch.setattr("assets.raw.readers.read_arrow.MOST_BODY_BYTES", 10_000)
    rows = table(3000)

    for data in forms(rows, None):
        parts = chunks(write(tmp_path, "a.arrow", data), 200_000)
        assert [text for each in parts for text in texts(each)] == rows["text"].to_pylist()
        assert len(parts) == 6
    for data in forms(rows, "zstd"):  # it would be unpacked in memory
        packed = read(write(tmp_path, "a.arrow", data))
        assert "has a record batch of " in packed.quarantine["error"][0]
    held = read(write(tmp_path, "a.arrow.gz", gzip.compress(forms(rows, None)[0])))
    assert "has a record batch of " in held.quarantine["error"][0]


TEXTS = st.lists(st.none() | st.text(max_size=30), max_size=20)


@settings(max_examples=60)
@given(TEXTS, st.sampled_from([None, "lz4"]), st.integers(0, 5000), st.integers(0, 8))
def test_a_batch_that_is_mapped_has_the_records_of_one_that_is_held(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[str | None],
    codec: Literal["lz4"] | None,
    place: int,
    bit: int,
) -> None:
    folder = tmp_path_factory.mktemp("mapped")
    text = pa.array(values, pa.string())
    rows = pa.table({"n": range(len(values)), "text": text, "nested": [[each] for each in values]})
    for data in map(bytearray, forms(rows, codec)):
        data[place % len(data)] ^= (1 << bit) & 0xFF  # 1 << 8: whole
        for each in (data, data[: place % len(data)]):
            file = write(folder, "a.arrow", bytes(each))
            held = read(file)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("assets.raw.readers.read_arrow.MAPPED_BYTES", 0)
                mapped = read(file)
            assert_frame_equal(mapped.documents, held.documents)
            assert_frame_equal(mapped.quarantine, held.quarantine)


def test_a_batch_of_several_blocks_is_held_whole(tmp_path: Path) -> None:
    rows = table(10_000)

    for data in forms(rows, None):
        file = write(tmp_path, "a.arrow", data)
        packed = write(tmp_path, "b.arrow.gz", gzip.compress(data, 1))
        assert texts(read(file, 1 << 30)) == rows["text"].to_pylist()
        if not needs_footer(file):
            assert texts(read(packed, 1 << 30)) == rows["text"].to_pylist()


MEASURE = """
import sys
from pathlib import Path
from assets.raw.readers.read_arrow import read_arrow
from input_files import as_input
from resources.settings.sources import SourceConfig

file, pages = as_input(Path(sys.argv[1])), []
for number, _ in enumerate(read_arrow(file, SourceConfig(name="s", where="x"))):
    if number in (3_000, 29_999):
        pages.append(int(Path("/proc/self/statm").read_text().split()[1]))
print(pages[1] - pages[0])
"""


def test_the_pages_of_a_mapped_batch_are_let_go(tmp_path: Path) -> None:
    rows = pa.table({"text": ["0123456789" * 1_000] * 30_000})
    (tmp_path / "a.arrow").write_bytes(arrow(rows, rows=30_000))

    grown = subprocess.run(
        [sys.executable, "-c", MEASURE, tmp_path / "a.arrow"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert int(grown) * 4096 < 60_000_000, "of a batch of 300 MB"


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_batch_without_rows_ends_nothing(tmp_path: Path, kind: str) -> None:
    sink, full = io.BytesIO(), table(4).to_batches()[0]
    with WRITERS[kind](sink, full.schema) as writer:
        for batch in (full, full.slice(0, 0), full.slice(1, 2)):
            writer.write_batch(batch)

    chunk = read(write(tmp_path, "a.arrow", sink.getvalue()))

    values = full["text"].to_pylist()
    assert texts(chunk) == [*values, *values[1:3]] and not len(chunk.quarantine)


def test_feather_1_is_refused_with_a_remedy(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "a.feather", b"FEA1" + bytes(100) + b"FEA1"))

    assert chunk.quarantine["next_step"].to_list() == ["Write the table again as Feather 2."]


@settings(max_examples=60)
@given(st.binary(max_size=500), st.integers(0, 20_000), st.integers(0, 7), st.booleans())
def test_no_damage_of_arrow_ends_the_reading(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, place: int, bit: int, packs: bool
) -> None:
    rows = table(20, 50).append_column("kind", pa.array(["x", "y"] * 10).dictionary_encode())
    data = bytearray(arrow(rows, "file", "zstd" if packs else None))
    data[place % len(data)] ^= 1 << bit
    folder = tmp_path_factory.mktemp("fuzz")
    mixed = data[: place % len(data)] + junk + data[place % len(data) :]
    for name, each in (("a", data), ("b", data[: place % len(data)]), ("c", junk), ("d", mixed)):
        read(write(folder, f"{name}.arrow", bytes(each)), 100)
