"""Batches of one bucket, end to end: built, mixed, read by ranks and traced."""

import struct
from collections.abc import Iterable
from itertools import islice, pairwise

from builders import Build, open_corpus, write_corpus
from prelude import Any, json, np, pytest

from assets.stages import used_stages
from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.batch import Batch
from corpus_loader.mixture import bucket_lengths
from pipeline_defs.commands.main import main

BLOCK = 6  # steps of 1, 2 and 3 ranks divide it
DECOMPOSE = {"mode": "decompose", "sequence_length": 128, "min_length": 16}
PHASE = {
    "name": "main",
    "weights": {"prose": 0.75, "notes": 0.25},
    "one_epoch_of": "prose",
    "batch_samples": BLOCK,
    "one_bucket_batches": True,
    "formats": ["mds"],
    "target_bytes": 4096,
}
CORPORA: dict[str, dict[str, Any]] = {
    "decompose": {"buckets": DECOMPOSE, "phases": [PHASE]},
    "buckets": {"buckets": {"mode": "buckets", "edges": [40, 80, 160]}, "phases": [PHASE]},
    "classes": {
        "buckets": DECOMPOSE | {"classes": {"score": "meta.n", "limits": [10, 30]}},
        "phases": [PHASE | {"upsample": [[10, 0], [30, 1], [40, 3]]}],
    },
}


@pytest.fixture(scope="module", params=CORPORA)
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, build: Build
) -> Any:
    """A corpus with sequences of several lengths, and a phase of one-bucket batches."""
    changes = CORPORA[request.param] | {"shards": {"formats": ["megatron"], "target_bytes": 1024}}
    corpus = open_corpus(write_corpus(tmp_path_factory.mktemp(request.param), **changes))
    with pytest.MonkeyPatch.context() as home:
        home.setenv("DAGSTER_HOME", str(tmp_path_factory.mktemp("dagster")))
        build(corpus, *[name for name in used_stages(corpus.settings) if name != "mixed"])
        build(corpus, "mixed")
    return corpus


def rank_of(corpus: Any, rank: int = 0, world: int = 1, step: int = BLOCK) -> CorpusLoader:
    """One of the ranks whose steps are of `step` samples together; every sample, once."""
    options = LoaderOptions(drop_last=False, pad_last=False)
    return CorpusLoader(corpus.store.root, "main", rank, world, step // world, options=options)


def buckets_of(loader: CorpusLoader, positions: np.ndarray[Any, Any]) -> list[str]:
    """The bucket of each sample, as `sharded` named it for the shard that it is read from."""
    shards = loader.reader.look_up(positions).shards
    return [bucket_lengths(loader.reader.shards.shards[shard]) for shard in shards]


def whole_positions(loader: CorpusLoader) -> int:
    """Samples of the phase that are in whole blocks of one bucket, counted from its shards."""
    names = buckets_of(loader, np.arange(loader.mixture.epoch_samples))
    return sum(names.count(name) // BLOCK * BLOCK for name in set(names))


def test_batches_are_of_one_bucket_with_any_number_of_ranks(built: Any) -> None:
    whole = whole_positions(rank_of(built))
    lengths = set()
    for world in (1, 2, 3):
        ranks = [rank_of(built, rank, world) for rank in range(world)]
        seen: list[int] = []
        for step in zip(*ranks, strict=True):
            positions = np.concatenate([batch.positions[~batch.is_repeated] for batch in step])
            names = set(buckets_of(ranks[0], positions))
            assert len(names) == 1 or positions.max() >= whole
            if built.settings.buckets.mode == "decompose":
                stored = {length for batch in step for length in batch.lengths.tolist()}
                assert {str(length) for length in stored} == names
            lengths |= names
            seen += positions.tolist()
        assert sorted(seen) == list(range(ranks[0].mixture.epoch_samples))
    assert len(lengths) >= 3
    assert whole > 3 * BLOCK


def test_every_row_of_a_bucket_is_drawn_before_one_is_repeated(built: Any) -> None:
    loader = rank_of(built)
    samples = loader.reader.order.samples(np.arange(2 * loader.mixture.epoch_samples))
    for number, source in enumerate(loader.mixture.sources):
        drawn = np.bincount(samples.row[samples.source == number], minlength=source.rows)
        assert drawn.sum() == 2 * source.samples
        names = np.repeat(
            [bucket_lengths(shard) for shard in source.shards],
            [shard.live_rows for shard in source.shards],
        )
        for name in set(names.tolist()):
            assert np.ptp(drawn[names == name]) <= 1


def rows(batches: Iterable[Batch]) -> list[tuple[int, list[int]]]:
    """(position, tokens) of all samples; without padding, and what fills up the last step."""
    return [
        (int(batch.positions[row]), batch.tokens[row, : batch.lengths[row]].tolist())
        for batch in batches
        for row in np.flatnonzero(~batch.is_repeated)
    ]


def test_a_run_that_changes_its_ranks_sees_what_one_rank_sees(built: Any) -> None:
    expected = rows(rank_of(built))
    state, seen = None, []
    changes = [(1, 2, 2), (3, 6, 3), (2, 2, 1), (1, 6, 2), (1, 3, 1), (2, 6, 2), (3, 6, 10_000)]
    whole = whole_positions(rank_of(built))
    for world, samples, steps in changes:
        ranks = [rank_of(built, rank, world, samples) for rank in range(world)]
        for loader in ranks:
            if state is not None:
                loader.load_state_dict(state)
        for step in islice(zip(*ranks, strict=True), steps):
            found = sorted(rows(step))
            positions = np.array([position for position, _ in found])
            assert len(set(buckets_of(ranks[0], positions))) == 1 or positions.max() >= whole
            seen += found
        state = ranks[0].state_dict()

    assert seen == expected


def test_shards_of_the_phase_have_the_samples_in_the_same_order(built: Any) -> None:
    [folder] = (built.store.root / "mixed/main").glob("mds-*")
    found = []
    for shard in json.loads((folder / "index.json").read_bytes())["shards"]:
        data = (folder / shard["raw_data"]["basename"]).read_bytes()
        (count,) = struct.unpack_from("<I", data)
        for start, stop in pairwise(struct.unpack_from(f"<{count + 1}I", data, 4)):
            first = start + 5 + (1 << (data[start + 4] & 3))  # behind the size and the shape
            found.append(np.frombuffer(data[first:stop], "<u2").tolist())

    assert found == [tokens for _, tokens in rows(rank_of(built))]


def test_trace_names_the_documents_of_a_sample(
    built: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(built.store.root.parent / "pipeline.yaml"))
    options = LoaderOptions(with_documents=True)
    loader = CorpusLoader(built.store.root, "main", batch_size=1, options=options)
    batches = list(loader)
    for number in (0, BLOCK, len(batches) - 1):
        assert main(["trace", "--phase", "main", "--sample", str(number), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        documents = batches[number].documents
        assert documents is not None
        ids = [bytes(each).hex() for each in documents.doc_ids if each.any()]
        assert [document["doc_id"] for document in found["documents"]] == ids
        assert loader.sources[batches[number].sources[0]].startswith(found["source"])
