"""Tables of the store are compressed as `compression` says; their content is the same."""

import pyarrow.parquet as pq
from prelude import Any, Path, pl, pytest

from resources.store.records import Compression, fingerprint_of
from resources.tasks import TaskMaker
from tests.builders import open_corpus, write_corpus

ROWS = pl.DataFrame({"text": ["the river " * 200, "the bridge " * 300]})


def make_task(folder: Path, compression: Compression) -> Any:
    """Make the task of one part."""
    maker = TaskMaker(folder, "raw", "7", "web", compression)
    return maker.task("part", ["made of"], None, work_bytes=0)


@pytest.mark.parametrize(("compression", "codec"), [("zstd", "ZSTD"), ("lz4", "LZ4"), ("none", "")])
def test_a_table_is_written_as_the_setting_says(
    tmp_path: Path, compression: Compression, codec: str
) -> None:
    task = make_task(tmp_path, compression)
    writer = task.sibling("other", task.fingerprint, None, work_bytes=0).writer()
    writer.write_parquet("documents", ROWS)
    [(path, record)] = writer.pending
    assert pl.read_parquet(path).equals(ROWS)
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert column.compression.startswith(codec or "UNCOMPRESSED")
    assert record.rows == ROWS.height


def test_only_another_than_the_default_is_in_fingerprints(tmp_path: Path) -> None:
    assert make_task(tmp_path, "zstd").fingerprint == fingerprint_of("raw", "7", "made of")
    assert make_task(tmp_path, "lz4").fingerprint == fingerprint_of("raw", "7", "made of", "lz4")


def test_a_change_of_it_makes_every_stage_stale(tmp_path: Path) -> None:
    from assets.stages import STAGES

    default = open_corpus(write_corpus(tmp_path / "default")).settings
    changed = open_corpus(write_corpus(tmp_path / "changed", compression="none")).settings
    assert changed.compression == "none"
    assert not any(s.version_under(default) == s.version_under(changed) for s in STAGES)
