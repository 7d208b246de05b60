"""Files behind URLs whose server sends ranges: nothing is copied, each answer is checked."""

import gzip
import io
from email.utils import formatdate
from types import SimpleNamespace

import pyarrow as pa
from builders import Build, open_corpus, published, sentence, write_corpus
from input_files import slices, zst
from prelude import Any, Iterator, Path, json, pl, pytest, time
from range_site import RangeSite, range_site

from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers.input_file import ChangedFileError, InputFile
from assets.raw.readers.open_input import open_input
from assets.raw.readers.read_chunks import byte_spans, plan_slices, read_chunks
from assets.raw.readers.read_tables import read_parquet
from corpus_loader.places import transports
from corpus_loader.places.errors import CorpusError
from resources.errors import InputError
from resources.run_reports import read_report
from resources.settings.sources import SourceConfig

pytestmark = pytest.mark.slow

TEXTS = [sentence(number) for number in range(200)]
LINES = [json.dumps({"text": text}).encode() + b"\n" for text in TEXTS]
BODY = b"".join(LINES)
PARTS = [b"".join(LINES[i : i + 20]) for i in range(0, 200, 20)]
LONG = [json.dumps({"text": f"{n:09d} " * 200}).encode() + b"\n" for n in range(4000)]


def table(column: str = "text") -> bytes:
    written = io.BytesIO()
    frame = pl.DataFrame({column: TEXTS, "other": TEXTS})
    frame.write_parquet(written, row_group_size=20, compression="uncompressed")
    return written.getvalue()


CONTENTS = {
    "a.jsonl": BODY,
    "a.jsonl.gz": gzip.compress(BODY),
    "b.jsonl.gz": b"".join(map(gzip.compress, PARTS)),
    "a.jsonl.zst": b"".join(map(zst, PARTS)),
    "a.json": json.dumps([{"text": text} for text in TEXTS]).encode(),
    "a.csv": "\n".join(["text", *TEXTS]).encode(),
    "a.parquet": table(),
}


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeSite]:
    monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setenv("NETRC", "/dev/null")
    with range_site() as found:
        yield found


def find(base: Path, url: str, **options: object) -> InputFile:
    source = SourceConfig.model_validate({"name": "s", "where": url, **options})
    return find_inputs(source, base, base / "store/_downloads").files[0]


def of_urls(folder: Path, site: RangeSite, *names: str, **changes: Any) -> Any:
    """A corpus of which the source `prose` is on the web."""
    web = {"name": "prose", "where": [site.url(name) for name in names]}
    notes = {"name": "notes", "where": "input/notes/*"}
    return open_corpus(write_corpus(folder, sources=[web, notes], part_bytes=4096, **changes))


def texts(corpus: Any, source: str = "prose") -> list[str]:
    return published(corpus, source)["text"].to_list()


@pytest.mark.parametrize("name", CONTENTS)
def test_every_format_is_read_by_ranges(
    site: RangeSite, tmp_path: Path, build: Build, name: str
) -> None:
    site.files[name] = CONTENTS[name]
    corpus = of_urls(tmp_path, site, name)
    build(corpus, "raw")

    assert texts(corpus) == TEXTS
    assert [path for path in corpus.downloads.iterdir() if path.suffix != ".json"] == []

    num_asked = len(site.asked)
    build(corpus, "raw")
    assert read_report(corpus.store.root, "raw", "prose").parts_computed == 0
    assert len(site.asked) == num_asked + 1  # whether it has changed


@pytest.mark.parametrize("part_bytes", [1 << 20, 200])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet"])
def test_a_file_that_is_stored_encoded_is_decompressed(
    site: RangeSite, tmp_path: Path, name: str, part_bytes: int
) -> None:
    for encoding, packed in (
        ("gzip", gzip.compress(CONTENTS[name])),
        ("zstd", zst(CONTENTS[name])),
    ):
        site.files[name], site.headers[name] = packed, {"Content-Encoding": encoding}
        file = find(tmp_path, site.url(name))
        source = SourceConfig.model_validate({"name": "s", "where": "x"})
        cuts = slices(file, source, part_bytes)
        found = [c for each in cuts for c in read_chunks(file, each, source, part_bytes)]

        assert [text for chunk in found for text in chunk.documents["text"]] == TEXTS
        assert not any(chunk.quarantine.height for chunk in found)


def test_planning_asks_for_one_byte(site: RangeSite, tmp_path: Path) -> None:
    site.files["a.jsonl"] = BODY
    file = find(tmp_path, site.url("a.jsonl"))
    assert site.asked == [("a.jsonl", 0, 1)]
    assert (file.bytes, file.place, file.name) == (len(BODY), site.url("a.jsonl"), file.place)


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_second_change_within_a_second_of_last_modified_is_seen(
    site: RangeSite, tmp_path: Path, seconds: int
) -> None:
    changed = formatdate(time.time() - seconds, usegmt=True)
    site.headers["a.jsonl"] = {"ETag": 'W/"1"', "Last-Modified": changed}
    digests = []
    for letter in (b"a", b"b"):
        site.files["a.jsonl"] = BODY.replace(b"e", letter)
        digests.append(find(tmp_path, site.url("a.jsonl")).digest)

    assert len(set(digests)) == (2 if seconds == 0 else 1)


def test_secrets_are_sent_and_shown_nowhere(
    site: RangeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_PATH", "hunter2")
    monkeypatch.setenv(transports.RETRY_VARIABLE, "0")
    site.files["hunter2/a.jsonl"] = BODY
    file = find(tmp_path, site.url("${SECRET_PATH}/a.jsonl?sig=swordfish"))
    assert open_input(file).read() == BODY
    assert "swordfish" not in repr(file)

    site.refusals = [(503, {})]
    with pytest.raises(CorpusError, match="HTTP 503") as raised:
        open_input(file).read()
    site.refusals = [(403, {})]
    with pytest.raises(CorpusError, match="HTTP 403 Forbidden, without user and pass") as refused:
        open_input(file).read()
    for error in (raised.value, refused.value):
        assert "hunter2" not in str(error) and "swordfish" not in str(error)


def test_cut_and_refused_requests_are_sent_again(site: RangeSite, tmp_path: Path) -> None:
    site.files["a.jsonl"] = b"".join(LONG)
    file = find(tmp_path, site.url("a.jsonl"))
    site.cuts = [1000, 0, 70_000]
    site.refusals = [(503, {}), (429, {"Retry-After": "0"}), (500, {})]
    assert open_input(file).read() == site.files["a.jsonl"]
    assert (site.cuts, site.refusals) == ([], [])


def test_the_pause_that_a_server_asks_for_is_made(
    site: RangeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["a.jsonl"] = BODY
    file = find(tmp_path, site.url("a.jsonl"))
    pauses: list[float] = []
    monkeypatch.setattr(transports, "time", SimpleNamespace(sleep=pauses.append, monotonic=float))
    site.refusals = [(429, {"Retry-After": "7"}), (503, {"Retry-After": "nonsense"})]
    assert open_input(file).read() == BODY
    assert pauses[0] == 7 and pauses[1] < 1


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (b"".join(LONG[::-1]), "has changed between planning and reading"),
        (BODY, rf"has changed .*: {sum(map(len, LONG)):,} bytes then, fewer now\."),
        (b"".join(LONG)[:-1], rf"then, {sum(map(len, LONG)) - 1:,} bytes of ETag"),
        (None, "was removed between planning and reading"),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_named(
    site: RangeSite, tmp_path: Path, now: bytes | None, reason: str
) -> None:
    site.files["a.jsonl"] = b"".join(LONG)
    file = find(tmp_path, site.url("a.jsonl"))
    with open_input(file) as stream:
        assert stream.read(100) == LONG[0][:100]
        del site.files["a.jsonl"]
        if now is not None:
            site.files["a.jsonl"] = now
        with pytest.raises(ChangedFileError, match=reason):
            stream.read()


def test_a_row_group_costs_its_bytes_and_the_end_of_the_file(
    site: RangeSite, tmp_path: Path
) -> None:
    written = io.BytesIO()
    rows = [f"{n:09d} " * 1000 for n in range(3000)]
    frame = pl.DataFrame({"text": rows})
    frame.write_parquet(written, row_group_size=500, compression="uncompressed")
    site.files["a.parquet"] = written.getvalue()
    file = find(tmp_path, site.url("a.parquet"))
    source = SourceConfig.model_validate({"name": "s", "where": "x"})
    cuts = slices(file, source, 4 << 20)
    spans = byte_spans(file, cuts[2])
    site.asked.clear()

    [chunk] = read_chunks(file, cuts[2], source, 4 << 20)

    assert chunk.documents["text"].to_list() == rows[1000:1500]
    needed = sum(stop - start for start, stop in spans)
    assert needed < site.num_bytes < needed + 100_000 < file.bytes / 4


def test_a_large_row_group_is_fetched_in_pieces_and_once(
    site: RangeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.raw.readers.read_tables.WINDOW_BYTES", 1 << 20)
    written = io.BytesIO()
    rows = [f"{n:09d} " * 1000 for n in range(800)]
    frame = pl.DataFrame({"text": rows, "again": rows})
    frame.write_parquet(written, compression="uncompressed", data_page_size=1 << 16)
    site.files["a.parquet"] = written.getvalue()
    file = find(tmp_path, site.url("a.parquet"))
    source = SourceConfig.model_validate({"name": "s", "where": "x", "columns": ["text"]})
    [cut] = slices(file, source, 1 << 20)
    site.asked.clear()

    parts = list(read_chunks(file, cut, source, 1 << 20))

    assert cut.unit == "row_group"
    assert [text for each in parts for text in each.documents["text"]] == rows
    assert len(parts) == 8
    assert max(stop - start for _, start, stop in site.asked) < 2 << 20
    assert 8_000_000 < site.num_bytes < 8_500_000


def test_arrow_is_fetched_in_windows(site: RangeSite, tmp_path: Path) -> None:
    rows = [f"{n:09d} " * 1000 for n in range(800)]
    sink = io.BytesIO()
    table = pa.table({"text": rows})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, 100)
    site.files["a.arrow"] = sink.getvalue()
    file = find(tmp_path, site.url("a.arrow"))
    source = SourceConfig.model_validate({"name": "s", "where": "x"})
    [cut] = slices(file, source, 1 << 20)
    site.asked.clear()

    parts = list(read_chunks(file, cut, source, 1 << 20))

    assert [text for each in parts for text in each.documents["text"]] == rows
    assert len(site.asked) < 12


def test_a_slice_of_a_plain_file_costs_its_bytes(site: RangeSite, tmp_path: Path) -> None:
    site.files["a.jsonl"] = b"".join(LONG) * 3
    file = find(tmp_path, site.url("a.jsonl"))
    piece = plan_slices(file, 4 << 20)[2]
    site.asked.clear()

    source = SourceConfig.model_validate({"name": "s", "where": "x"})
    [chunk] = read_chunks(file, piece, source, 4 << 20)

    assert chunk.documents.height == pytest.approx((4 << 20) / len(LONG[0]), abs=2)
    assert site.num_bytes < (4 << 20) + 200_000


def test_a_source_that_is_refused_while_it_is_read_fails_alone(
    site: RangeSite, tmp_path: Path, build: Build, dagster_build: Build
) -> None:
    site.files["a.jsonl"] = BODY
    corpus = of_urls(tmp_path, site, "a.jsonl")
    site.refusals = [(403, {})] * 100
    result = dagster_build(corpus, "raw", raise_on_error=False)

    assert not result.success
    assert corpus.store.partition("raw", "notes").newest_manifest() is not None
    assert corpus.store.partition("raw", "prose").newest_manifest() is None

    site.refusals.clear()
    build(corpus, "raw")
    assert texts(corpus) == TEXTS


def test_a_file_above_the_limit_is_refused_by_planning(site: RangeSite, tmp_path: Path) -> None:
    site.files["a.jsonl"] = BODY
    with pytest.raises(InputError, match=f"the server has {len(BODY):,} bytes, over 1,000"):
        find(tmp_path, site.url("a.jsonl"), max_download_bytes=1000)


def test_an_empty_file_is_no_error(site: RangeSite, tmp_path: Path) -> None:
    site.files["a.jsonl"] = b""
    assert open_input(find(tmp_path, site.url("a.jsonl"))).read() == b""


def test_arrow_passes_errors_of_requests_on(site: RangeSite, tmp_path: Path) -> None:
    """They are not taken for damage of the file."""
    site.files["a.parquet"] = table()
    file = find(tmp_path, site.url("a.parquet"))
    del site.files["a.parquet"]
    source = SourceConfig.model_validate({"name": "s", "where": "x"})
    with pytest.raises(ChangedFileError):
        list(read_parquet(file, source))


def test_requests_keep_the_pace_of_their_source(
    site: RangeSite, tmp_path: Path, dagster_home: Path
) -> None:
    site.files["a.jsonl"] = b"".join(LONG)
    file = find(tmp_path, site.url("a.jsonl"), requests_per_second=20)
    site.times.clear()
    assert open_input(file).read() == site.files["a.jsonl"]
    assert len(site.times) >= 4
    # 50 ms each, but one can be late and the next on time.
    assert site.times[-1] - site.times[0] > (len(site.times) - 1) * 0.05 / 2
    assert [*dagster_home.glob("tokenmill_hosts/*")]


def test_a_size_cap_stops_at_the_same_document_and_stops_the_requests(
    site: RangeSite, tmp_path: Path, build: Build
) -> None:
    for number in range(40):
        site.files[f"{number:02d}.jsonl"] = b"".join(LONG[number * 100 : number * 100 + 100])
    urls = [site.url(name) for name in sorted(site.files)]
    capped = {"name": "prose", "where": urls, "max_text_bytes": 500_000}
    notes = {"name": "notes", "where": "input/notes/*"}
    found = []
    for folder in ("one", "two"):
        engine = {"kind": "in_process", "workers": 1 if folder == "one" else 2}
        site.asked.clear()
        corpus = open_corpus(
            write_corpus(
                tmp_path / folder, sources=[capped, notes], part_bytes=1 << 20, engine=engine
            )
        )
        build(corpus, "raw")
        found.append(texts(corpus))
        read = {name for name, start, stop in site.asked if stop - start > 1}
        assert len(read) < 25
    assert found[0] == found[1] and 490_000 < sum(map(len, found[0])) <= 500_000
