from builders import Build, open_corpus, play, records, sentence, write_corpus
from prelude import Any, Path, pl, pytest

from assets.deduped.document_files import (
    KeptDocuments,
    kept_documents,
    read_kept,
    read_kept_ids,
    read_some,
)
from resources.store.published import as_it_is

STAGES = ("raw", "filtered", "signatures", "band_index", "duplicates", "deduped")


@pytest.fixture
def documents(tmp_path: Path) -> KeptDocuments:
    """Four documents, of which the second is gone and the third is cut."""
    table = {"doc_id": [*"abcd"], "text": ["one", "two", "three, four", "five"], "lang": "en"}
    pl.DataFrame(table).write_parquet(tmp_path / "documents.parquet")
    kept = pl.DataFrame(
        {"row": [0, 2, 3], "doc_id": [*"acd"], "text": [None, "three", None]},
        schema_overrides={"row": pl.UInt32},
    )
    kept.write_parquet(tmp_path / "kept.parquet")
    return KeptDocuments(*(as_it_is(tmp_path / f"{n}.parquet") for n in ("documents", "kept")))


def test_documents_that_stay_are_read_with_what_was_cut(documents: KeptDocuments) -> None:
    read = read_kept(documents, ["doc_id", "text"])

    assert read.rows() == [("a", "one"), ("c", "three"), ("d", "five")]
    assert read_kept_ids(documents).to_list() == [*"acd"]
    assert read_kept(documents, ["lang"]).rows() == [("en",)] * 3


@pytest.mark.parametrize("ids", [[], ["c"], ["d", "a"]])
def test_some_documents_are_read_as_all_are(documents: KeptDocuments, ids: list[str]) -> None:
    wanted = pl.Series(ids, dtype=pl.String)
    some = read_some(documents, wanted, ["doc_id", "text"])

    everything = read_kept(documents, ["doc_id", "text"])
    assert some.rows() == everything.filter(everything["doc_id"].is_in(wanted.implode())).rows()


def test_a_table_of_another_stage_is_read_whole(documents: KeptDocuments) -> None:
    whole = KeptDocuments(documents.filtered, None)

    assert read_kept(whole, ["text"])["text"].to_list() == ["one", "two", "three, four", "five"]
    assert read_kept_ids(whole).to_list() == [*"abcd"]
    assert read_some(whole, pl.Series(["b"]), ["doc_id", "text"]).rows() == [("b", "two")]


def built(folder: Path, build: Build, **dedup: Any) -> Any:
    corpus = open_corpus(write_corpus(folder, dedup={"near": True, **dedup}))
    build(corpus, *STAGES)
    return corpus


def test_texts_are_stored_once_and_outlive_those_of_filtered(tmp_path: Path, build: Build) -> None:
    corpus = built(tmp_path, build)
    filtered, deduped = (corpus.store.newest(name, "prose") for name in ("filtered", "deduped"))

    for before, part in zip(filtered.parts, deduped.parts, strict=True):
        files = kept_documents(corpus.store, deduped, part)
        path = corpus.store.path_of(filtered, before.file("documents"))
        assert files.filtered.unchecked_path.samefile(path)
        path.unlink()
        assert read_kept(files, ["text"]).height == part.stats.rows_kept


def test_bytes_are_those_of_the_texts_that_stay(tmp_path: Path, build: Build) -> None:
    config = {"lines": {"min_count": 3, "min_chars": 5}}
    corpus = open_corpus(write_corpus(tmp_path, dedup={"near": True, **config}))
    texts = [f"a line of all\n{sentence(200 + n)}" for n in range(4)]
    play(corpus, {"notes/x.jsonl": records(*texts)})
    build(corpus, *STAGES[:-1], "repeated", "deduped")

    manifest = corpus.store.newest("deduped", "notes")
    assert manifest.stats.numbers["cut_chars"] == {"lines": 4 * len("a line of all\n")}
    for part in manifest.parts:
        texts = read_kept(kept_documents(corpus.store, manifest, part), ["text"])["text"]
        assert part.stats.bytes == texts.str.len_bytes().sum()


def test_a_damaged_file_is_not_given_a_second_name(tmp_path: Path, build: Build) -> None:
    corpus = open_corpus(write_corpus(tmp_path, dedup={"near": True}))
    build(corpus, *STAGES[:-1])
    filtered = corpus.store.newest("filtered", "prose")
    path = corpus.store.path_of(filtered, filtered.parts[0].file("documents"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    with pytest.raises(Exception, match="changed since it was published"):
        build(corpus, "deduped")
    assert path.stat().st_nlink == 1
