"""Chunks under litdata's own dataset and writer."""

from format_folders import about_of, peer, seeded_rows, shard_of, write_shards
from prelude import Path, json, np, pytest


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("length", [None, 128])
def test_litdata_reads_and_would_write_the_same(
    length: int | None, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITDATA_DISABLE_VERSION_CHECK", "1")
    litdata, writer = peer("litdata"), peer("litdata.streaming.writer")
    about = about_of(dtype, length)
    shards = [seeded_rows(20, about, seed) for seed in range(2)]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_shards(ours, "litdata", [shard_of(rows, dtype) for rows in shards], about)

    loader = litdata.TokensLoader(block_size=length) if length else None
    read = litdata.StreamingDataset(str(ours), item_loader=loader, shuffle=False)
    own = writer.BinaryWriter(str(theirs), chunk_bytes="1GB", item_loader=loader)
    for number, row in enumerate(shards[0]):
        own[number] = np.array(row, dtype)
    own.done()
    own.merge()

    assert [read[row].tolist() for row in range(len(read))] == shards[0] + shards[1]
    assert (ours / "chunk-0-0.bin").read_bytes() == (theirs / "chunk-0-0.bin").read_bytes()
    index, expected = (json.loads((each / "index.json").read_bytes()) for each in (ours, theirs))
    assert index["chunks"][0] == expected["chunks"][0]
    assert set(index) == set(expected)
    sizes = {"chunk_bytes": None, "chunk_size": 20}  # how a writer was asked to cut
    assert index["config"] == expected["config"] | sizes
