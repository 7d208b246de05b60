"""Hugging Face `datasets` on the Arrow folder and on Parquet."""

from format_folders import about_of, peer, seeded_rows, shard_of, write_shards
from prelude import Any, Path, pytest


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package, which neither asks the network nor writes to the user's cache."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    return peer("datasets")


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("length", [None, 128])
def test_load_from_disk(length: int | None, dtype: str, tmp_path: Path, datasets: Any) -> None:
    about = about_of(dtype, length)
    shards = [seeded_rows(20, about, seed) for seed in range(2)]
    write_shards(tmp_path / "arrow", "arrow", [shard_of(rows, dtype) for rows in shards], about)

    read = datasets.load_from_disk(str(tmp_path / "arrow"))

    assert read["tokens"][:] == shards[0] + shards[1]
    assert read.features["tokens"] == datasets.List(datasets.Value(dtype), length=length or -1)
    assert read.with_format("numpy")[3]["tokens"].tolist() == shards[0][3]


def test_load_parquet(tmp_path: Path, datasets: Any) -> None:
    about = about_of("uint16", 128)
    rows = seeded_rows(20, about)
    write_shards(tmp_path / "parquet", "parquet", [shard_of(rows)], about)

    files = str(tmp_path / "parquet/*.parquet")
    read = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)

    first, *others = read
    assert [row["tokens"] for row in (first, *others)] == rows
    assert first["spans"] == [{"doc_id": "0" * 32, "start": 0, "length": 128}]
