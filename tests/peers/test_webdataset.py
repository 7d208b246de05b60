"""Tar shards under WebDataset's own reader and writer."""

from format_folders import about_of, peer, seeded_rows, shard_of, write_shards
from prelude import Path, np, pytest

# its reader, at the end of a tar
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("length", [None, 128])
def test_webdataset_reads_and_would_write_the_same(
    length: int | None, dtype: str, tmp_path: Path
) -> None:
    wds = peer("webdataset")
    about = about_of(dtype, length)
    shards = [seeded_rows(20, about, seed) for seed in range(2)]
    write_shards(tmp_path, "webdataset", [shard_of(rows, dtype) for rows in shards], about)
    ours = [str(tmp_path / f"shard-{number:05d}.tar") for number in range(2)]

    read = wds.WebDataset(ours, shardshuffle=False).decode()
    with wds.TarWriter(str(tmp_path / "theirs.tar"), mtime=0) as writer:
        for number, row in enumerate(shards[1]):
            writer.write({"__key__": f"00001-{number:08d}", "npy": np.array(row, dtype)})

    assert [sample["npy"].tolist() for sample in read] == shards[0] + shards[1]
    assert Path(ours[1]).read_bytes() == (tmp_path / "theirs.tar").read_bytes()
