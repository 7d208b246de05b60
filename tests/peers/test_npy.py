"""OLMo-core on the bare token files, where it is installed (CI reads them with numpy)."""

from format_folders import about_of, seeded_rows, shard_of, write_shards
from prelude import Path, np, pytest


def test_olmo_reads_rows_and_instances(tmp_path: Path) -> None:
    utils = pytest.importorskip("olmo_core.data.utils", exc_type=ImportError)
    about = about_of("uint16", 128)
    rows = seeded_rows(20, about)
    write_shards(tmp_path, "npy", [shard_of(rows)], about)
    path = tmp_path / "shard-00000.npy"

    places = list(utils.iter_document_indices(path, use_array_if_local=False, dtype=np.uint16))

    assert places == [(128 * row, 128 * row + 128) for row in range(20)]
    read = [utils.load_array_slice(path, start, stop, np.uint16).tolist() for start, stop in places]
    assert read == rows
