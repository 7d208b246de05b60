"""Records -> document and quarantine tables."""

from prelude import ValidationError, given, json, pl, pytest, settings, st

from assets.raw.readers import documents
from assets.raw.readers.documents import (
    DOCUMENT_SCHEMA,
    QUARANTINE_SCHEMA,
    RAW_LIMIT_BYTES,
    Chunk,
    DocumentBuilder,
    document_id,
)
from assets.raw.readers.input_record import (
    InputRecord,
    Patch,
    matches_filter,
    parse_record,
    shown_digest,
)
from assets.text.table_rows import count_bytes
from resources.settings.sources import SourceConfig


def config(**options: object) -> SourceConfig:
    return SourceConfig.model_validate({"name": "s", "where": "x.jsonl", **options})


def build(*lines: bytes, **options: object) -> Chunk:
    builder = DocumentBuilder()
    builder.start_file(config(**options), "a.jsonl", "byte")
    for row, line in enumerate(lines):
        builder.add(parse_record(row, line))
    return builder.take()


@pytest.mark.parametrize(
    ("line", "text", "meta"),
    [
        ('{"data":{"content":"a","n":{"id":7}},"k":1}', "a", {"data": {"n": {}}, "k": 1}),
        ('{"data.content":"own","data":{"content":"a"}}', "own", {"data": {"content": "a"}}),
        ('{"data":"{\\"content\\":\\"a\\",\\"n\\":1}"}', "a", {"data": {"n": 1}}),
        ('{"data":{"content":"a","lang":"de"},"lang":"fr"}', "a", {"data": {}, "lang": "fr"}),
    ],
)
def test_fields_are_named_by_a_dotted_path(line: str, text: str, meta: dict[str, object]) -> None:
    fields = {"text_field": "data.content", "id_field": "data.n.id", "lang_field": "data.lang"}

    found = build(line.encode(), **fields).documents

    assert found["text"].to_list() == [text]
    assert json.loads(found["meta"].item()) == meta
    assert found["id"].item() == ("7" if '"id"' in line else None)
    assert found["lang"].item() == ("de" if '"de"' in line else None)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"data":{"x":1}}', "text field `data.content` is missing (fields: data)"),
        (b'{"data":3}', "text field `data.content` is missing (fields: data)"),
        (b'{"data":{"content":null}}', "text field `data.content` is null"),
    ],
)
def test_a_path_that_leads_to_no_text_is_an_error(line: bytes, error: str) -> None:
    assert only_error(line, text_field="data.content").startswith(error)


def test_a_system_prompt_beside_messages_in_an_object_is_part_of_the_conversation() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    chat = {"kind": "chat", "text_field": "data.messages"}
    line = {"data": {"messages": messages, "system": "be kind"}}

    found = build(json.dumps(line).encode(), **chat).documents["text"].item()
    line["data"]["images"] = "x.png"

    assert "be kind" in found
    assert "chat has `images`" in only_error(json.dumps(line).encode(), **chat)


def only_error(*lines: bytes, **options: object) -> str:
    chunk = build(*lines, **options)
    assert chunk.documents.is_empty()
    return str(chunk.quarantine["error"].item())


def test_the_last_of_two_equal_keys_counts() -> None:
    found = build(b'{"text":"a","n":1,"text":"b","n":2}').documents

    assert found.select("text", "meta").rows() == [("b", '{"n":2}')]


def test_record_becomes_one_document_with_its_other_fields_in_meta() -> None:
    line = b'{"id":"7","text":"hi","url":"http://a.b","lang":"de","license":"MIT","meta":{"k":[1]}}'

    row = build(line, id_field="id").documents.row(0, named=True)

    assert row == {
        "doc_id": document_id("s", "a.jsonl", 0),
        "text": "hi",
        "source": "s",
        "origin": {"file": "a.jsonl", "row": 0},
        "id": "7",
        "url": "http://a.b",
        "lang": "de",
        "license": "MIT",
        "meta": '{"url":"http://a.b","meta":{"k":[1]}}',
    }


def test_document_id_is_golden() -> None:
    # A change of this value gives every document a new id: lineage of existing corpora breaks.
    assert document_id("web", "data/a.jsonl", 4096) == "20a5948c66a9cdf814187c8ad6bd7203"


@pytest.mark.parametrize("lines", [[], [b'{"text":"a"}'], [b"broken"]])
def test_tables_have_their_schemas_whatever_the_input(lines: list[bytes]) -> None:
    chunk = build(*lines)

    assert dict(chunk.documents.schema) == DOCUMENT_SCHEMA
    assert dict(chunk.quarantine.schema) == QUARANTINE_SCHEMA


@pytest.mark.parametrize("text", ["", "日本語 – “x”", "\u0000", "x" * 1_000_000])
def test_text_comes_out_as_it_went_in(text: str) -> None:
    chunk = build(json.dumps({"text": text}).encode())

    assert chunk.documents["text"].to_list() == [text]
    assert chunk.documents["meta"].to_list() == ["{}"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text":"a"', "truncated"),
        (b'{"text":"a\x01b"}', "invalid character"),
        (b'{"text":"a\x00b"}', "invalid character"),
        (b'{"text":"\xff"}', "not valid UTF-8"),
        (b'{"text":"a","x":"\xff"}', "not valid UTF-8"),
        (b'{"text":"\\ud800"}', "lone surrogate"),
        (b'{"text":"a","x":"\\uDFFF"}', "lone surrogate"),
        (b'{"text":NaN}', "invalid character"),
        (b'{"text":"a"}{"text":"b"}', "trailing characters"),
        (b'{"text":"a","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion|nested"),
        (b'["a"]', "Expected `object`, got `array`"),
        (b'{"body":"a"}', r"`text` is missing \(fields: body\) - at `\$\.text`"),
        (b'{"text":null}', r"is null, expected a string - at `\$\.text`"),
        (b'{"text":5}', "is int, expected a string"),
    ],
)
def test_broken_record_is_quarantined_with_its_reason(line: bytes, reason: str) -> None:
    chunk = build(b'{"text":"before"}', line, b'{"text":"after"}')

    assert chunk.documents["text"].to_list() == ["before", "after"]
    row = chunk.quarantine.row(0, named=True)
    assert (row["position"], row["raw"]) == ("byte 1", line[:RAW_LIMIT_BYTES])
    with pytest.raises(ValueError, match=reason):
        raise ValueError(row["error"])


def test_declared_language_and_license_fill_gaps_only() -> None:
    lines = [b'{"text":"a","lang":"fr","license":"MIT"}', b'{"text":"b","lang":3,"license":""}']

    chunk = build(*lines, language="en", license="CC0-1.0")

    assert chunk.documents["lang"].to_list() == ["fr", "en"]
    assert chunk.documents["license"].to_list() == ["MIT", "CC0-1.0"]
    assert chunk.documents["meta"].to_list() == ["{}", '{"lang":3}']


def test_first_of_two_equal_ids_survives_over_chunks() -> None:
    builder = DocumentBuilder()
    builder.start_file(config(id_field="key"), "f", "record")
    builder.add(parse_record(0, b'{"key":1,"text":"first"}'))
    first = builder.take()
    builder.add(parse_record(1, b'{"key":"1","text":"second"}'))

    second = builder.take()

    assert first.documents["id"].to_list() == ["1"]
    assert second.documents.is_empty()
    assert second.quarantine["error"].to_list() == [
        "id '1' was seen before in this slice; the first stays"
    ]


def test_records_without_an_id_are_not_duplicates() -> None:
    chunk = build(b'{"id":null,"text":"a"}', b'{"id":"","text":"b"}', id_field="id")

    assert chunk.documents["id"].to_list() == [None, None]


def test_record_above_the_cap_is_quarantined_and_its_bytes_are_cut() -> None:
    chunk = build(b'{"text":"' + b"x" * 70_000 + b'"}', max_record_bytes=70_000)

    assert "above max_record_bytes=70,000" in chunk.quarantine["error"].item()
    assert len(chunk.quarantine["raw"].item()) == RAW_LIMIT_BYTES


def test_bytes_that_are_not_utf8_are_named_where_text_did_not_come_from_json() -> None:
    builder = DocumentBuilder()
    builder.start_file(config(), "f", "record")
    builder.add(InputRecord(3, {"text": "ab\udcff"}))

    row = builder.take().quarantine.row(0, named=True)

    assert (row["position"], row["error"]) == (
        "record 3",
        "not valid UTF-8: byte 0xff at character 2",
    )
    assert row["raw"] == b'{"text": "ab\\udcff"}'


@pytest.mark.parametrize(
    ("fields", "is_wanted"),
    [
        ({"meta": {"set": "PubMed"}}, True),
        ({"meta": '{"set":"PubMed"}'}, True),
        ({"meta.set": "PubMed"}, True),
        ({"meta": {"set": "Books"}}, False),
        ({"meta": "not json"}, False),
        ({"meta": None}, False),
        ({}, False),
    ],
)
def test_filter_looks_into_objects_and_json_text(
    fields: dict[str, object], is_wanted: bool
) -> None:
    assert matches_filter(fields, {"meta.set": ("PubMed", "arXiv")}) is is_wanted


def test_filter_tells_true_from_one() -> None:
    assert not matches_filter({"a": 1}, {"a": (True,)})
    assert not matches_filter({"a": True}, {"a": (1,)})
    assert matches_filter({"a": 1.0}, {"a": (1,)})


def test_filtered_records_are_counted_and_not_checked_further() -> None:
    chunk = build(b'{"keep":1,"text":"a"}', b'{"keep":0}', field_filter={"keep": 1})

    assert (chunk.rows_in, len(chunk.documents), chunk.skipped_by_filter) == (2, 1, 1)
    assert chunk.quarantine.is_empty()


@pytest.mark.parametrize(
    ("given_filter", "parsed"),
    [
        ('meta.set = "PubMed Abstracts"', {"meta.set": ("PubMed Abstracts",)}),
        (["a=1", "a = 2", "b == true", "c = word"], {"a": (1, 2), "b": (True,), "c": ("word",)}),
        ({"a": "x", "b": [1, 2]}, {"a": ("x",), "b": (1, 2)}),
    ],
)
def test_filter_short_forms(given_filter: object, parsed: dict[str, object]) -> None:
    assert config(field_filter=given_filter).field_filter == parsed


def test_misspelt_format_is_one_fault() -> None:
    with pytest.raises(ValidationError) as caught:
        config(format="jsnl")

    assert caught.value.error_count() == 1


@pytest.mark.parametrize(
    "options",
    [
        {"name": "../x"},
        {"name": "a\n"},
        {"where": []},
        {"unknown": 1},
        {"where": ""},
        {"where": ["a.jsonl", ""]},
        {"field_filter": "no value ="},
        {"field_filter": "a!=3"},
        {"field_filter": "a>=3"},
        {"field_filter": "x = 1 and y = 2"},
        {"field_filter": 'a = "open'},
        {"field_filter": "a = 'single'"},
        {"field_filter": {"a": []}},
        {"format": "xlsx"},
        {"max_record_bytes": 0},
    ],
)
def test_bad_config_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        config(**options)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=50)
@given(st.lists(st.dictionaries(st.sampled_from(["text", "id", "lang", "x"]), JSON) | st.binary()))
def test_no_record_is_lost(records: list[dict[str, object] | bytes]) -> None:
    lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in records]

    chunk = (
        build(*lines, id_field="id", field_filter={"x": (1,)}) if len(lines) % 2 else build(*lines)
    )

    total = len(chunk.documents) + len(chunk.quarantine) + chunk.skipped_by_filter
    assert chunk.rows_in == len(lines) == total


@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=5), JSON))
def test_meta_holds_the_other_fields_unchanged(fields: dict[str, object]) -> None:
    line = json.dumps({**fields, "text": "t"}).encode()

    meta = json.loads(build(line, lang_field="*lang*", license_field="*lic*").documents["meta"][0])

    assert meta == {key: value for key, value in fields.items() if key != "text"}


def test_long_runs_keep_their_order() -> None:
    lines = [json.dumps({"text": f"{row} " + "x" * 100_000}).encode() for row in range(60)]

    documents = build(*lines).documents

    assert documents["origin"].struct.field("row").to_list() == list(range(60))
    assert documents["text"].str.split(" ").list.first().cast(pl.Int64).to_list() == list(range(60))
    assert documents.n_chunks() == 1


def nested(levels: int) -> bytes:
    return b'{"text":"x","a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize("tail", [b"", b"}", b"\xff"])
def test_depth_is_bounded_by_a_number_and_not_by_the_stack(tail: bytes) -> None:
    assert build(nested(200)).documents.height == 1
    for levels in (201, 900, 100_000):
        assert only_error(nested(levels) + tail) == "JSON is nested more than 200 levels deep"


def test_brackets_in_strings_and_side_by_side_are_not_depth() -> None:
    text = '[{"' * 300 + "\\"
    record = {"text": text, "flat": [[]] * 300}

    assert build(json.dumps(record).encode()).documents["text"].item() == text


@pytest.mark.parametrize("digits", ["1e400", "-1.5E+999", "1" * 30, "-" + "9" * 5000])
def test_number_of_any_size_is_kept_as_spelled(digits: str) -> None:
    line = f'{{"text":"é","n":[{digits},1e400],"i":7}}'.encode()

    assert build(line).documents["meta"].item() == f'{{"n":[{digits},1e400],"i":7}}'


@pytest.mark.parametrize("value", ["NaN", "01", '"\\ud800"', "1e400x"])
def test_big_number_excuses_no_other_fault(value: str) -> None:
    assert only_error(f'{{"n":1e400,"text":"a","x":{value}}}'.encode())


def test_the_size_of_texts_is_counted_once_over_small_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[int] = []

    def count(texts: pl.Series) -> int:
        counted.append(len(texts))
        return count_bytes(texts)

    monkeypatch.setattr(documents, "count_bytes", count)
    builder = DocumentBuilder()
    sizes = []
    for number in range(4):
        builder.start_file(config(), f"{number}.jsonl", "byte")
        builder.add(parse_record(0, b'{"text":"\xc3\xa9t\xc3\xa9"}'))
        sizes.append(builder.text_bytes())

    assert sizes == [5, 10, 15, 20]
    assert counted == [1, 1, 1, 1]
    assert builder.take().documents["text"].to_list() == ["été"] * 4
    assert builder.text_bytes() == 0


def test_a_builder_is_full_with_the_documents_of_all_tables_and_chunks() -> None:
    builder = DocumentBuilder(most_documents=3)
    builder.start_file(config(), "a.jsonl", "byte")
    full = []
    for row, between in enumerate((builder.text_bytes, builder.take, builder.text_bytes)):
        builder.add(parse_record(row, b'{"text":"a"}'))
        between()
        full.append(builder.is_full())

    assert full == [False, False, True]


def patched(patches: list[Patch], *lines: bytes) -> Chunk:
    builder = DocumentBuilder(patches=patches)
    builder.start_file(config(), "a.jsonl", "byte")
    for row, line in enumerate(lines):
        builder.add(parse_record(row, line))
    return builder.take()


def patch(row: int, line: bytes, text: str) -> Patch:
    return Patch("a.jsonl", row, shown_digest(line), json.dumps({"text": text}))


def test_patches_follow_their_records_in_order_and_count_as_used() -> None:
    patches = [patch(0, b"oops", "first"), patch(2, b"oops", "second"), patch(3, b"gone", "x")]

    chunk = patched(patches, b'{"text":"new"}', b"oops", b'{"text":"a"}', b"oops", b"oops")

    assert chunk.documents["text"].to_list() == ["new", "first", "a", "second"]
    assert chunk.documents["doc_id"][1] == document_id("s", "a.jsonl", 1)
    assert chunk.quarantine["position"].to_list() == ["byte 4"]
    assert (set(chunk.patched), chunk.rows_in) == ({each.name for each in patches[:2]}, 5)


def test_a_record_at_its_own_place_comes_before_equal_ones_that_moved() -> None:
    chunk = patched([patch(2, b"oops", "own")], b"oops", b'{"text":"a"}', b"oops")

    assert chunk.documents["text"].to_list() == ["a", "own"]
    assert chunk.quarantine["position"].to_list() == ["byte 0"]


def test_a_patch_of_a_patch_follows_too() -> None:
    bad = Patch("a.jsonl", 0, shown_digest(b"oops"), "still bad")

    chunk = patched([bad, patch(0, b"still bad", "good")], b'{"text":"new"}', b"oops")

    assert chunk.documents["text"].to_list() == ["new", "good"]
