"""Phases over shards with removed rows: their counts, their order, their shards, their files."""

from builders import Build, open_corpus, write_corpus
from loader_corpus import every_sample
from msgspec import structs
from prelude import Any, Path, hashlib, json, np, pl, pytest
from sharded_corpus import PROSE, WEIGHTED, corpus_with, remove_rows, shard, write_sharded

from assets.mixed.asset import plan_mixed
from assets.mixed.mixture_files import mixture_of
from assets.mixed.phase_source_files import (
    own_start,
    phase_source,
    row_lengths,
    source_order,
    source_rows,
)
from assets.sharded.pinned_shards import pinned_places
from assets.sharded.shard_files import files_of, shard_name
from corpus_loader.mixture import mixture_json
from resources.settings.phases import PhaseConfig
from resources.store.records import DamagedFileError, Stats, to_json
from resources.store.store import StoreError

FIRST, SECOND = shard_name(0), shard_name(1)
ALL_OF_IT = {"weighting": "natural", "batch_samples": 4}


def mixture(corpus: Any) -> dict[str, Any]:
    """Return the mixture that `mixed` would write for the phase `main`."""
    [task] = plan_mixed(corpus, "main").tasks
    content = to_json(mixture_json(mixture_of(task.root, task.payload)))
    return json.loads(content)  # type: ignore[no-any-return]


def test_a_mixture_without_removed_rows_has_the_bytes_that_it_always_had(tmp_path: Path) -> None:
    [task] = plan_mixed(corpus_with(tmp_path, WEIGHTED), "main").tasks
    content = to_json(mixture_json(mixture_of(task.root, task.payload)))

    digest = "e6eaa72c0bac01ee8735bad39e6b1b2a4f9dfe1beae09e07df39fe8462024e76"
    assert hashlib.sha256(content).hexdigest() == digest


def test_live_rows_and_tokens_alone_are_counted(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, ALL_OF_IT)
    remove_rows(corpus.store, "prose", {FIRST: [1, 4], SECOND: [0]})
    remove_rows(corpus.store, "notes", {FIRST: [3]})

    found = mixture(corpus)

    prose, notes = found["sources"]
    assert found["version"] == 2 and found["epoch_samples"] == 7 + 3
    assert (prose["rows"], prose["samples"], prose["available_tokens"]) == (7, 7, 56)
    assert (notes["rows"], notes["samples"], notes["available_tokens"]) == (3, 3, 24)
    counts = ("rows", "tokens", "removed", "removed_from")
    shards = [[each[key] for key in counts] for each in prose["shards"]]
    assert shards == [[6, 32, 2, 0], [4, 24, 1, 2]]
    path = corpus.store.root / prose["removed"]["path"]
    assert np.fromfile(path, "<u4").tolist() == [1, 4, 0]
    assert prose["removed"]["bytes"] == path.stat().st_size


def test_a_phase_of_one_bucket_takes_its_slice_of_the_removed_rows(
    tmp_path: Path, build: Build
) -> None:
    config = {"mode": "decompose", "sequence_length": 8, "min_length": 4}
    phase = ALL_OF_IT | {"buckets": ["8"], "sources": ["prose"]}
    corpus_with(tmp_path, phase)
    write_corpus(tmp_path, buckets=config, phases=[{"name": "main"} | phase])
    corpus = open_corpus(tmp_path / "pipeline.yaml")
    two_buckets(corpus)
    build(corpus, "mixed")
    before = mixture(corpus)
    remove_rows(corpus.store, "prose", {FIRST: [1, 2]})
    assert mixture(corpus) == before  # of a bucket that is not drawn

    remove_rows(corpus.store, "prose", {FIRST: [1, 2], SECOND: [0, 3]})
    found = mixture(corpus)
    build(corpus, "mixed")

    [only] = found["sources"][0]["shards"]
    assert (only["removed"], only["removed_from"]) == (2, 2)
    assert found["fingerprint"] != before["fingerprint"]
    assert drawn(corpus) == {201, 202}


def two_buckets(corpus: Any) -> None:
    """Give `prose` a shard of each of two buckets."""
    write_sharded(corpus.store, "prose", [shard(100, [4] * 4, 4)], bucket="4")
    short = corpus.store.newest("sharded", "prose")
    write_sharded(corpus.store, "prose", [shard(200, [8] * 4)], bucket="8")
    long = corpus.store.newest("sharded", "prose")
    parts = (short.parts[0], structs.replace(long.parts[0], name=SECOND), long.parts[-1])
    corpus.store.partition("sharded", "prose").commit(structs.replace(long, parts=parts))


def test_other_removed_rows_are_another_mixture(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, ALL_OF_IT)
    fingerprints = set()
    for rows in ([1], [2], [1, 2]):
        remove_rows(corpus.store, "prose", {SECOND: rows})
        fingerprints.add(mixture(corpus)["fingerprint"])

    assert len(fingerprints) == 3


def drawn(corpus: Any) -> set[int]:
    """First tokens of the samples of an epoch."""
    loader = every_sample(corpus.store.root, "main")
    return {int(row[0]) for batch in loader for row in batch.tokens}


@pytest.mark.parametrize("formats", [("megatron",), ("parquet",)])
def test_lengths_are_those_of_live_rows(tmp_path: Path, formats: tuple[str, ...]) -> None:
    corpus = corpus_with(tmp_path, {"budgets": {"notes": 17}})
    lengths = [[3, 5], [9, 2, 7], [4]]
    shards = [shard(100 * number, each, None) for number, each in enumerate(lengths, 3)]
    write_sharded(corpus.store, "notes", shards, bucket="0-128", formats=formats)
    remove_rows(corpus.store, "notes", {FIRST: [0], SECOND: [0, 2], shard_name(2): [0]})
    source = phase_source(corpus.store.newest("sharded", "notes"), corpus.settings.phase("main"))

    assert row_lengths(corpus.store.root, source).tolist() == [5, 2]
    for seed in range(8):
        config = PhaseConfig(name="main", weighting="natural", seed=seed)
        start = own_start(config)
        row = int(source_order(config, source, start.seed).rows([0])[0][0])
        assert source_rows(corpus.store.root, config, source, start).first == [5, 2][row]
    [notes] = mixture(corpus)["sources"]
    assert (notes["samples"], notes["realised_tokens"], notes["available_tokens"]) == (5, 16, 7)


def test_the_order_is_that_of_shards_without_these_rows(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with(tmp_path / "one", ALL_OF_IT)
    remove_rows(corpus.store, "prose", {FIRST: [1, 4], SECOND: [0]})
    other = corpus_with(tmp_path / "other", ALL_OF_IT)
    live = [PROSE[0][[0, 2, 3, 5]], PROSE[1][[1, 2, 3]]]
    write_sharded(other.store, "prose", live)
    build(corpus, "mixed")
    build(other, "mixed")

    pair = [every_sample(each.store.root, "main") for each in (corpus, other)]

    tokens = [np.concatenate([batch.tokens for batch in loader]) for loader in pair]
    assert np.array_equal(*tokens)
    differing = ("fingerprint", "sources", "version")
    one, two = mixture(corpus), mixture(other)
    assert {key for key in one if one[key] != two[key]} <= {*differing}


def test_shards_of_a_phase_skip_removed_rows(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with(tmp_path, ALL_OF_IT | {"formats": ["parquet"]})
    remove_rows(corpus.store, "prose", {FIRST: [1, 4], SECOND: [0]})
    build(corpus, "mixed")

    manifest = corpus.store.newest("mixed", "main")
    files = [file for part in manifest.parts for file in files_of(part, "parquet")]
    paths = [corpus.store.path_of(manifest, file) for file in files if file.rows]
    written = pl.concat([pl.read_parquet(path) for path in paths])["tokens"].list.first().to_list()
    loader = every_sample(corpus.store.root, "main")
    in_order = [int(row[0]) for batch in loader for row in batch.tokens]
    assert written == in_order
    assert sorted(written) == [100, 102, 103, 105, 201, 202, 203, 300, 301, 302, 303]


def test_a_list_of_removed_rows_that_is_damaged_or_not_counted_is_refused(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, ALL_OF_IT)
    remove_rows(corpus.store, "prose", {FIRST: [1, 4]})
    manifest = corpus.store.newest("sharded", "prose")
    parts = (*manifest.parts[:-1], structs.replace(manifest.parts[-1], stats=Stats()))
    with pytest.raises(StoreError, match=r"has 8 bytes, but its manifest names 0 removed rows"):
        phase_source(structs.replace(manifest, parts=parts), corpus.settings.phase("main"))

    [path] = (corpus.store.root / "sharded/prose").glob("removed-*.rows")
    path.write_bytes(b"\x02" + path.read_bytes()[1:])
    with pytest.raises(DamagedFileError, match=r"removed-.*\.rows changed since it was published"):
        mixture(corpus)


def test_the_list_of_a_kept_mixture_stays_and_is_verified(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with(tmp_path, ALL_OF_IT)
    for rows in ([1], [1, 2]):
        remove_rows(corpus.store, "prose", {FIRST: rows})
        build(corpus, "mixed")
    partition = corpus.store.partition("sharded", "prose")
    listed = set(partition.folder.glob("removed-*.rows"))
    assert len(listed) == 2 and listed < pinned_places(partition)
    for _ in range(4):
        write_sharded(corpus.store, "prose", PROSE)

    partition.collect_garbage(1, pinned_places)

    assert set(partition.folder.glob("removed-*.rows")) == listed
    older = json.loads(next((corpus.store.root / "mixed/main").glob("*.json")).read_text())
    assert {path.name for path in listed} >= {Path(older["sources"][0]["removed"]["path"]).name}
