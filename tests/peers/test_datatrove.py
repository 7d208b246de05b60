"""The .ds files under datatrove's own dataset and writer."""

from format_folders import about_of, peer, seeded_rows, shard_of, write_shards
from prelude import Path, pytest


@pytest.mark.parametrize(("dtype", "token_bytes"), [("uint16", 2), ("uint32", 4)])
def test_datatrove_reads_and_would_write_the_same(
    dtype: str, token_bytes: int, tmp_path: Path
) -> None:
    dataset, tokenizer = (
        peer("datatrove.utils.dataset"),
        peer("datatrove.pipeline.tokens.tokenizer"),
    )
    about = about_of(dtype, 129)
    shards = [seeded_rows(20, about, seed) for seed in range(2)]
    write_shards(tmp_path / "ours", "datatrove", [shard_of(rows, dtype) for rows in shards], about)

    read = dataset.DatatroveFolderDataset(
        str(tmp_path / "ours"), seq_len=128, token_size=token_bytes, filename_pattern="*.ds"
    )
    theirs = tokenizer.TokenizedFile(
        str(tmp_path / "theirs"),
        "shard-00001.ds",
        tokenizer_name_or_path=about.tokenizer_fingerprint,
        save_final_metadata=True,
        token_size=token_bytes,
    )
    for row in shards[1]:
        theirs.write(row, None)
    theirs.close()

    assert [read[row]["input_ids"].tolist() for row in range(len(read))] == shards[0] + shards[1]
    for suffix in ("ds", "ds.index", "ds.metadata"):
        name = f"shard-00001.{suffix}"
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
