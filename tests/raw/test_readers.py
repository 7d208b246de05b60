"""Input files -> chunks: formats, slices, compression, and every way a file can be broken."""

import gzip
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
from input_files import (
    COMPRESS,
    as_input,
    chunks,
    jsonl,
    numbers,
    read,
    slices,
    texts,
    write,
    zst,
)
from prelude import Path, ValidationError, given, json, pl, pytest, settings, st

from assets.raw.readers import decompress, read_tables
from assets.raw.readers.input_file import InputFile, Slice
from resources.settings.sources import SourceConfig

SAMPLE = Path(__file__).parents[2] / "sample_data"
MIB = 1 << 20
SOURCE = SourceConfig.model_validate({"name": "s", "where": "x"})


def deep(levels: int) -> bytes:
    return b'{"text":"[[", "a":' + b"[" * levels + b"]" * levels + b"}"


def zst_header(window_log: int) -> bytes:
    # RFC 8878 3.1.1: magic, descriptor 0 (window byte follows), window = 2^(10 + byte / 8), then
    # one last raw block (bit 0) of 13 bytes.
    window = bytes([(window_log - 10) << 3])
    return b"\x28\xb5\x2f\xfd\x00" + window + (13 << 3 | 1).to_bytes(3, "little")


GOOD_GZIP = gzip.compress(jsonl("a"))
TOO_DEEP = "JSON is nested more than 200 levels deep"
SHOWN = (b"x" * 3 * MIB)[:65536]
Bad = list[tuple[str, str, bytes]]  # position, the beginning of the error, bytes in quarantine
CONTENTS: list[tuple[str, bytes, dict[str, object], list[str], Bad]] = [
    # JSON lines
    ("jsonl", b'\xef\xbb\xbf{"text":"a"}\r\n\r\n  \n{"text":"b"}\r\n', {}, ["a", "b"], []),
    (
        *("jsonl", jsonl("one") + b'{"text": oops}\n' + jsonl("two"), {}, ["one", "two"]),
        [("byte 16", "JSON is malformed", b'{"text": oops}')],
    ),
    (
        *("jsonl", b'{"id":1,"text":"a"}\n{"id":1,"text":"b"}\n', {"id_field": "id"}, ["a"]),
        [("byte 20", "id '1' was seen before", b'{"id":1,"text":"b"}')],
    ),
    *(
        (
            *(name, pack(jsonl("a") + b"x" * 3 * MIB + b"\n" + jsonl("b"))),
            *({"max_record_bytes": MIB}, ["a", "b"]),
            [("byte 14", "line has 3,145,728 bytes, above", SHOWN)],
        )
        for name, pack in (("jsonl", bytes), ("jsonl.gz", gzip.compress))
    ),
    # Compression
    ("jsonl.gz", GOOD_GZIP + b"\0" * 100_000, {}, ["a"], []),
    ("jsonl.gz", GOOD_GZIP + b"garbage", {}, ["a"], [("byte 14", "gz stream is broken near", b"")]),
    (
        *("jsonl.zst", zst(jsonl("a")) + zst(jsonl("b"))[:-3], {}, ["a"]),
        [("byte 14", "zst stream is broken near", b'{"text": "b')],
    ),
    ("jsonl.zst", zst_header(27) + b'{"text":"a"}\n', {}, ["a"], []),
    (
        *("json.gz", gzip.compress(b'{"text":"a"}')[:-4], {}, ["a"]),
        [("record 1", "gz stream is broken near", b"")],
    ),
    # .json
    ("json", b'[{"text":"a"},\n {"text":"b"}]\n', {}, ["a", "b"], []),
    ("json", b'\xef\xbb\xbf [ {"text":"a"} , {"text":"b"} ] ', {}, ["a", "b"], []),
    ("json", b'{"text":"a"}\n{"text":"b"}\n', {}, ["a", "b"], []),
    ("json", b'{\n"text":"a"\n}\n{\n"text":"b"\n}', {}, ["a", "b"], []),
    ("json", b'{"text":"a"}', {}, ["a"], []),
    ("json", b"[ ]\n", {}, [], []),
    (
        *("json", b'[{"text":"a"}, {"text": oops}, {"text":"c"}]', {}, ["a"]),
        [("record 1", "JSON is broken", b'{"text": oops}, {"text":"c"}]')],
    ),
    ("json", b'[{"text":"a"}, {"text":"b', {}, ["a"], [("record 1", "JSON is", b'{"text":"b')]),
    ("json", b'[{"text":"a"}', {}, ["a"], [("record 1", "JSON is broken", b"")]),
    ("json", b'[{"text":"a"}] more', {}, ["a"], [("record 1", "JSON is broken", b"] more")]),
    *(
        (
            *("json", b'[{"text":"a"}, ' + deep(levels) + b', {"text":"b"}]', {}, ["a", "b"]),
            [("record 1", TOO_DEEP, deep(levels)[:65536])],
        )
        for levels in (201, 900, 100_000)
    ),
    (
        *("json", b"oops\n" + jsonl("a") + b"\noops\n" + jsonl("b"), {}, ["a", "b"]),
        [("record 0", "JSON is malformed", b"oops"), ("record 2", "JSON is malformed", b"oops")],
    ),
    # CSV
    (
        *("csv", '\ufeffid,text\r\n1,"a\n""b"", c"\r\n\r\n2,日本\r\n'.encode()),
        *({"id_field": "id"}, ['a\n"b", c', "日本"], []),
    ),
    ("csv", b"text\n" + b"x" * 500_000, {}, ["x" * 500_000], []),
    (
        *("csv", b'text\n"aaaaaaaa\nbbbbbbbb\ncccc"\nd\n', {"max_record_bytes": 20}),
        ["bbbbbbbb", 'cccc"', "d"],
        [("record 0", "row is above max_record_bytes=20", b'"aaaaaaaa\n')],
    ),
    (
        *("csv", b"id;text\n1;a\n", {}, []),
        [("record 0", "no column `text`; columns: id;text. As it seems,", b"id;text\n")],
    ),
    (
        *("tsv", b"id\tbody\n1\ta\n2\tb\n", {}, []),
        [("record 0", "no column `text`; columns: id, body", b"id\tbody\n")],
    ),
    ("tsv", b"id\tbody\n1\ta\n2\tb\n", {"text_field": "body"}, ["a", "b"], []),
    # Text
    ("txt", "\ufeffone\n\n  \nthree".encode(), {}, ["one\n\n  \nthree"], []),
    (
        *("txt", "\ufeffone\ntwo\r\n\r\n\n  \nthree".encode()),
        *({"text_documents": "blank_line"}, ["one\ntwo\r", "three"], []),
    ),
    (
        *("txt", b"good\n\nb\xffd\n\n" + b"long\n" * 50 + b"\nend"),
        *({"text_documents": "blank_line", "max_record_bytes": 100}, ["good", "end"]),
        [
            ("record 1", "not valid UTF-8", b'{"text": "b\\udcffd"}'),
            ("record 2", "text is above max_record_bytes=100", (b"long\n" * 20)[:-1]),
        ],
    ),
]


@pytest.mark.parametrize(
    ("name", "data", "options", "kept", "bad"), CONTENTS, ids=range(len(CONTENTS))
)
def test_what_can_be_read_is_kept_and_the_rest_named(
    tmp_path: Path, name: str, data: bytes, options: dict[str, object], kept: list[str], bad: Bad
) -> None:
    chunk = read(write(tmp_path, f"a.{name}", data), 10 * MIB, **options)

    assert (texts(chunk), chunk.rows_in) == (kept, len(kept) + len(bad))
    rows = chunk.quarantine.select("position", "error", "raw").rows()
    beginnings = [
        (place, error[: len(said)], raw)
        for (place, error, raw), (_, said, _) in zip(rows, bad, strict=True)
    ]
    assert beginnings == bad


# JSON lines


@settings(max_examples=25)
@given(st.lists(st.text(max_size=9), max_size=8), st.integers(1, 60), st.booleans())
def test_slices_hold_every_line_once_and_ids_do_not_depend_on_them(
    tmp_path_factory: pytest.TempPathFactory, values: list[str], part: int, is_ended: bool
) -> None:
    data = jsonl(*values)
    file = write(tmp_path_factory.mktemp("d"), "a.jsonl", data if is_ended else data[:-1])

    assert (texts(read(file, part)), read(file, part).rows_in) == (values, len(values))
    assert read(file, part).documents.equals(read(file, 10_000).documents)


# Compression


@pytest.mark.slow
@pytest.mark.parametrize("suffix", COMPRESS)
def test_members_and_frames_are_read_to_the_last(tmp_path: Path, suffix: str) -> None:
    values = numbers(50_000)
    pack = COMPRESS[suffix]
    file = write(tmp_path, f"a.jsonl.{suffix}", pack(jsonl(*values)) + pack(jsonl("last")))

    assert texts(read(file)) == [*values, "last"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", COMPRESS)
def test_truncated_stream_gives_what_came_before_and_one_quarantine_row(
    tmp_path: Path, suffix: str
) -> None:
    values = numbers(50_000)
    data = COMPRESS[suffix](jsonl(*values))
    file = write(tmp_path, f"a.jsonl.{suffix}", data[: len(data) * 2 // 3])

    chunk = read(file)

    found = texts(chunk)
    assert values[: len(found)] == found and len(found) > 15_000
    assert f"{suffix} stream is broken near byte" in chunk.quarantine["error"].item()
    assert jsonl(values[len(found)]).startswith(chunk.quarantine["raw"].item())


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("name", ["jsonl", "json", "csv", "txt", "warc", "parquet"])
def test_wrong_suffix_costs_one_quarantine_row(tmp_path: Path, name: str, suffix: str) -> None:
    chunk = read(write(tmp_path, f"a.{name}.{suffix}", jsonl("a")))

    assert (chunk.rows_in, len(chunk.quarantine)) == (1, 1)
    assert f"{suffix} stream is broken" in chunk.quarantine["error"].item()


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst", ".bz2", ".xz"])
@pytest.mark.parametrize("name", ["jsonl", "json", "csv", "txt", "warc"])
def test_empty_file_has_no_rows_and_no_error(tmp_path: Path, name: str, suffix: str) -> None:
    parts = chunks(write(tmp_path, f"a.{name}{suffix}", b""))

    assert [c.rows_in for c in parts] == [0]


@pytest.mark.parametrize("name", ["jsonl", "json", "csv", "txt", "warc", "parquet"])
def test_stream_that_never_starts_is_shown_by_its_first_bytes(tmp_path: Path, name: str) -> None:
    file = write(tmp_path, f"a.{name}.gz", b"not gzip " * 10_000)

    assert read(file).quarantine["raw"].item() == (b"not gzip " * 10_000)[:65536]


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_decompression_bomb_is_stopped(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompress, "BOMB_BYTES", 4 * MIB)
    file = write(tmp_path, f"a.jsonl.{suffix}", COMPRESS[suffix](b" " * 64 * MIB + jsonl("a")))

    chunk = read(file)

    assert (len(chunk.documents), len(chunk.quarantine)) == (0, 1)
    assert "decompression bomb" in chunk.quarantine["error"].item()


def test_stream_is_cut_into_chunks_that_depend_on_content_only(tmp_path: Path) -> None:
    values = numbers(100, width=1000)
    plain, packed = jsonl(*values), [gzip.compress(jsonl(*values), level) for level in (1, 9)]

    first, second = (
        chunks(write(tmp_path, f"{i}.jsonl.gz", p), 10_000) for i, p in enumerate(packed)
    )

    assert [len(c.documents) for c in first] == [len(c.documents) for c in second]
    assert len(first) == 10 and len(plain) > 100_000
    assert [text for c in first for text in texts(c)] == values


# .json


def test_json_array_of_any_size_is_read_through_a_window(tmp_path: Path) -> None:
    values = [*numbers(60_000), "é" * 3 * MIB, "end"]
    data = json.dumps([{"text": value} for value in values], ensure_ascii=False).encode()

    assert texts(read(write(tmp_path, "a.json.gz", gzip.compress(data)))) == values


def test_json_elements_are_judged_one_by_one(tmp_path: Path) -> None:
    data = b'[{"text":"a"}, 7, {"text":"\xff"}, {"text":"\\ud800"}, {"text":"b"}]'

    chunk = read(write(tmp_path, "a.json", data))

    assert texts(chunk) == ["a", "b"]
    assert chunk.quarantine["position"].to_list() == ["record 1", "record 2", "record 3"]
    assert chunk.quarantine["raw"][1] == b'{"text":"\xff"}'


# CSV


def test_csv_is_read_with_the_separator_and_the_quotes_of_its_source(tmp_path: Path) -> None:
    file = write(tmp_path, "a.csv", 'id;text\n1;a "b, c\n2;"d;e"\n')

    quoted = read(file, separator=";")
    plain = read(file, separator=";", quoting="none")

    assert (texts(quoted), quoted.quarantine.height) == (['a "b, c', "d;e"], 0)
    assert texts(plain) == ['a "b, c']
    assert plain.quarantine["error"].to_list() == ["row has 3 fields, the header has 2"]
    assert texts(read(write(tmp_path, "b.csv", "1\x01text\n2\x01a,b\n"), separator="\x01"))


def test_a_table_without_a_header_has_the_columns_of_its_source(tmp_path: Path) -> None:
    lines = "".join(f"{i},row {i}\n" for i in range(30))
    file = write(tmp_path, "a.csv", f"{lines}1,2,3\n{lines}")

    whole = read(file, column_names=["id", "text"])
    cut = read(file, part_bytes=50, column_names=["id", "text"])

    assert texts(whole) == [f"row {i}" for i in range(30)] * 2
    assert whole.quarantine["error"].to_list() == ["row has 3 fields, column_names has 2"]
    assert cut.documents.to_dicts() == whole.documents.to_dicts()
    assert cut.quarantine["position"].to_list() == whole.quarantine["position"].to_list()
    with pytest.raises(ValidationError, match="column_names: 'text' of text_field is missing"):
        SourceConfig.model_validate({"name": "s", "where": "x", "column_names": ["id", "body"]})


@pytest.mark.parametrize(
    "options", [{"separator": "ab"}, {"separator": "é"}, {"separator": '"'}, {"format": "jsonl"}]
)
def test_a_separator_that_cannot_be_used_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="separator"):
        SourceConfig.model_validate({"name": "s", "where": "x", "separator": ";", **options})


def test_csv_broken_rows_are_lost_one_by_one(tmp_path: Path) -> None:
    data = b'text,x\na,1\nb\n"c"d,1\n\xff,1\ne,2\n"open,3\nf,4\n'

    chunk = read(write(tmp_path, "a.csv", data))

    assert texts(chunk) == ["a", "e", "f"]
    rows = chunk.quarantine.select("position", "error", "raw").rows()
    assert rows == [
        ("record 1", "row has 1 fields, the header has 2", b"b\n"),
        ("record 2", "CSV is broken: ',' expected after '\"'", b'"c"d,1\n'),
        ("record 3", "not valid UTF-8: byte 0xff at character 0", b'{"text": "\\udcff", "x": "1"}'),
        ("record 5", "CSV is broken: unexpected end of data", b'"open,3\n'),
    ]


def test_csv_bounds_do_not_depend_on_what_other_threads_read(tmp_path: Path) -> None:
    source = SourceConfig.model_validate({"name": "s", "where": "x"})
    rows = read_tables.read_csv(write(tmp_path, "a.csv", "text\na\n" + "x" * 1000), source)
    assert next(rows).fields == {"text": "a"}

    read(write(tmp_path, "b.csv", "text\nb\n"), max_record_bytes=100)

    assert [row.fields for row in rows] == [{"text": "x" * 1000}]


@pytest.mark.parametrize("options", [{}, {"max_record_bytes": 100}])
@pytest.mark.parametrize("end", ["", '"q"z\n'])
def test_unclosed_quote_costs_its_line_only(
    tmp_path: Path, options: dict[str, int], end: str
) -> None:
    lines = numbers(500)
    data = 'text\na\n"open\n' + "\n".join(lines) + '\n"two\nlines"\n' + end
    chunk = read(write(tmp_path, "a.csv", data), **options)

    assert texts(chunk) == ["a", *lines, "two\nlines"]
    assert chunk.quarantine["raw"].to_list() == [b'"open\n', *([end.encode()] if end else [])]
    assert chunk.documents["origin"].struct["row"].to_list() == [0, *range(2, 503)]


def test_csv_columns_of_one_name_are_renamed_but_not_the_text(tmp_path: Path) -> None:
    row = read(write(tmp_path, "a.csv", "text,x,x,x_2,x\na,1,2,3,4\n"))
    refused = read(write(tmp_path, "b.csv", "text,text\na,b\n"))

    assert json.loads(row.documents["meta"].item()) == {
        "x": "1",
        "x_3": "2",
        "x_2": "3",
        "x_4": "4",
    }
    assert "2 columns are named `text`" in refused.quarantine["error"].item()


# Parquet


def parquet(folder: Path, table: pa.Table, rows_per_group: int = 100) -> InputFile:
    pq.write_table(table, folder / "a.parquet", row_group_size=rows_per_group)
    return as_input(folder / "a.parquet")


def test_a_row_group_of_exactly_the_part_size_is_a_slice(tmp_path: Path) -> None:
    file = parquet(tmp_path, pa.table({"text": ["same"] * 300}))
    part_bytes = pq.read_metadata(file.path).row_group(0).total_byte_size

    assert [(cut.start, cut.stop) for cut in slices(file, SOURCE, part_bytes)] == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]


def test_parquet_is_cut_by_row_groups_and_rows_are_absolute(tmp_path: Path) -> None:
    values = numbers(1000, width=100)
    file = parquet(tmp_path, pa.table({"text": values}))

    parts = chunks(file, part_bytes=30_000)

    assert len(parts) > 2
    assert [text for c in parts for text in texts(c)] == values
    assert read(file, 30_000).documents["origin"].struct.field("row").to_list() == list(range(1000))


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_large_row_group_is_read_in_parts(tmp_path: Path, compression: str) -> None:
    values = numbers(3000, width=100)
    sizes, rows = (20, 2500, 30, 30, 420), iter(values)
    with pq.ParquetWriter(
        tmp_path / "a.parquet",
        pa.schema({"text": pa.string(), "n": pa.int64()}),
        compression=compression,
        data_page_size=4096,
        use_dictionary=False,
    ) as writer:
        for size in sizes:
            some = [*islice(rows, size)]
            writer.write_table(pa.table({"text": some, "n": range(size)}))
    file = as_input(tmp_path / "a.parquet")

    cuts = slices(file, SOURCE, 20_000)
    parts = chunks(file, part_bytes=20_000)

    assert [(cut.unit, cut.start, cut.stop) for cut in cuts] == [
        ("row_groups", 0, 1),
        ("row_group", 1, 2),
        ("row_groups", 2, 4),
        ("row_group", 4, 5),
    ]
    assert [text for c in parts for text in texts(c)] == values
    assert max(c.documents["text"].str.len_bytes().sum() for c in parts) < 21_000
    rows_of_parts = pl.concat([c.documents for c in parts])["origin"].struct.field("row")
    assert rows_of_parts.to_list() == list(range(3000))
    assert pl.concat([c.documents for c in parts]).equals(read(file, 1 << 30).documents)


def test_parquet_types_come_through(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": pa.array(["a", "b"], pa.large_string()),
            "lang": pa.array(["de", "de"]).dictionary_encode(),
            "meta": [{"k": 1}, {"k": None}],
            "day": pa.array([0, 1], pa.date32()),
        }
    )

    documents = read(parquet(tmp_path, table)).documents

    assert documents["lang"].to_list() == ["de", "de"]
    assert documents["meta"][0] == '{"meta":{"k":1},"day":"1970-01-01"}'


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (pa.timestamp("ns"), 1_000_000_001, "1970-01-01T00:00:01.000000001"),
        (pa.timestamp("ns"), 1_000_000_000, "1970-01-01T00:00:01"),
        (pa.timestamp("us", "Foo/Bar"), 3, "1970-01-01T00:00:00.000003Z"),
        (pa.timestamp("us", "Europe/Berlin"), 3, "1970-01-01T01:00:00.000003+01:00"),
        (pa.date32(), 10**7, "29349-01-26"),
        (pa.time64("ns"), 1001, "00:00:00.000001001"),
    ],
)
def test_parquet_times_python_cannot_hold_are_text(
    tmp_path: Path, kind: pa.DataType, value: int, shown: str
) -> None:
    table = pa.table({"text": ["a", "b"], "at": pa.array([value, None], kind)})

    meta = read(parquet(tmp_path, table)).documents["meta"].to_list()

    assert [json.loads(each)["at"] for each in meta] == [shown, None]


def test_parquet_value_that_cannot_be_read_costs_its_row(tmp_path: Path) -> None:
    days = pa.array([{"day": 0}, {"day": 10**7}, None], pa.struct({"day": pa.date32()}))
    chunk = read(parquet(tmp_path, pa.table({"text": ["a", "b", "c"], "nested": days})))

    assert texts(chunk) == ["a", "c"]
    assert chunk.quarantine["error"].item().startswith("column `nested` (struct<day: date32[day]>)")
    assert json.loads(chunk.quarantine["raw"].item()) == {"text": "b", "nested": None}


def test_parquet_struct_with_two_fields_of_one_name_does_not_raise(tmp_path: Path) -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    chunk = read(parquet(tmp_path, pa.table({"text": ["x"], "s": twice})))

    assert "duplicate field names" in chunk.quarantine["error"].item()


def test_parquet_texts_of_bytes_are_read_where_they_are_utf8(tmp_path: Path) -> None:
    columns = {"text": ["né".encode(), b"a\xff", None], "url": [b"u"] * 3, "lang": [b"\xff"] * 3}
    data = pa.table({name: pa.array(values, pa.binary()) for name, values in columns.items()})

    chunk = read(parquet(tmp_path, data))

    assert chunk.documents.select("text", "url", "lang").rows() == [("né", "u", None)]
    assert [error.split(" - ")[0] for error in chunk.quarantine["error"]] == [
        "text field `text` is not valid UTF-8, but bytes",
        "text field `text` is null, expected a string",
    ]


@pytest.mark.parametrize("columns", [None, ["data.content"], ["data"]])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_text_in_a_struct_is_read(tmp_path: Path, name: str, columns: list[str] | None) -> None:
    table = pa.table({"data": [{"content": "a", "n": 1}, None]})
    if name == "a.parquet":
        pq.write_table(table, tmp_path / name)
    else:
        pl.DataFrame(table).write_ipc(tmp_path / name)

    chunk = read(as_input(tmp_path / name), text_field="data.content", columns=columns)

    assert (texts(chunk), chunk.rows_in) == (["a"], 2)


def test_parquet_null_text_is_quarantined_as_json(tmp_path: Path) -> None:
    chunk = read(parquet(tmp_path, pa.table({"text": ["a", None], "n": [1, 2]})))

    assert chunk.quarantine.select("position", "raw").row(0) == ("row 1", b'{"text": null, "n": 2}')


def test_parquet_string_that_is_not_utf8_costs_its_row(tmp_path: Path) -> None:
    data = pa.array([b"a", b"\xff", b"c"] * 3, pa.binary()).view(pa.string())

    chunk = read(parquet(tmp_path, pa.table({"text": data})))

    assert texts(chunk) == ["a", "c"] * 3
    assert chunk.quarantine["position"].to_list() == ["row 1", "row 4", "row 7"]


def test_parquet_without_its_footer_or_text_column_is_one_row(tmp_path: Path) -> None:
    whole = parquet(tmp_path, pa.table({"body": numbers(1000)}))
    cut = write(tmp_path, "b.parquet", whole.path.read_bytes()[:-20])

    assert slices(cut, SOURCE, 1000) == [Slice(0, "stream", 0, cut.bytes)]
    assert "cannot be opened" in read(cut).quarantine["error"].item()
    assert "columns: body" in read(whole, part_bytes=1000).quarantine["error"].item()


def test_parquet_compressed_outside_is_read_up_to_the_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = parquet(tmp_path, pa.table({"text": ["a"]})).path.read_bytes()
    file = write(tmp_path, "b.parquet.gz", gzip.compress(data))

    assert texts(read(file)) == ["a"]
    monkeypatch.setattr(read_tables, "BOMB_BYTES", 10)
    assert "must be held whole" in read(file).quarantine["error"].item()


def test_parquet_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = parquet(tmp_path, pa.table({"text": ["x" * 10_000] * 5000}), rows_per_group=5000)
    monkeypatch.setattr(read_tables, "BOMB_BYTES", 15_000_000)

    chunk = read(file, part_bytes=100 * MIB)

    assert len(chunk.documents) == 1024
    assert "decompression bomb" in chunk.quarantine["error"].item()


def test_damaged_parquet_page_is_one_row(tmp_path: Path) -> None:
    file = parquet(tmp_path, pa.table({"text": numbers(200)}))
    data = bytearray(file.path.read_bytes())
    data[4:60] = b"\xff" * 56

    chunk = read(write(tmp_path, "b.parquet", bytes(data)))

    assert (len(chunk.documents), len(chunk.quarantine)) == (100, 1)
    assert chunk.quarantine["raw"].item() == data[:65536]


# Text


# WARC


def warc(status: str, body: bytes, *, kind: str = "response", headers: bytes = b"") -> bytes:
    http = b"HTTP/1.1 " + status.encode() + b"\r\nContent-Type: text/html\r\n" + headers + b"\r\n"
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.b/c\r\n"
    head += "Content-Type: application/http; msgtype=response\r\n"
    head += f"Content-Length: {len(http + body)}\r\n\r\n"
    return head.encode() + http + body + b"\r\n\r\n"


def page(text: str, charset: str = "utf-8") -> bytes:
    html = f'<html><head><meta charset="{charset}"></head><body><main><p>{text}</p></main></body>'
    return html.encode(charset)


def test_warc_pages_become_documents_and_other_records_are_left_out(tmp_path: Path) -> None:
    data = warc("200 OK", page("Zeit für Käse", "iso-8859-1")) + warc("404 Not Found", page("no"))
    data += warc("200 OK", page("no"), kind="request")
    data += warc("200 OK", gzip.compress(page("zip")), headers=b"Content-Encoding: gzip\r\n")

    chunk = read(write(tmp_path, "a.warc", data))

    assert (texts(chunk), chunk.rows_in) == (["Zeit für Käse", "zip"], 4)
    assert chunk.left_out == {"http_status": 1, "request_record": 1}
    assert chunk.documents["url"].to_list() == ["http://a.b/c"] * 2
    assert json.loads(chunk.documents["meta"][0])["url"] == "http://a.b/c"


def test_warc_record_above_the_cap_is_skipped(tmp_path: Path) -> None:
    bomb = warc("200 OK", gzip.compress(b"x" * 50_000), headers=b"Content-Encoding: gzip\r\n")
    data = warc("200 OK", page("x" * 50_000)) + bomb + warc("200 OK", page("two"))

    chunk = read(write(tmp_path, "a.warc", data), max_record_bytes=10_000)

    assert texts(chunk) == ["two"]
    assert [error.split(" above ")[-1] for error in chunk.quarantine["error"]] == [
        "max_record_bytes=10,000",
        "page unpacks to more than max_record_bytes=10,000",
    ]


# Everything


@pytest.mark.parametrize(
    ("name", "num_documents"),
    [
        ("reference/part-0.jsonl.gz", 236),
        ("reference/part-1.parquet", 189),
        ("reference/part-2.jsonl", 12),
        ("web/part-1.csv", 30),
        ("web/pages.warc.gz", 55),
        ("code/part-0.parquet", 225),
        ("code/part-1.jsonl.zst", 225),
        ("books/alice29-5-0.txt", 1),
    ],
)
def test_sample_files_are_read_whole(name: str, num_documents: int) -> None:
    chunk = read(as_input(SAMPLE / name))

    assert (len(chunk.documents), len(chunk.quarantine)) == (num_documents, 0)
    assert chunk.documents["doc_id"].n_unique() == num_documents
    assert chunk.documents["text"].str.len_bytes().gt(0).all()


@settings(max_examples=50)
@given(
    data=st.binary(max_size=300),
    name=st.sampled_from(["jsonl", "json", "csv", "tsv", "parquet", "txt", "warc"]),
    suffix=st.sampled_from(["", ".gz", ".zst", ".bz2", ".xz"]),
)
def test_no_bytes_make_a_reader_raise(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str, suffix: str
) -> None:
    packed = COMPRESS[suffix[1:]](data) if suffix else data

    assert chunks(write(tmp_path_factory.mktemp("d"), f"a.{name}{suffix}", packed), 100)
