"""Arrow files that are mapped, or read, table by table."""

from prelude import Path, assert_frame_equal, pl

from resources.store.mapped_files import MappedTables, map_arrow, read_arrow

TABLE = pl.DataFrame({"doc_id": ["a", "b"], "tokens": [[1, 2], [3]]})


def written(folder: Path, number: int) -> list[Path]:
    """Write the same table to files."""
    paths = [folder / f"{i}.arrow" for i in range(number)]
    for path in paths:
        TABLE.write_ipc(path, compression="uncompressed")
    return paths


def mappings_in(folder: Path) -> int:
    """Count the mappings of this process of files in a folder."""
    return Path("/proc/self/maps").read_text().count(f"{folder}/")


def test_a_file_that_is_read_has_the_columns_of_one_that_is_mapped(tmp_path: Path) -> None:
    (path,) = written(tmp_path, 1)

    mapped, read = (each(path, ["tokens"]) for each in (map_arrow, read_arrow))

    assert_frame_equal(mapped, TABLE.select("tokens"))
    assert_frame_equal(read, mapped)
    assert mappings_in(tmp_path) == 1


def test_no_more_tables_are_mapped_than_are_looked_at(tmp_path: Path) -> None:
    tables = MappedTables(written(tmp_path, 20), ["tokens"])

    seen = [(table.height, mappings_in(tmp_path)) for table in tables]

    assert [height for height, _ in seen] == [2] * 20
    assert max(mapped for _, mapped in seen) <= 2
    assert len(list(tables)) == 20
