"""MDS under Streaming's own reader and writer, where mosaicml-streaming is installed.

It does not share an environment with a current `datasets`, so that CI has an independent reading of
the layout instead (tests/sharded/test_formats.py).
"""

from builders import Build, open_corpus, write_corpus
from format_folders import about_of, seeded_rows, shard_of, write_shards
from prelude import Path, np, pl, pytest

# its reader leaves index.json to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("length", [None, 128])
def test_streaming_reads_and_would_write_the_same(
    length: int | None, dtype: str, tmp_path: Path
) -> None:
    streaming = pytest.importorskip("streaming", exc_type=ImportError)
    about = about_of(dtype, length)
    shards = [seeded_rows(20, about, seed) for seed in range(2)]
    ours, first, theirs = tmp_path / "ours", tmp_path / "first", tmp_path / "theirs"
    write_shards(ours, "mds", [shard_of(rows, dtype) for rows in shards], about)
    write_shards(first, "mds", [shard_of(shards[0], dtype)], about)

    read = streaming.StreamingDataset(
        local=str(ours), shuffle=False, batch_size=1, validate_hash="sha256"
    )
    encoding = f"ndarray:{dtype}" + (f":{length}" if length else "")
    with streaming.MDSWriter(
        out=str(theirs), columns={"tokens": encoding}, hashes=["sha256"], size_limit=None
    ) as writer:
        for row in shards[0]:
            writer.write({"tokens": np.array(row, dtype)})

    assert [read[row]["tokens"].tolist() for row in range(len(read))] == shards[0] + shards[1]
    for name in ("shard.00000.mds", "index.json"):
        assert (first / name).read_bytes() == (theirs / name).read_bytes()


def test_streaming_reads_what_is_held_out(tmp_path: Path, build: Build) -> None:
    streaming = pytest.importorskip("streaming", exc_type=ImportError)
    changes = {
        "buckets": {"mode": "pack", "sequence_length": 64},
        "shards": {"target_bytes": 2048, "formats": ["mds", "parquet"]},
        "holdout": {"share": 0.3},
    }
    corpus = open_corpus(write_corpus(tmp_path, **changes))
    build(corpus)

    rows = {}
    for split in ("", "validation-"):
        folder = corpus.store.partition("sharded", "prose").folder
        local = next(folder.glob(f"{split}mds-*"))
        read = streaming.StreamingDataset(
            local=str(local), shuffle=False, batch_size=1, validate_hash="sha256"
        )
        rows[split] = [read[row]["tokens"].tolist() for row in range(len(read))]
        parquet = next(folder.glob(f"{split}parquet-*")) / "*.parquet"
        assert rows[split] == pl.read_parquet(parquet)["tokens"].to_list()
    assert rows["validation-"] and all(row not in rows[""] for row in rows["validation-"])
