"""bucketed through Dagster: windows of parts, what their parts are named, kept and reported."""

from builders import Build, hashes, open_corpus, write_corpus
from prelude import Any, Path, np, pl, pytest

from assets.bucketed.asset import bucket_window, plan_bucketed
from assets.sharded.shuffle import Pile, gather
from resources.run_reports import read_report
from resources.settings.pipeline import SettingsError
from resources.store.records import Manifest, Stats, add_stats, fingerprint_of
from resources.store.store import PartWriter
from resources.tasks import Task

ABOUT = {
    "tokenizer_fingerprint": "f" * 32,
    "vocab_size": 1000,
    "token_dtype": "uint16",
    "end_of_document": "<|endoftext|>",
    "end_of_document_id": 999,
    "begin_of_document": None,
    "begin_of_document_id": None,
    "deduped": "d" * 32,
}
PARTS = {"a": (5, 3, 0), "b": (20, 9), "c": (2,), "d": (7, 7)}
PACK = {"sequence_length": 8, "window_tokens": 40}


def documents(part: str, lengths: tuple[int, ...]) -> pl.DataFrame:
    """Documents of these lengths, with offsets as the tokenizer may write them."""
    columns = {
        "doc_id": [f"{ord(part):02x}{row:030x}" for row in range(len(lengths))],
        "tokens": [list(range(length)) for length in lengths],
        "offsets": [list(range(length)) for length in lengths],
    }
    ids, places = pl.List(pl.UInt16), pl.List(pl.UInt32)
    return pl.DataFrame(columns, {"doc_id": pl.String, "tokens": ids, "offsets": places})


def publish_tokenized(corpus: Any, source: str, parts: dict[str, tuple[int, ...]]) -> None:
    """Publish documents of these lengths, as `tokenized` does."""
    folder = corpus.store.partition("tokenized", source)
    folder.folder.mkdir(parents=True, exist_ok=True)
    records = []
    for name, lengths in parts.items():
        writer = PartWriter(folder, name, fingerprint_of(source, name, lengths))
        writer.write_arrow("tokens", documents(name, lengths))
        stats = Stats(len(lengths), len(lengths), tokens=sum(lengths), text_bytes=4 * sum(lengths))
        records.append(writer.publish(stats))
    stats = add_stats(record.stats for record in records)
    fingerprint = fingerprint_of([record.fingerprint for record in records])
    folder.commit(Manifest("tokenized", source, fingerprint, "2", {}, tuple(records), stats, ABOUT))


def tokenized(folder: Path, parts: dict[str, tuple[int, ...]], **keys: Any) -> Any:
    """A corpus whose prose is tokenized as these parts, and whose notes are none."""
    corpus = open_corpus(write_corpus(folder, buckets=keys))
    publish_tokenized(corpus, "prose", parts)
    publish_tokenized(corpus, "notes", {})
    return corpus


def missing(corpus: Any) -> list[Task]:
    """The windows of prose that are not bucketed yet."""
    return [task for task in plan_bucketed(corpus, "prose").tasks if task.published() is None]


def test_a_window_is_consecutive_parts_under_the_name_of_the_first(tmp_path: Path) -> None:
    tasks = plan_bucketed(tokenized(tmp_path, PARTS, **PACK), "prose").tasks

    assert [task.name for task in tasks] == ["a", "d"]
    assert [len(task.payload.files) for task in tasks] == [3, 1]


@pytest.mark.parametrize("most_mapped", [1000, 1])
def test_published_sequences_hold_every_token_of_the_window(
    tmp_path: Path, most_mapped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.bucketed.asset.MOST_MAPPED", most_mapped)
    corpus = tokenized(tmp_path, PARTS, **PACK)
    parts = []
    for task in missing(corpus):
        (record,) = bucket_window(task)
        published = pl.read_ipc(task.published_file("sequences")[0].checked())
        assert "tokens" not in published.columns
        kinds = [file.kind for file in record.files if file.kind.startswith("tokens-")]
        tables = [pl.read_ipc(task.published_file(kind)[0].checked()) for kind in kinds]
        order = np.arange(published.height)
        pile = Pile(published, order, order.astype(np.uint64), tables)
        parts.append(gather([pile], ABOUT["end_of_document_id"]))

    sequences = pl.concat(parts)
    assert set(sequences["tokens"].list.len()) == {8}
    padded = sequences.filter(pl.col("num_tokens") < 8)["tokens"].list.last()
    assert set(padded) == {ABOUT["end_of_document_id"]}
    spans = sequences.explode("spans").unnest("spans").group_by("doc_id").agg(pl.sum("length"))
    wanted = pl.concat([documents(part, lengths) for part, lengths in PARTS.items()])
    wanted = wanted.select("doc_id", length=pl.col("tokens").list.len())
    assert dict(spans.iter_rows()) == {row[0]: row[1] for row in wanted.iter_rows() if row[1]}


def test_a_run_reports_its_numbers_and_a_second_one_changes_no_byte(
    tmp_path: Path, build: Build, dagster_build: Build
) -> None:
    corpus = tokenized(tmp_path, PARTS, **PACK)
    events = dagster_build(corpus, "bucketed").get_asset_materialization_events()
    before = hashes(corpus.store.root / "bucketed")
    build(corpus, "bucketed")

    manifest = corpus.store.newest("bucketed", "prose")
    stats = manifest.stats
    source = corpus.store.newest("tokenized", "prose").fingerprint
    assert manifest.provenance == ABOUT | {"tokenized": source}
    assert (stats.rows_in, stats.rows_kept, stats.rejected) == (8, 7, {"no_tokens": 1})
    assert (stats.tokens, stats.bytes, stats.text_bytes) == (53, 106, 212)
    shown = {event.partition: event.materialization.metadata for event in events}
    metadata = {key: value.value for key, value in shown["prose"].items()}
    assert metadata["bucket_sequences"] == {"8": 7}
    assert metadata["bucket_tokens"] == {"8": 53}
    assert metadata["bucket_padding"] == {"8": 3}
    assert metadata["padding_share"] == 0.0535714
    assert metadata["documents_cut_share"] == 0.25
    expected = {"0": 1, "2": 1, "3-4": 1, "5-6": 1, "7-10": 3, "15-21": 1}
    assert metadata["document_lengths"] == expected
    assert set(metadata["sequence_documents"]) <= {"1", "2", "3-4"}
    assert "| 8 | 7 | 53 | 3 |" in metadata["buckets"]
    assert "data:image/svg" in metadata["sequence_plots"]
    assert "warnings" not in metadata
    assert hashes(corpus.store.root / "bucketed") == before
    assert read_report(corpus.store.root, "bucketed", "prose").parts_reused == 2


def test_a_length_that_no_document_reaches_is_reported(
    tmp_path: Path, dagster_build: Build, capfd: pytest.CaptureFixture[str]
) -> None:
    corpus = tokenized(tmp_path, PARTS, sequence_length=64)

    events = dagster_build(corpus, "bucketed").get_asset_materialization_events()

    shown = {event.partition: event.materialization.metadata for event in events}
    assert shown["prose"]["warnings"].value.startswith("* no document reaches 64 tokens")
    assert "warnings" not in shown["notes"]
    assert "source 'prose': no document reaches 64 tokens" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("parts", "keys", "expected"),
    [
        (PARTS, {}, 0),
        (PARTS | {"d": (7, 8)}, {}, 1),
        (PARTS | {"e": (9,)}, {}, 1),
        (PARTS, {"seed": 1}, 2),
        (PARTS, {"window_tokens": 10**6}, 1),
        ({name: PARTS[name] for name in "abc"}, {}, 0),
    ],
    ids=["none", "a part changed", "a part more", "another seed", "one window", "a part gone"],
)
def test_what_depends_on_a_change_is_computed_again(
    tmp_path: Path, parts: dict[str, tuple[int, ...]], keys: Any, expected: int
) -> None:
    for task in missing(tokenized(tmp_path, PARTS, **PACK)):
        bucket_window(task)

    assert len(missing(tokenized(tmp_path, parts, **(PACK | keys)))) == expected


def test_a_key_of_another_mode_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="buckets: edges has no meaning in mode pack"):
        open_corpus(write_corpus(tmp_path, buckets={"edges": [4, 8]}))
