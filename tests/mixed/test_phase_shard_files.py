"""Shards of a phase: causes of a new computation, and the lookup of their rows."""

from dataclasses import replace
from tempfile import TemporaryDirectory

from prelude import Any, NDArray, Path, assert_frame_equal, given, np, pl, pytest, settings, st
from sharded_corpus import PROSE, WEIGHTED, change, corpus_with, shard, write_sharded
from tables import cases

from assets.mixed.asset import mix_phase, plan_mixed
from assets.mixed.mixture_files import PhaseInputs
from assets.mixed.phase_shard_files import (
    index_task,
    mixture_at,
    rows_at,
    shard_set,
    shard_tasks,
    write_index,
)
from assets.mixed.phase_source_files import lengths_of_rows
from assets.sharded.flat_row_files import Segment, open_shard, segments_of
from assets.sharded.formats import FORMATS, ShardSchema
from corpus_loader.mixture import FlatFile, Mixture, MixtureSource, Shard
from corpus_loader.places.local_files import LocalFiles
from corpus_loader.reader import LoaderOptions, Lookup, Reader
from resources.store.store import StoreError
from resources.tasks import Task

PHASE = WEIGHTED | {"formats": ["npy"], "target_bytes": 1024}
SUFFIXES = FORMATS["megatron"].suffixes


def planned(corpus: Any) -> Task[PhaseInputs]:
    """Return the task that mixes the phase `main`."""
    [task] = plan_mixed(corpus, "main").tasks
    return task


def written(phase: Task[PhaseInputs]) -> list[str]:
    """Return the fingerprints of the shards of a phase, and of its index files."""
    if phase.published() is None:
        mix_phase(phase)
    shards = shard_tasks(phase)
    return [task.fingerprint for task in [*shards, index_task(phase, shards)]]


@cases("""
    other
    {"weights": {"prose": 2, "notes": 1}}
    {"tokens": 80}
    {"seed": 1}
    {"batch_samples": 2}
    {"window_shards": 1}
    {"target_bytes": 2048}
    {"formats": ["npy", "arrow"]}
""")
def test_another_phase_is_mixed_and_written_again(tmp_path: Path, other: dict[str, Any]) -> None:
    corpus = corpus_with(tmp_path, PHASE)
    before = planned(corpus)
    after = planned(change(corpus, PHASE | other))

    assert before.fingerprint != after.fingerprint
    assert not set(written(before)) & set(written(after))


@pytest.mark.parametrize(
    "about", [{}, {"tokenizer_fingerprint": "e" * 32}, {"vocab_size": 999}], ids=str
)
def test_other_shards_are_mixed_and_written_again(tmp_path: Path, about: dict[str, Any]) -> None:
    corpus = corpus_with(tmp_path, PHASE | {"weights": {"prose": 1}, "tokens": 40})
    before = planned(corpus)
    was_written = written(before)
    write_sharded(corpus.store, "prose", PROSE if about else [shard(101, [8] * 10)], **about)
    after = planned(corpus)

    assert before.fingerprint != after.fingerprint
    assert not set(was_written) & set(written(after))


def test_other_code_and_lengths_of_rows_write_again_and_no_index_lacks_a_shard(
    tmp_path: Path,
) -> None:
    phase = planned(corpus_with(tmp_path, PHASE))
    mix_phase(phase)
    with pytest.raises(AssertionError, match="part shard-00000 is not published"):
        write_index(index_task(phase, shard_tasks(phase)))

    newer = replace(phase, payload=replace(phase.payload, code_version="next"))
    assert not set(written(phase)) & set(written(newer))

    mixture = mixture_at(phase.published_file("mixture")[0])
    shards = shard_set(phase, mixture)
    assert shards == shard_tasks(phase)[0].payload.shards
    assert shard_set(phase, replace(mixture, sequence_length=None)).data != shards.data


def test_what_decides_no_byte_writes_nothing_again(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, PHASE)
    before = planned(corpus)
    warned = planned(change(corpus, PHASE | {"warn_epochs": 0.5}))
    assert before.fingerprint != warned.fingerprint  # the mixture says it
    assert written(before) == written(warned)

    alone = change(corpus, PHASE | {"weights": {"prose": 1}, "tokens": 40})
    before = planned(alone)
    write_sharded(corpus.store, "notes", [shard(301, [8, 8, 8, 4])])  # of another source
    assert before.fingerprint == planned(alone).fingerprint


def test_one_more_format_keeps_the_folders_of_the_others(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, PHASE)
    phases = [planned(corpus), planned(change(corpus, PHASE | {"formats": ["npy", "arrow"]}))]
    for phase in phases:
        mix_phase(phase)

    assert len({shard_tasks(phase)[0].payload.shards.data for phase in phases}) == 1


def test_shards_cover_a_phase_and_none_is_beyond_the_target(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, PHASE | {"weights": {"prose": 1}, "tokens": 1200})
    phase = planned(corpus)
    mix_phase(phase)

    starts, ends = zip(*(task.payload.positions for task in shard_tasks(phase)), strict=True)
    assert starts == (0, *ends[:-1]) and ends[-1] == 150
    sizes = [(end - start) * 8 * 2 for start, end in zip(starts, ends, strict=True)]
    assert len(sizes) == 3 and max(sizes) <= 1024


def write_flat(root: Path, frames: list[pl.DataFrame], length: int | None) -> list[Shard]:
    """Write flat files of shards; return the shards as a mixture names them."""
    shards = []
    for number, frame in enumerate(frames):
        paths = [root / f"shard-{number}.{suffix}" for suffix in SUFFIXES]
        FORMATS["megatron"].write(paths, frame, ShardSchema("uint16", length, 0, 1000, "f" * 32))
        sizes = [FlatFile(path.stat().st_size, "") for path in paths]
        files = dict(zip(SUFFIXES, sizes, strict=True))
        shards.append(Shard(f"shard-{number}", frame.height, files))
    return shards


def reader_of(folder: Path, shards: list[Shard], length: int | None) -> Reader:
    """Reads the rows of shards that are in a folder."""
    source = MixtureSource("web", sum(each.rows for each in shards), tuple(shards))
    mixture = Mixture(
        phase="main",
        seed=1,
        epoch_samples=source.samples,
        batch_samples=4,
        window_shards=None,
        sequence_length=length,
        token_dtype="uint16",
        tokenizer_fingerprint="f" * 32,
        vocab_size=1000,
        end_of_document_id=0,
        fingerprint="e" * 32,
        sources=(source,),
    )
    return Reader(LocalFiles(folder, False), mixture, 1, LoaderOptions(with_documents=True))


def at(number: NDArray[np.int64], row: NDArray[np.int64]) -> Lookup:
    """The rows of shards by their numbers."""
    return Lookup(row, np.zeros(row.size, np.uint16), number.tolist(), row)


@settings(max_examples=40)
@given(
    lengths=st.lists(st.lists(st.integers(1, 8), min_size=1, max_size=9), min_size=1, max_size=6),
    stored=st.sampled_from([8, None]),
    draws=st.lists(st.integers(0, 10**6), min_size=1, max_size=60),
    max_open=st.integers(1, 9),
)
def test_rows_come_in_the_order_they_are_asked_for(
    lengths: list[list[int]], stored: int | None, draws: list[int], max_open: int
) -> None:
    frames = [shard(100 * (i + 1), each, stored) for i, each in enumerate(lengths)]
    together = pl.concat(frames)
    rows = np.array(draws) % together.height
    edges = np.cumsum([0, *map(len, lengths)])
    number = np.searchsorted(edges, rows, side="right") - 1
    with TemporaryDirectory() as folder:
        shards = write_flat(Path(folder), frames, stored)
        reader = reader_of(Path(folder), shards, stored)
        reader.shards.max_open = max_open
        found = rows_at(reader, at(number, rows - edges[number]))
        assert len(reader.shards.opened) <= max_open
        spans = [lengths_of_rows(Path(folder) / f"{each.path}.spans", each.rows) for each in shards]

    assert_frame_equal(found, together[rows.tolist()])
    assert np.concatenate(spans).tolist() == together["num_tokens"].to_list()


def test_single_rows_are_those_of_the_shard(tmp_path: Path) -> None:
    lengths = [8, 3, 1, 5]
    frame = shard(100, lengths, None)
    write_flat(tmp_path, [frame], None)
    flat = open_shard(tmp_path / "shard-0")

    owners = [row for row, length in enumerate(lengths) for _ in range(length)]
    assert [flat.row_at(offset) for offset in range(17)] == owners
    assert [flat.first_token(row) for row in range(4)] == [0, 8, 11, 12]
    rows = [flat.read_row(row)[0].tolist() for row in range(flat.rows)]
    assert rows == frame["tokens"].to_list()
    for offset in (-1, 17):
        with pytest.raises(StoreError, match="has 17 tokens"):
            flat.row_at(offset)
    for row in (-1, 4):
        with pytest.raises(StoreError, match="has 4 rows"):
            flat.read_row(row)


def test_segments_of_a_document_are_found_in_every_row(tmp_path: Path) -> None:
    frame = pl.concat([shard(100, [8, 3], None), shard(100, [6], None)])
    write_flat(tmp_path, [frame], None)
    expected: dict[str, list[Segment]] = {}
    for row, spans in enumerate(frame["spans"].to_list()):
        position = 0
        for span in spans:
            segment = Segment(row, position, span["start"], span["length"])
            expected.setdefault(span["doc_id"], []).append(segment)
            position += span["length"]

    assert max(map(len, expected.values())) == 2
    stem = tmp_path / "shard-0"
    assert {doc_id: segments_of(stem, 3, doc_id) for doc_id in expected} == expected
    assert segments_of(stem, 3, "f" * 32) == []


def test_damaged_document_lengths_are_named(tmp_path: Path) -> None:
    write_flat(tmp_path, [shard(1, [8, 8])], 8)
    path = tmp_path / "shard-0.spans"
    path.write_bytes(b"x" + path.read_bytes()[1:])

    with pytest.raises(StoreError, match=r"shard-0\.spans is not .* --repair"):
        lengths_of_rows(path, 2)
