"""A sample of ranges stands for the whole of a source, and reads little of it."""

import gzip

import pyarrow as pa
from isal import igzip
from prelude import Path, given, json, np, pl, pytest, settings, st

from assets.raw.places.sampling import sample_source as sampling
from assets.raw.places.sampling.drawn_blocks import SourceSample, by_stratum, lines_of
from assets.raw.places.sampling.sample_source import end_of_blocks, sample_source
from assets.raw.readers.file_content import content_of_frame
from assets.raw.readers.input_file import InputFile
from resources.settings.full_source import Source

SOURCE = Source(name="s", where=("x",))
DOCUMENTS = 3000


@pytest.fixture(autouse=True)
def low_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sample by the share: the files of these tests are below the floor of a source."""
    monkeypatch.setattr(sampling, "LEAST_SOURCE_BYTES", 128 << 10)


def records(number: int = DOCUMENTS) -> bytes:
    """Lines whose texts have 100 to 2,000 bytes."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(100, 2000, number)
    words = [f"{each:x}" for each in rng.integers(1 << 30, size=400)]
    lines = []
    for number_of, size in enumerate(sizes):
        text = " ".join(rng.choice(words, size // 8))
        lines.append(json.dumps({"text": f"{number_of} {text}"}).encode() + b"\n")
    return b"".join(lines)


def input_file(path: Path, data: bytes, kind: str, compression: str | None = None) -> InputFile:
    path.write_bytes(data)
    return InputFile(str(path), path.name, kind, compression, len(data), "")  # type: ignore[arg-type]


def estimated(sample: SourceSample) -> float:
    """Documents of the source, by the sample."""
    table = sample.table().group_by("block").len()
    drawn = dict(zip(table["block"].to_list(), table["len"].to_list(), strict=True))
    total = 0.0
    for stratum, places in by_stratum(sample):
        spans = sum(sample.blocks[place].span for place in places)
        total += stratum.size * sum(drawn.get(place, 0) for place in places) / spans
    return total


def means(file: InputFile, share: float, draws: int = 12) -> tuple[float, float]:
    samples = [
        sample_source([file], SOURCE, share, np.random.default_rng(seed)) for seed in range(draws)
    ]
    read = max(sample.read_bytes / sample.all_bytes for sample in samples)
    return float(np.mean([estimated(sample) for sample in samples])), read


def test_windows_of_lines_stand_for_the_file(tmp_path: Path) -> None:
    documents, read = means(input_file(tmp_path / "a.jsonl", records(), "jsonl"), 0.1)

    assert documents == pytest.approx(DOCUMENTS, rel=0.1)
    assert read < 0.3


@pytest.mark.parametrize("share", [0.3, 1])
def test_no_line_is_drawn_twice(tmp_path: Path, share: float) -> None:
    file = input_file(tmp_path / "a.jsonl", records(), "jsonl")

    texts = sample_source([file], SOURCE, share, np.random.default_rng(0)).table()["text"]

    assert texts.n_unique() == len(texts) > DOCUMENTS * share / 3


@pytest.mark.parametrize("kind", ["gz", "igzip", "zst"])
def test_the_beginning_of_a_stream_stands_for_it(tmp_path: Path, kind: str) -> None:
    data = records()
    packed = {
        "gz": lambda: gzip.compress(data),
        "igzip": lambda: igzip.compress(data, 1),
        "zst": lambda: pa.compress(data, codec="zstd", asbytes=True),
    }[kind]()
    compression = "zst" if kind == "zst" else "gz"
    file = input_file(tmp_path / f"a.jsonl.{compression}", packed, "jsonl", compression)

    documents, read = means(file, 0.1, draws=1)

    assert documents == pytest.approx(DOCUMENTS, rel=0.15)
    assert read < 0.3


def test_a_stream_of_a_small_source_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = input_file(tmp_path / "a.jsonl.gz", gzip.compress(records()), "jsonl", "gz")
    monkeypatch.setattr(sampling, "LEAST_SOURCE_BYTES", file.bytes)

    sample = sample_source([file], SOURCE, 0.01, np.random.default_rng(0))

    assert (sample.table().height, sample.read_bytes) == (DOCUMENTS, file.bytes)


def test_each_stream_counts_by_the_size_of_its_content(tmp_path: Path) -> None:
    """A small file is read whole, a large one in part: the former has not more weight for that."""
    short = b"".join(json.dumps({"text": f"{n:x}"}).encode() + b"\n" for n in range(2000))
    data = {"a.jsonl.gz": gzip.compress(records()), "b.jsonl.gz": gzip.compress(short)}
    files = [input_file(tmp_path / name, each, "jsonl", "gz") for name, each in data.items()]

    sample = sample_source(files, SOURCE, 0.05, np.random.default_rng(0))

    blocks, drawn = sample.blocks, sample.table().group_by("block").len()
    documents = sum(blocks[place].weight * number for place, number in drawn.iter_rows())
    content = sum(block.weight * block.span for block in blocks)
    assert documents == pytest.approx(DOCUMENTS + 2000, rel=0.15)
    assert content == pytest.approx(len(records()) + len(short), rel=0.1)


def test_row_groups_stand_for_a_table(tmp_path: Path) -> None:
    texts = [json.loads(line)["text"] for line in records().splitlines()]
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": texts}).write_parquet(path, row_group_size=100)
    file = input_file(path, path.read_bytes(), "parquet")

    sample = sample_source([file], SOURCE, 0.05, np.random.default_rng(0))

    assert estimated(sample) == pytest.approx(DOCUMENTS)
    assert sample.read_bytes < file.bytes / 4
    ids = sample.table()["doc_id"]
    assert ids.n_unique() == len(ids)


def test_a_file_without_documents_gives_none(tmp_path: Path) -> None:
    empty = input_file(tmp_path / "a.jsonl", b"", "jsonl")
    blank = input_file(tmp_path / "b.jsonl", b"\n\n\n", "jsonl")

    sample = sample_source([empty, blank], SOURCE, 0.1, np.random.default_rng(0))

    assert sample.table().is_empty()


def test_a_broken_table_is_named(tmp_path: Path) -> None:
    file = input_file(tmp_path / "a.parquet", b"PAR1 no table", "parquet")

    assert sample_source([file], SOURCE, 0.1, np.random.default_rng(0)).unread == ["a.parquet"]


def test_a_file_too_large_to_be_read_whole_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "MOST_BYTES", 10)
    file = input_file(tmp_path / "a.json", b'[{"text": "too long"}]', "json")

    assert sample_source([file], SOURCE, 0.1, np.random.default_rng(0)).unread == ["a.json"]


@settings(max_examples=60)
@given(
    lines=st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"x")), max_size=12),
    width=st.integers(1, 20),
    has_end=st.booleans(),
)
def test_windows_side_by_side_have_every_line_once(
    lines: list[bytes], width: int, has_end: bool
) -> None:
    import io

    data = b"\n".join(lines) + (b"\n" if has_end and lines else b"")
    found = b"".join(
        lines_of(io.BytesIO(data), start, min(start + width, len(data)), 1000)
        for start in range(0, len(data), width)
    )
    whole = data if not data or data.endswith(b"\n") else data + b"\n"
    assert found == whole


def test_the_end_of_whole_blocks_of_zst_is_found() -> None:
    data = pa.compress(records(400), codec="zstd", asbytes=True)

    assert end_of_blocks(data) in (len(data), len(data) - 4)  # behind the checksum, if any
    assert 0 < end_of_blocks(data[: len(data) * 3 // 4]) < len(data) * 3 // 4
    assert content_of_frame(data) == len(records(400))
    assert content_of_frame(b"no frame at all") == end_of_blocks(b"no frame at all") == 0
