"""JSON lines by the compiled reader are those of the careful decoder, to the byte."""

import gzip
from concurrent.futures import ThreadPoolExecutor

from input_files import chunks, write
from prelude import Path, example, given, json, pytest, settings, st

from assets.raw.readers import plain_lines, read_chunks
from assets.raw.readers.documents import Chunk
from assets.raw.readers.read_lines import LineRun
from resources.settings.sources import SourceConfig

SETTINGS: list[dict[str, object]] = [
    {},
    {"id_field": "id"},
    {"lang_field": "kind", "license": "MIT", "language": "de", "max_record_bytes": 60},
    {"text_field": "body", "id_field": "url"},
    {"text_field": "a\\nb"},
    {"text_field": "b.c", "id_field": "meta.id"},
    {"field_filter": {"kind": ["x"]}},
]
NAMES = ["text", "id", "url", "lang", "license", "kind", "meta", "body", "é", "a\\nb", ""]
LINES = [
    b"",
    b" \t\r",
    b"\x0b",
    b"[]",
    b"{}",
    b"null",
    b'{"text":"a"',
    b'{"text":"a"}}',
    b'{"text":"a"} x',
    b'{"text":"a",}',
    b'{"text":"a","b":[1,]}',
    b'{"text":"a","b":[,1]}',
    b'{"text":"a","b":{"c":1,}}',
    b'{"text":"a" "b":1}',
    b'{"text":"a","text":"b"}',
    b'{"text":"a","t\\u0065xt":"b"}',
    b'{"text":"a","b":{"c":1,"c":2,"d":3}}',
    b'{"text":"a","b":{"c":1,"\\u0063":2}}',
    b'{"text":"a","b":[{"c":1},{"c":2}],"c":{}}',
    b'{"text":"a","b":' + b"[" * 70 + b"]" * 70 + b"}",
    b'{"text":"a","b":' + b"[" * 300 + b"]" * 300 + b"}",
    b'{"text":"\\ud800"}',
    b'{"text":"\\udc00\\ud800"}',
    b'{"text":"\\ud83d\\ude00 \\u00e9\\u0000\\/\\b\\f"}',
    b'{"text":"\\ud83d\\u0041"}',
    b'{"text":"\\u12"}',
    b'{"text":"\\x41"}',
    b'{"text":"a\\',
    b'{"text":"a","b":"\\ud800"}',
    b'{"text":"a","b":"\\u00e9\\/\\u0001\\n\\b\\f"}',
    b'{"text":"a\tb"}',
    b'{"text":"a","b":"\x01"}',
    b'{"text":"\xff"}',
    b'{"text":"\xed\xa0\x80"}',
    b'{"text":"a","b":"\xc3"}',
    b'{"text":NaN}',
    b'{"text":"a","b":NaN}',
    b'{"text":"a","b":Infinity}',
    b'{"text":"a","b":1e999}',
    b'{"text":"a","b":123456789012345678901234567890}',
    b'{"text":"a","b":1.0,"c":-0,"d":-0.0,"e":1.10,"f":1e5,"g":0.00001,"h":0.8414709848078965}',
    b'{"text":"a","b":01}',
    b'{"text":"a","b":1.}',
    b'{"text":"a","b":.5}',
    b'{"text":"a","b":+1}',
    b'{"text":"a","b":-}',
    b'{"text":"a","b":tru}',
    b'{"text":"a","b":trueish}',
    b'{"text":"a","id":1}',
    b'{"text":"a","id":"1"}',
    b'{"text":"a","id":-0}',
    b'{"text":"a","id":1.5}',
    b'{"text":"a","id":true}',
    b'{"text":"a","id":""}',
    b'{"text":"a","url":"","lang":"","license":""}',
    b'{"text":"","url":1,"lang":[],"license":{}}',
    b'{ "text" : "a" , "b" : [ 1 , { "c" : null } ] }\r',
    b'\xef\xbb\xbf{"text":"a"}',
    b'{"text":null}',
    b'{"text":7}',
    b'{"id":1}',
    b'{"text":"' + b"x" * 70 + b'"}',
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(-1000, 1000, places=4).map(float)
    | st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def encoded(draw: st.DrawFn) -> bytes:
    """A record as some program writes it, at times with a byte of it changed."""
    record = draw(st.dictionaries(st.sampled_from(NAMES), values, max_size=6))
    record |= draw(st.sampled_from([{}, {"text": "a"}, {"text": "é\n\"'\\", "body": ""}]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\r: ")]))
    text = json.dumps(record, ensure_ascii=draw(st.booleans()), separators=separators)
    line = text.encode("utf-8", "surrogatepass").replace(b"\n", b"")
    if draw(st.integers(0, 3)) == 0 and line:
        at = draw(st.integers(0, len(line) - 1))
        line = line[:at] + draw(st.binary(max_size=2)) + line[at + draw(st.integers(0, 2)) :]
    return line


def outcome(found: list[Chunk]) -> list[object]:
    return [
        (c.documents.to_dict(as_series=False), c.quarantine.rows(), c.rows_in, c.skipped_by_filter)
        for c in found
    ]


def assert_same_by_either_reader(
    folder: Path, data: bytes, part_bytes: int, options: dict[str, object]
) -> None:
    files = [write(folder, "a.jsonl", data), write(folder, "a.jsonl.gz", gzip.compress(data, 1))]
    for file in files:
        careful = chunks(file, part_bytes, **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plain_lines, "LEAST_BYTES", 0)
            patch.setattr(read_chunks, "LEAST_BYTES", 0)
            plain = chunks(file, part_bytes, **options)

        assert outcome(plain) == outcome(careful)
        assert [c.documents.schema for c in plain] == [c.documents.schema for c in careful]


@settings(max_examples=30)
@given(
    lines=st.lists(encoded() | st.sampled_from(LINES), max_size=8),
    part_bytes=st.sampled_from([100, 300, 10_000]),
    options=st.sampled_from(SETTINGS),
    is_ended=st.booleans(),
)
@example(LINES, 10_000, {}, True)
@example(LINES, 10_000, {"id_field": "id"}, True)
@example(LINES * 2, 500, {"id_field": "id"}, False)
def test_both_readers_give_the_same_documents_and_errors(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    part_bytes: int,
    options: dict[str, object],
    is_ended: bool,
) -> None:
    data = b"\n".join(lines) + b"\n" * is_ended

    assert_same_by_either_reader(tmp_path_factory.mktemp("d"), data, part_bytes, options)


@pytest.mark.parametrize("line", LINES)
def test_a_line_alone_and_among_others_has_one_outcome(tmp_path: Path, line: bytes) -> None:
    among = b'{"text":"before"}\n' + line + b'\n{"text":"after"}'

    assert_same_by_either_reader(tmp_path, line, 10_000, {})
    assert_same_by_either_reader(tmp_path, among, 10_000, {"id_field": "id"})


def test_threads_side_by_side_and_after_one_another_share_buffers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plain_lines, "_idle", [])
    source = SourceConfig(name="s", where="x")

    def texts(word: str) -> list[str]:
        line = json.dumps({"text": word * 100}).encode() + b"\n"
        return plain_lines.split_run(LineRun(0, line * 2000), source)[1]["text"].to_list()

    for _ in range(2):
        with ThreadPoolExecutor(4) as threads:
            found = [*threads.map(texts, "abcd" * 8)]
        assert found == [[word * 100] * 2000 for word in "abcd" * 8]

    assert 1 <= len(plain_lines._idle) <= 4
