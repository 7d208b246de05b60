"""Members of components: known by their whole digest, each of the generation of its row."""

from prelude import Path, np, pl

from assets.deduped.clusters.candidate_files import generations_of, known_components, read_texts
from assets.deduped.index.ledger import LedgerEntry


def test_a_component_is_known_by_both_halves_of_its_digest() -> None:
    now = np.array([3, 7], np.uint64), np.array([[1, 2], [5, 6]], np.uint64)
    before = now[0], np.array([[1, 9], [5, 6]], np.uint64)

    assert known_components(now, before).tolist() == [False, True]


def test_rows_are_of_the_generation_that_ends_after_them() -> None:
    entry = LedgerEntry(0, ((2, 1), (4, 3)), "web", "a", "f", 4)

    assert generations_of(entry, np.arange(4, dtype=np.uint32)).to_list() == [1, 1, 3, 3]


def test_texts_are_in_the_order_of_the_rows_that_ask_for_them(tmp_path: Path) -> None:
    ids = pl.Series(["a", "b", "c", "d", "e"])
    documents = pl.DataFrame({"doc_id": ids, "text": ["A", None, "C", "D", "E"]})
    documents.write_parquet(tmp_path / "documents.parquet")
    rows = np.array([3, 4, 1, 0], np.uint32)

    texts = read_texts(tmp_path / "documents.parquet", ids[rows], rows)

    assert texts.to_list() == ["D", "E", "", "A"]
