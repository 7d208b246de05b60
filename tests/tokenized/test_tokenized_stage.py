"""tokenized through Dagster: what it stores, what it reports, and when it is computed again."""

from builders import Build, deduped, open_corpus, write_corpus, write_jsonl
from prelude import Any, Path, json, np, pl, pytest
from small_tokenizer import changed, with_token

from assets.tokenized.round_trip import RoundTrip
from resources.run_reports import read_report
from resources.store.mapped_files import map_array

TO_DEDUPED = (
    *("raw", "classifier", "filtered", "evaluation", "signatures", "band_index", "duplicates"),
    *("repeated", "substrings", "deduped"),
)


def with_tokenizer(tmp_path: Path, tokenizer_json: str = "", **keys: Any) -> Any:
    """The small corpus with a tokenizer of its own, loaded if its content is given."""
    if tokenizer_json:
        (tmp_path / "tokenizer.json").write_text(tokenizer_json)
        keys["path"] = "tokenizer.json"
    return open_corpus(write_corpus(tmp_path, tokenizer={"vocab_size": 300, **keys}))


def files(corpus: Any, stage: str, kind: str) -> list[Path]:
    manifest = corpus.store.newest(stage, "prose")
    return [corpus.store.path_of(manifest, part.file(kind)) for part in manifest.parts]


def test_what_is_stored_and_reported_adds_up(tmp_path: Path, dagster_build: Build) -> None:
    corpus = with_tokenizer(tmp_path)

    result = dagster_build(corpus, *TO_DEDUPED, "tokenizer", "tokenized")

    manifest = corpus.store.newest("tokenized", "prose")
    extra, stats = manifest.stats.numbers, manifest.stats
    tokens = pl.concat([pl.read_ipc(path) for path in files(corpus, "tokenized", "tokens")])
    used = sum(np.fromfile(path, np.uint64) for path in files(corpus, "tokenized", "vocabulary"))
    assert isinstance(used, np.ndarray)
    assert used.sum() == stats.tokens == tokens["tokens"].list.len().sum()
    assert used[0] == tokens.height == stats.rows_kept
    assert sum(extra["text_tokens_by_language"].values()) == stats.tokens - stats.rows_kept
    assert sum(extra["text_bytes_by_language"].values()) == stats.text_bytes == stats.text_bytes
    assert sum(extra["text_chars_by_language"].values()) == extra["text_chars"]
    assert manifest.provenance["tokenizer_fingerprint"] == fingerprint(corpus)
    marks = {"end_of_document_id": 0, "begin_of_document_id": None}
    facts = {"vocab_size": 300, "token_dtype": "uint16"} | marks
    assert facts.items() <= manifest.provenance.items()
    shown = metadata(result, "tokenized", "prose")
    assert shown["fertility"].value.startswith("![fertility]")
    assert shown["vocabulary"].value.startswith("![vocabulary]")
    assert shown["round_trip_failures"].value == 0
    assert 1 < shown["bytes_per_token"].value < 5
    assert check(result).passed


def test_every_document_is_found_in_its_deduped_part(tmp_path: Path, build: Build) -> None:
    corpus = with_tokenizer(tmp_path)

    build(corpus, *TO_DEDUPED, "tokenizer", "tokenized")

    parts = deduped(corpus, "prose", "doc_id")
    assert len(parts) > 1
    for part, index in zip(parts, files(corpus, "tokenized", "doc_index"), strict=True):
        doc_ids = part["doc_id"]
        heads = map_array(index, np.uint64, (len(doc_ids),))
        rows = map_array(index, np.uint32, (len(doc_ids),), offset=8 * len(doc_ids))
        assert index.stat().st_size == 12 * len(doc_ids)
        for row, doc_id in enumerate(doc_ids):
            assert rows[np.searchsorted(heads, np.uint64(int(doc_id[:16], 16)))] == row


def test_a_begin_id_is_stored_when_asked_for(tmp_path: Path, build: Build) -> None:
    special = {"special_tokens": ["<|endoftext|>", "<s>"], "begin_of_document": "<s>"}
    corpus = with_tokenizer(tmp_path, **special)

    build(corpus, *TO_DEDUPED, "tokenizer", "tokenized")

    tokens = pl.read_ipc(files(corpus, "tokenized", "tokens")[0])
    assert corpus.store.newest("tokenized", "prose").provenance["begin_of_document_id"] == 1
    assert tokens["tokens"].list.first().unique().to_list() == [1]
    assert tokens["tokens"].list.last().unique().to_list() == [0]


@pytest.mark.filterwarnings("ignore:fastokens")
def test_lost_text_and_lost_documents_are_reported(tmp_path: Path, dagster_build: Build) -> None:
    lossy = {"type": "Replace", "pattern": {"Regex": "(river|flood).*"}, "content": ""}
    corpus = with_tokenizer(tmp_path, changed(normalizer=lossy))

    result = dagster_build(corpus, *TO_DEDUPED, "tokenizer", "tokenized")

    stats = corpus.store.newest("tokenized", "prose").stats
    failures = stats.numbers["round_trip_failures"]
    assert 0 < failures <= stats.numbers["round_trip_documents"]
    assert 0 < stats.rejected["no_tokens"] == stats.rows_in - stats.rows_kept
    assert not check(result).passed
    assert check(result).severity.value == "WARN"
    first = next(iter(stats.numbers["round_trip_failed"]))
    assert first in metadata(result, "tokenized", "prose")["round_trip"].value


def test_sources_are_compared_when_all_of_a_run_are_there(
    tmp_path: Path, dagster_build: Build
) -> None:
    result = dagster_build(with_tokenizer(tmp_path), *TO_DEDUPED, "tokenizer", "tokenized")

    tables = [metadata(result, "tokenized", name) for name in ("prose", "notes")]
    prose, notes = (each["fertility_by_source"].value for each in tables)
    assert prose == notes
    assert "\n| prose | " in prose and "\n| notes | " in prose


def test_a_trained_tokenizer_that_loses_text_fails_the_run(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = RoundTrip(2, ["f" * 32])
    monkeypatch.setattr("assets.tokenized.asset.round_trip", lambda *_: lost)
    with pytest.raises(Exception, match=r"1 of 2 documents of .* do not decode .* first ffff"):
        build(with_tokenizer(tmp_path), *TO_DEDUPED, "tokenizer", "tokenized")


def test_only_another_tokenizer_or_format_encodes_again(tmp_path: Path, build: Build) -> None:
    token = with_token("<s>", special=True)
    build(with_tokenizer(tmp_path, token), *TO_DEDUPED, "tokenizer", "tokenized")

    def parts_computed(tokenizer_json: str, **keys: Any) -> int:
        corpus = with_tokenizer(tmp_path, tokenizer_json, **keys)
        build(corpus, "tokenizer", "tokenized")
        return read_report(corpus.store.root, "tokenized", "prose").parts_computed

    assert parts_computed(json.dumps(json.loads(token), indent=2)) == 0
    assert parts_computed(token, begin_of_document="<s>") > 0
    assert parts_computed(changed()) > 0


def test_a_source_that_the_tokenizer_has_not_learned_is_named(
    tmp_path: Path, dagster_build: Build
) -> None:
    config = write_corpus(tmp_path, filters={}, tokenizer={"vocab_size": 300})
    first = dagster_build(open_corpus(config), *TO_DEDUPED, "tokenizer", "tokenized")
    greek = [f"\u03c4\u03bf \u03bd\u03b5\u03c1\u03cc {n} " * 20 + f"{n * n}" for n in range(40)]
    write_jsonl(tmp_path / "input/notes/greek.jsonl", [{"text": text} for text in greek])

    result = dagster_build(open_corpus(config), *TO_DEDUPED, "tokenizer", "tokenized")

    assert check(first, "served_by_tokenizer").passed
    found = check(result, "served_by_tokenizer")
    assert not found.passed and found.severity.value == "WARN"
    warning = found.metadata["found"].value["notes"]
    assert warning.startswith("the tokenizer serves source 'notes' badly: 1.")
    assert "of the tokens are single bytes of characters, not 0.0% in the sample" in warning
    assert result.success


def fingerprint(corpus: Any) -> str:
    made = corpus.store.newest("tokenizer", "all")
    return str(made.parts[0].stats.numbers["tokenizer_fingerprint"])


def metadata(result: Any, stage: str, source: str) -> Any:
    events = result.asset_materializations_for_node(stage)
    return [event.metadata for event in events if event.partition == source][-1]


def check(result: Any, name: str = "round_trip") -> Any:
    evaluations = result.get_asset_check_evaluations()
    return next(each for each in evaluations if each.check_name == name)
