"""Every format's files, read without the code that wrote them."""

import csv
import gzip
import io
import struct
import tarfile
from itertools import pairwise

from format_folders import SPAN, about_of, seeded_rows, shard_of, write_shards
from prelude import Any, Callable, Path, example, given, json, np, pl, pytest, settings, st
from tables import cases

from assets.sharded.formats import FORMATS, FormatError, arrow, base
from assets.sharded.formats.datatrove import for_people
from assets.sharded.formats.flat_rows import by_length, flat_rows, headed
from assets.sharded.formats.mds import head
from assets.sharded.formats.parquet import without_nulls
from assets.sharded.kernels.place_rows import place_rows
from resources.settings.shards import FORMAT_NAMES

Rows = list[list[int]]


def bytes_of(path: Path, dtype: str) -> Rows:
    return np.frombuffer(path.read_bytes(), dtype).tolist()


def read_megatron(folder: Path, dtype: str) -> Rows:
    rows: Rows = []
    for idx in sorted(folder.glob("*.idx")):
        data = idx.read_bytes()
        magic, version, code, num_rows, num_ends = struct.unpack_from("<9sQBQQ", data)
        assert (magic, version, num_ends) == (b"MMIDIDX\0\0", 1, num_rows + 1)
        assert {8: "uint16", 4: "uint32"}[code] == dtype
        lengths = struct.unpack_from(f"<{num_rows}i", data, 34)
        pointers = struct.unpack_from(f"<{num_rows}q", data, 34 + 4 * num_rows)
        documents = struct.unpack_from(f"<{num_ends}q", data, 34 + 12 * num_rows)
        assert documents == tuple(range(num_ends))
        assert len(data) == 34 + 12 * num_rows + 8 * num_ends
        content = idx.with_suffix(".bin").read_bytes()
        for length, pointer in zip(lengths, pointers, strict=True):
            rows.append(np.frombuffer(content, dtype, length, pointer).tolist())
    return rows


def read_offsets(data: bytes) -> tuple[list[int], int]:
    (num,) = struct.unpack_from("<I", data)
    offsets = list(struct.unpack_from(f"<{num + 1}I", data, 4))
    assert offsets[-1] == len(data)
    return offsets, 4 * (num + 2)


def read_mds(folder: Path, dtype: str) -> Rows:
    rows: Rows = []
    for shard in json.loads((folder / "index.json").read_bytes())["shards"]:
        data = (folder / shard["raw_data"]["basename"]).read_bytes()
        offsets, config_at = read_offsets(data)
        config = json.loads(data[config_at : offsets[0]])
        assert config == {key: shard[key] for key in shard if key in config}
        assert (len(data), len(offsets) - 1) == (shard["raw_data"]["bytes"], shard["samples"])
        assert shard["column_encodings"][0].split(":")[1] == dtype
        for start, stop in pairwise(offsets):
            if shard["column_sizes"] == [None]:
                (size,) = struct.unpack_from("<I", data, start)
                assert size == stop - start - 4
                width = 1 << (data[start + 4] & 3)
                assert data[start + 4] >> 2 == 1
                length = int.from_bytes(data[start + 5 : start + 5 + width], "little")
                start += 5 + width
                assert length * np.dtype(dtype).itemsize == stop - start
            rows.append(np.frombuffer(data[start:stop], dtype).tolist())
    return rows


def read_litdata(folder: Path, dtype: str) -> Rows:
    rows: Rows = []
    index = json.loads((folder / "index.json").read_bytes())
    code = "5" if dtype == "uint16" else "6"
    assert index["config"]["data_format"] == [f"no_header_numpy:{code}"]
    head_bytes = {"TokensLoader": 0, "PyTreeLoader": 4}[index["config"]["item_loader"]]
    for chunk in index["chunks"]:
        data = (folder / chunk["filename"]).read_bytes()
        offsets, first = read_offsets(data)
        assert (offsets[0], len(offsets) - 1) == (first, chunk["chunk_size"])
        for start, stop in pairwise(offsets):
            if head_bytes:
                assert struct.unpack_from("<I", data, start) == (stop - start - 4,)
            rows.append(np.frombuffer(data[start + head_bytes : stop], dtype).tolist())
    return rows


def read_webdataset(folder: Path, dtype: str) -> Rows:
    rows: Rows = []
    for number, path in enumerate(sorted(folder.glob("*.tar"))):
        with tarfile.open(path) as tar:
            for row, member in enumerate(tar):
                assert member.name == f"{number:05d}-{row:08d}.npy"
                array = np.load(io.BytesIO(tar.extractfile(member).read()))  # type: ignore[union-attr]
                assert array.dtype == dtype
                rows.append(array.tolist())
    return rows


def read_datatrove(folder: Path, dtype: str) -> Rows:
    rows: Rows = []
    for path in sorted(folder.glob("*.ds")):
        tokens = bytes_of(path, dtype)
        ends = bytes_of(path.with_suffix(".ds.index"), "uint64")
        assert path.with_suffix(".ds.metadata").read_text().split("\n")[1] == str(len(tokens))
        rows += [tokens[start:stop] for start, stop in pairwise([0, *ends])]
        assert ends[-1] == len(tokens)
    return rows


def read_npy(folder: Path, dtype: str) -> Rows:
    rows: Rows = []
    for path in sorted(folder.glob("*.npy")):
        tokens = bytes_of(path, dtype)
        with gzip.open(path.with_suffix(".csv.gz"), "rt") as file:
            rows += [tokens[int(start) : int(stop)] for start, stop in csv.reader(file)]
    return rows


def read_arrow(folder: Path, dtype: str) -> Rows:
    import pyarrow as pa

    rows: Rows = []
    for file in json.loads((folder / "state.json").read_bytes())["_data_files"]:
        with pa.ipc.open_stream(folder / file["filename"]) as stream:
            assert str(stream.schema.field("tokens").type.value_type) == dtype
            rows += stream.read_all()["tokens"].to_pylist()
    return rows


def read_parquet(folder: Path, dtype: str) -> Rows:
    frame = pl.read_parquet(folder / "*.parquet")
    assert frame.columns == ["num_tokens", "tokens", "spans"]
    assert str(frame.schema["tokens"]) == f"List({dtype.replace('ui', 'UI')})"
    return frame["tokens"].to_list()


READERS: dict[str, Callable[[Path, str], Rows]] = {
    "parquet": read_parquet,
    "megatron": read_megatron,
    "mds": read_mds,
    "webdataset": read_webdataset,
    "litdata": read_litdata,
    "datatrove": read_datatrove,
    "npy": read_npy,
    "arrow": read_arrow,
}


def test_every_format_that_a_config_may_name_can_be_written() -> None:
    assert tuple(FORMATS) == FORMAT_NAMES == tuple(READERS)


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("length", [None, 64])
@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_rows_come_back_in_order(name: str, length: int | None, dtype: str, tmp_path: Path) -> None:
    about = about_of(dtype, length)
    shards = [seeded_rows(count, about, count) for count in (3, 17, 1)]

    write_shards(tmp_path, name, [shard_of(rows, dtype) for rows in shards], about)

    assert READERS[name](tmp_path, dtype) == [row for rows in shards for row in rows]


@settings(max_examples=20)
@given(lengths=st.lists(st.integers(1, 300), min_size=1, max_size=8))
@pytest.mark.parametrize("name", ["mds", "litdata", "webdataset"])
def test_rows_of_any_lengths_come_back(
    name: str, lengths: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp(name)
    rows = [list(range(length)) for length in lengths]

    write_shards(folder, name, [shard_of(rows)], about_of())

    assert READERS[name](folder, "uint16") == rows


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_the_same_rows_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    about = about_of()
    shard = shard_of(seeded_rows(5, about))
    chunked = pl.concat([shard[:2], shard[2:]], rechunk=False)

    first = write_shards(tmp_path / "a", name, [shard], about)
    second = write_shards(tmp_path / "b", name, [chunked], about)

    assert first == second


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_arrays_give_the_bytes_of_lists(name: str, tmp_path: Path) -> None:
    about = about_of(sequence_length=16)
    shard = shard_of(seeded_rows(5, about))
    arrays = shard.with_columns(pl.col("tokens").list.to_array(16))

    lists = write_shards(tmp_path / "a", name, [shard[1:]], about)

    assert write_shards(tmp_path / "b", name, [arrays[1:]], about) == lists


def test_spans_lie_beside_the_megatron_pair(tmp_path: Path) -> None:
    first = [span("0" * 31 + "1", 5, 2), span("f" * 32, 0, 1)]
    spans = pl.Series([first, [span("0123456789abcdef" * 2, 70_000, 4)]], dtype=pl.List(SPAN))
    shard = shard_of([[1, 2, 3, 0], [4, 5, 6, 7]]).with_columns(spans=spans)

    write_shards(tmp_path, "megatron", [shard], about_of(sequence_length=4))

    data = (tmp_path / "shard-00000.spans").read_bytes()
    assert data[:24] == b"TMSPANS1" + struct.pack("<QQ", 2, 3)
    assert struct.unpack_from("<3Q", data, 24) == (0, 2, 3)
    assert struct.unpack_from("<3I", data, 48) == (5, 0, 70_000)
    assert struct.unpack_from("<3I", data, 60) == (2, 1, 4)
    assert data[72:].hex() == "0" * 31 + "1" + "f" * 32 + "0123456789abcdef" * 2

    write_shards(tmp_path / "slice", "megatron", [shard[1:]], about_of(sequence_length=4))
    data = (tmp_path / "slice/shard-00000.spans").read_bytes()
    assert struct.unpack_from("<QQ2QII", data, 8) == (1, 1, 0, 1, 70_000, 4)


def span(doc_id: str, start: int, length: int) -> dict[str, Any]:
    return {"doc_id": doc_id, "start": start, "length": length}


@cases("""
    name | rows                        | about         | message
    mds  | [[1, 2], [3, 4], [5, 6, 7]] | ("uint16", 2) | shard has 3 tokens, where 2 are promised
    npy  | [[1]]                       | ("uint32",)   | the shard has uint16 ids, its source uint32
""")
def test_rows_that_are_not_as_promised_are_refused(
    name: str, rows: Rows, about: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match=message):
        write_shards(tmp_path, name, [shard_of(rows)], about_of(*about))
    for each in FORMAT_NAMES[1:]:
        with pytest.raises(FormatError, match=f"{each}: row 1 of the shard has 0 tokens"):
            write_shards(tmp_path / each, each, [shard_of([[1], [], [2]])], about_of())


@pytest.mark.parametrize("name", ["mds", "litdata"])
def test_a_shard_may_end_at_the_last_offset(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = write_shards(tmp_path, name, [shard_of([[1] * 50])], about_of())

    monkeypatch.setattr(base, "MAX_BYTES", file.bytes)
    write_shards(tmp_path, name, [shard_of([[1] * 50])], about_of())
    monkeypatch.setattr(base, "MAX_BYTES", file.bytes - 1)
    with pytest.raises(FormatError, match=r"its offsets end at 4 GiB.*target_bytes"):
        write_shards(tmp_path, name, [shard_of([[1] * 50])], about_of())


def test_arrow_lists_beyond_32_bit_offsets_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert np.iinfo(np.int32).max == arrow.MAX_TOKENS
    monkeypatch.setattr(arrow, "MAX_TOKENS", 50)

    write_shards(tmp_path, "arrow", [shard_of([[1] * 50])], about_of())
    write_shards(tmp_path, "arrow", [shard_of([[1] * 51])], about_of(sequence_length=51))
    with pytest.raises(FormatError, match=r"a shard of 51 tokens, but a list's offsets end"):
        write_shards(tmp_path, "arrow", [shard_of([[1] * 51])], about_of())


def test_a_row_group_of_parquet_has_eight_million_tokens(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    tokens = pl.Series([[7]] * 9, dtype=pl.List(pl.UInt16)).list.gather([0] * (1 << 20))
    shard = shard_of([[7]] * 9).with_columns(num_tokens=pl.lit(1 << 20, pl.UInt32), tokens=tokens)

    write_shards(tmp_path, "parquet", [shard], about_of())

    metadata = pq.ParquetFile(tmp_path / "shard-00000.parquet").metadata
    assert [metadata.row_group(group).num_rows for group in range(2)] == [8, 1]


def test_no_field_of_parquet_may_be_null(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    shard = shard_of([[1, 2], [3]])
    write_shards(tmp_path, "parquet", [shard], about_of())

    schema = pq.read_schema(tmp_path / "shard-00000.parquet")
    span = schema.field("spans").type.value_field
    fields = [*schema, schema.field("tokens").type.value_field, span, *span.type.fields]
    assert [field.name for field in fields if field.nullable] == []
    without = shard.with_columns(tokens=pl.lit(None, pl.List(pl.UInt16)))
    with pytest.raises(ValueError, match="null"):
        without_nulls(pa.table(without.to_arrow()))


@pytest.mark.parametrize(
    ("length", "shape"),
    [(255, "04 ff"), (256, "05 00 01"), (65_535, "05 ff ff"), (65_536, "06 00 00 01 00")],
)
def test_mds_shapes_take_the_smallest_width(length: int, shape: str) -> None:
    size = len(bytes.fromhex(shape)) + 2 * length

    assert head(length, 2) == struct.pack("<I", size) + bytes.fromhex(shape)


def test_a_tar_header_is_the_one_of_tarfile(tmp_path: Path) -> None:
    write_shards(tmp_path, "webdataset", [shard_of([[7]])], about_of())
    member = tarfile.TarInfo("00000-00000000.npy")
    member.size, member.mode, member.uname, member.gname = 130, 0o444, "bigdata", "bigdata"

    written = (tmp_path / "shard-00000.tar").read_bytes()

    assert written[:512] == member.tobuf(tarfile.USTAR_FORMAT)
    assert len(written) == tarfile.RECORDSIZE


def test_a_tar_ends_with_two_empty_blocks(tmp_path: Path) -> None:
    shard = shard_of([*[[7]] * 8, [7] * 200])  # 8 members of two blocks and one of three: 19 of 20

    write_shards(tmp_path, "webdataset", [shard], about_of())

    written = (tmp_path / "shard-00000.tar").read_bytes()
    assert len(written) == 2 * tarfile.RECORDSIZE
    assert not any(written[19 * tarfile.BLOCKSIZE :])


def test_litdatas_index_has_the_rows_and_tokens_of_each_chunk(tmp_path: Path) -> None:
    about = about_of(sequence_length=64)
    shards = [shard_of(seeded_rows(count, about)) for count in (3, 5)]

    write_shards(tmp_path, "litdata", shards, about)

    index = json.loads((tmp_path / "index.json").read_bytes())
    assert index["config"]["chunk_size"] == 5
    sizes = [(chunk["chunk_size"], chunk["dim"]) for chunk in index["chunks"]]
    assert sizes == [(3, 192), (5, 320)]


def test_litdata_and_arrow_name_a_new_state_for_new_shards(tmp_path: Path) -> None:
    about = about_of()
    states = []
    for number, rows in enumerate(([[1, 2]], [[1, 3]])):
        for name in ("litdata", "arrow"):
            write_shards(tmp_path / f"{name}{number}", name, [shard_of(rows)], about)
        chunks = json.loads((tmp_path / f"litdata{number}/index.json").read_bytes())
        state = json.loads((tmp_path / f"arrow{number}/state.json").read_bytes())
        states.append((chunks["updated_at"], state["_fingerprint"]))

    assert states[0][0] != states[1][0]
    assert states[0][1] != states[1][1]
    assert {len(state[1]) for state in states} == {16}


@pytest.mark.parametrize(
    ("tokens", "text"),
    [(0, "0.00 T"), (999, "999 T"), (9_998, "10.0 kT"), (836_000, "836 kT"), (999_500, "1.00 MT")],
)
def test_numbers_for_people(tokens: int, text: str) -> None:
    assert for_people(tokens) == text


def test_rows_are_headed_and_filled_up() -> None:
    rows = flat_rows(pl.Series([[1], [2, 3, 4]], dtype=pl.List(pl.UInt8)))
    heads = by_length(rows.lengths, lambda length: b"h" * length)

    made = headed(heads, rows, unit=4)

    assert made.content.tobytes() == b"h\x01\0\0" + b"hhh\x02\x03\x04\0\0"
    assert made.starts.tolist() == [0, 4, 12]


@given(st.lists(st.tuples(st.binary(max_size=70), st.integers(0, 3)), max_size=6))
@example([(b"", 0), (bytes(range(1, 65)), 1), (b"\xff", 0)])
def test_rows_are_written_to_their_places_and_nowhere_else(rows: list[tuple[bytes, int]]) -> None:
    content = b"".join(row for row, _ in rows)
    starts = np.cumsum([0, *(len(row) for row, _ in rows)])
    expected, places = bytearray(), []
    for row, gap in rows:
        expected += b"." * gap
        places.append(len(expected))
        expected += row
    expected += b"."
    target = np.full(len(expected), ord("."), np.uint8)

    place_rows(target, np.array(places, np.int64), np.frombuffer(content, np.uint8), starts)

    assert target.tobytes() == bytes(expected)
