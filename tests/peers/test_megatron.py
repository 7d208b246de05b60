"""The pair under Megatron Core's own reader and builder."""

from format_folders import about_of, peer, seeded_rows, shard_of, write_shards
from prelude import Path, np, pytest

# its builder, on tensors
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept:DeprecationWarning"
)


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("length", [None, 128])
def test_megatron_reads_and_would_write_the_same(
    length: int | None, dtype: str, tmp_path: Path
) -> None:
    indexed = peer("megatron.core.datasets.indexed_dataset")
    import torch

    about = about_of(dtype, length)
    rows = seeded_rows(30, about)
    write_shards(tmp_path, "megatron", [shard_of(rows, dtype)], about)
    ours = tmp_path / "shard-00000"

    read = indexed.IndexedDataset(str(ours), mmap=True)
    theirs = tmp_path / "theirs"
    number = {"uint16": np.uint16, "uint32": np.int32}[dtype]
    builder = indexed.IndexedDatasetBuilder(f"{theirs}.bin", dtype=number)
    for row in rows:
        builder.add_document(torch.tensor(row, dtype=torch.int64), [len(row)])
    builder.finalize(f"{theirs}.idx")

    assert [read[row].tolist() for row in range(len(read))] == rows
    for suffix in (".bin", ".idx"):
        assert ours.with_suffix(suffix).read_bytes() == theirs.with_suffix(suffix).read_bytes()
