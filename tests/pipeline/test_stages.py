"""All stages through Dagster, on a small corpus: what each run computes, keeps and reports."""

import gzip

import dagster as dg
import yaml
from builders import (
    SHARED_TEXT,
    Build,
    deduped,
    hashes,
    open_corpus,
    sentence,
    write_corpus,
    write_jsonl,
)
from prelude import Any, Path, pl, pytest

from corpus_loader import CorpusLoader
from resources.materialize.materialization import damaged_files
from resources.run_reports import read_report

SOURCE_STAGES = ["raw", "filtered", "signatures", "deduped", "tokenized", "bucketed", "sharded"]
STAGES = {
    **{stage: ("prose", "notes") for stage in SOURCE_STAGES},
    "classifier": ("all",),
    "band_index": ("all",),
    "duplicates": ("all",),
    "tokenizer": ("all",),
}
KEYS = [
    *("rows_in", "rows_kept", "kept_share", "bytes", "parts_computed"),
    *("seconds", "cpu_seconds", "peak_memory_mb", "docs_per_second", "mb_per_second"),
]


def computed(corpus: Any) -> dict[str, int]:
    """Parts that the last run computed, per stage."""
    return {
        stage: sum(
            read_report(corpus.store.root, stage, name).parts_computed for name in partitions
        )
        for stage, partitions in STAGES.items()
    }


def table(corpus: Any, stage: str, partition: str, kind: str) -> pl.DataFrame:
    """All parts of one table."""
    manifest = corpus.store.newest(stage, partition)
    files = [part.file(kind) for part in manifest.parts]
    return pl.concat([pl.read_parquet(corpus.store.path_of(manifest, f)) for f in files if f])


def change(corpus: Any, **changes: Any) -> Any:
    """The same corpus under a changed config."""
    content = yaml.safe_load(corpus.config.read_text()) | changes
    corpus.config.write_text(yaml.safe_dump(content, sort_keys=False))
    return open_corpus(corpus.config)


def test_every_materialization_has_the_same_keys(corpus: Any, dagster_build: Build) -> None:
    events = dagster_build(corpus).get_asset_materialization_events()
    events += dagster_build(corpus, "mixed").get_asset_materialization_events()

    of_stages = [each for each in events if each.asset_key != dg.AssetKey("corpus_report")]
    assert len(of_stages) == 7 * 2 + 3 + 2 == len(events) - 1
    for event in of_stages:
        first = list(event.materialization.metadata)[: len(KEYS)]
        assert [key for key in first if key in KEYS] == [key for key in KEYS if key in first]
        assert set(first) >= set(KEYS) - {"docs_per_second", "mb_per_second"}
        assert set(event.materialization.metadata) >= {"fingerprint", "path"}


def test_a_run_that_computes_nothing_shows_no_speed(
    corpus: Any, build: Build, dagster_build: Build
) -> None:
    build(corpus, "raw")

    events = dagster_build(corpus, "raw").get_asset_materialization_events()

    (shown,) = (dict(e.materialization.metadata) for e in events if e.partition == "prose")
    assert shown["parts_computed"].value == 0 and shown["parts_reused"].value == 2
    assert shown["seconds"].value == shown["cpu_seconds"].value == 0
    assert not {"docs_per_second", "mb_per_second", "peak_memory_mb"} & set(shown)


def test_rows_are_counted_for_the_web_ui_by_partition(corpus: Any, dagster_build: Build) -> None:
    events = dagster_build(corpus).get_asset_materialization_events()

    for event in events:
        key = "dagster/partition_row_count" if event.partition else "dagster/row_count"
        shown = event.materialization.metadata
        assert shown[key].value == shown["rows_kept"].value
        assert len({"dagster/partition_row_count", "dagster/row_count"} & set(shown)) == 1


def test_no_document_is_lost_between_stages(corpus: Any, build: Build) -> None:
    build(corpus)

    for source in ("prose", "notes"):
        stats = [corpus.store.newest(stage, source).stats for stage in SOURCE_STAGES]
        assert all(s.is_conserved() for s in stats)
        kept = {stage: s.rows_kept for stage, s in zip(SOURCE_STAGES, stats, strict=True)}
        entered = {stage: s.rows_in for stage, s in zip(SOURCE_STAGES, stats, strict=True)}
        assert entered["filtered"] == kept["raw"]
        assert entered["deduped"] == kept["filtered"]
        assert entered["sharded"] == kept["bucketed"] == kept["tokenized"] == kept["deduped"]


def test_a_second_run_computes_nothing_and_changes_no_byte(corpus: Any, build: Build) -> None:
    build(corpus)
    before = hashes(corpus.store.root)

    build(corpus)

    assert set(computed(corpus).values()) == {0}
    assert hashes(corpus.store.root) == before


def test_a_changed_threshold_computes_filtered_and_what_follows(corpus: Any, build: Build) -> None:
    build(corpus)

    stricter = {"rules": {"length": {"min_chars": 300}}}
    build(changed := change(corpus, filters=stricter))

    done = computed(changed)
    kept = [done.pop(stage) for stage in ("raw", "classifier", "tokenizer")]
    assert kept == [0, 0, 0]
    assert all(parts > 0 for parts in done.values())


def test_a_new_file_costs_its_own_parts_and_what_depends_on_them(corpus: Any, build: Build) -> None:
    build(corpus)
    parts = {stage: len(corpus.store.newest(stage, "prose").parts) for stage in ("raw", "deduped")}

    write_jsonl(corpus.config.parent / "input/prose/c.jsonl", [{"text": sentence(999)}])
    build(corpus)

    done = computed(corpus)
    assert done["raw"] == done["filtered"] == done["signatures"] == done["deduped"] == 1
    assert len(corpus.store.newest("raw", "prose").parts) == parts["raw"] + 1
    assert read_report(corpus.store.root, "deduped", "prose").parts_reused == parts["deduped"]


@pytest.mark.parametrize(
    "engine",
    [{"kind": "in_process", "workers": 2}, {"kind": "processes", "workers": 2}],
    ids=["threads", "processes"],
)
def test_engine_and_workers_do_not_change_a_byte(
    tmp_path: Path, build: Build, engine: dict[str, Any]
) -> None:
    one = open_corpus(write_corpus(tmp_path / "a", engine={"kind": "in_process", "workers": 1}))
    two = open_corpus(write_corpus(tmp_path / "b", engine=engine))

    for corpus in (one, two):
        build(corpus)
        build(corpus, "mixed")

    assert hashes(one.store.root) == hashes(two.store.root)


def test_a_document_in_two_sources_stays_once(corpus: Any, build: Build) -> None:
    build(corpus)

    parts = deduped(corpus, "prose", "text") + deduped(corpus, "notes", "text")
    texts = pl.concat(parts)["text"].to_list()
    clusters = table(corpus, "duplicates", "all", "clusters")
    removed = clusters.filter(pl.col("doc_id") != pl.col("kept_doc_id"))
    assert texts.count(SHARED_TEXT) == 1
    assert removed.select("method", "similarity", "cluster_size").rows() == [("exact", 1.0, 2)]


def test_decisions_explain_every_document(corpus: Any, build: Build) -> None:
    build(corpus, "raw", "filtered")

    decisions = table(corpus, "filtered", "prose", "decisions")
    raw_ids = table(corpus, "raw", "prose", "documents")["doc_id"]
    rejected = corpus.store.newest("filtered", "prose").stats.rejected
    assert decisions["doc_id"].to_list() == raw_ids.to_list()
    assert decisions["kept"].sum() + sum(rejected.values()) == len(raw_ids)


def test_broken_input_is_quarantined_and_the_rest_is_unharmed(corpus: Any, build: Build) -> None:
    folder = corpus.config.parent / "input/notes"
    write_jsonl(folder / "broken.jsonl", [{"text": sentence(500)}, '{"text": "cut', {"text": None}])
    whole = gzip.compress(b'{"text": "a note that is long enough"}\n' * 2000, mtime=0)
    (folder / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "not.jsonl.gz").write_bytes(b"this is no gzip")
    (folder / "cut.parquet").write_bytes(b"PAR1 footer is gone")
    (folder / "empty.jsonl").write_bytes(b"")

    build(corpus)

    quarantine = table(corpus, "raw", "notes", "quarantine")
    files = {Path(name).name for name in quarantine["file"]}
    assert files == {"broken.jsonl", "cut.jsonl.gz", "not.jsonl.gz", "cut.parquet"}
    assert corpus.store.newest("raw", "notes").stats.quarantined == quarantine.height == 5
    assert corpus.store.newest("sharded", "prose").stats.rows_kept > 30


def test_a_glob_without_files_fails_its_source_only(corpus: Any, build: Build) -> None:
    sources = [{"name": "prose", "where": "input/prose/*"}, {"name": "notes", "where": "no/*.gz"}]

    with pytest.raises(dg.Failure, match=r"'notes': no input file matches 'no/\*\.gz'"):
        build(change(corpus, sources=sources))

    assert corpus.store.newest("sharded", "prose").stats.rows_kept > 30
    assert not list(corpus.store.root.glob("*/notes/_manifests"))


def test_with_on_source_error_stop_it_stops_the_run_before_any_work(
    corpus: Any, build: Build
) -> None:
    sources = [{"name": "prose", "where": "input/prose/*"}, {"name": "notes", "where": "no/*.gz"}]

    with pytest.raises(dg.Failure, match=r"'notes': no input file matches 'no/\*\.gz'"):
        build(change(corpus, sources=sources, on_source_error="stop"))

    assert not list(corpus.store.root.glob("*/prose"))


def test_an_empty_source_goes_through_all_stages(corpus: Any, build: Build) -> None:
    for path in (corpus.config.parent / "input/notes").iterdir():
        path.write_bytes(b"")

    build(corpus)

    assert corpus.store.newest("sharded", "notes").stats.rows_in == 0
    assert corpus.store.newest("sharded", "prose").stats.rows_kept > 30


def test_an_empty_source_in_a_phase_is_refused(corpus: Any, build: Build) -> None:
    (corpus.config.parent / "input/notes/n.jsonl").write_bytes(b"")
    build(corpus)

    with pytest.raises(dg.Failure, match=r"asks for tokens of \['notes'\], which have none"):
        build(corpus, "mixed")


def test_a_size_cap_takes_whole_documents_from_the_start(corpus: Any, build: Build) -> None:
    build(corpus, "raw")
    everything = table(corpus, "raw", "prose", "documents")["text"].to_list()
    cap = sum(len(text) for text in everything[:10]) + 5
    sources = yaml.safe_load(corpus.config.read_text())["sources"]

    build(
        capped := change(corpus, sources=[sources[0] | {"max_text_bytes": cap}, sources[1]]), "raw"
    )

    assert table(capped, "raw", "prose", "documents")["text"].to_list() == everything[:10]
    assert capped.store.newest("raw", "prose").stats.is_conserved()
    before = hashes(capped.store.root)
    build(capped, "raw")
    assert read_report(capped.store.root, "raw", "prose").parts_computed == 0
    assert hashes(capped.store.root) == before


def test_a_size_cap_stops_reading(corpus: Any, build: Build) -> None:
    sources = yaml.safe_load(corpus.config.read_text())["sources"]
    sources = [sources[0] | {"max_text_bytes": 500}, sources[1]]

    build(capped := change(corpus, sources=sources), "raw")

    read = list((capped.store.root / "raw/prose").glob("*.documents.parquet"))
    assert len(read) <= 2  # the part in which the cap is reached, or what is left of it


def test_an_empty_source_stops_its_own_phases_only(
    corpus: Any, build: Build, dagster_build: Build
) -> None:
    (corpus.config.parent / "input/notes/n.jsonl").write_bytes(b"")
    build(corpus)

    assert not dagster_build(corpus, "mixed", raise_on_error=False).success

    assert corpus.store.partition("mixed", "main").newest_manifest() is None
    assert corpus.store.newest("mixed", "late").stats.rows_kept > 0


def test_clusters_of_other_documents_are_refused(corpus: Any, build: Build) -> None:
    build(corpus)

    build(stricter := change(corpus, filters={"rules": {"length": {"min_chars": 300}}}), "filtered")

    with pytest.raises(dg.Failure, match="Materialize `signatures` for 'prose'"):
        build(stricter, "deduped")
    build(stricter, "signatures")
    with pytest.raises(dg.Failure, match="Materialize `band_index` and `duplicates` first"):
        build(stricter, "deduped")


def test_a_copy_elsewhere_that_removes_nothing_here_costs_nothing_here(
    corpus: Any, build: Build
) -> None:
    build(corpus)

    write_jsonl(corpus.config.parent / "input/notes/again.jsonl", [{"text": SHARED_TEXT}])
    build(corpus)

    assert read_report(corpus.store.root, "deduped", "prose").parts_computed == 0


def test_a_damaged_record_is_made_anew(corpus: Any, build: Build) -> None:
    build(corpus)
    before = hashes(corpus.store.root)
    next(corpus.store.root.glob("filtered/prose/_parts/*.json")).write_bytes(b"{")

    build(corpus)

    assert hashes(corpus.store.root) == before


def test_a_missing_stage_says_what_to_materialize(corpus: Any, build: Build) -> None:
    with pytest.raises(dg.Failure, match="Materialize `raw` for 'prose' first"):
        build(corpus, "filtered")


def test_a_removed_file_disappears_from_the_corpus(corpus: Any, build: Build) -> None:
    build(corpus)

    (corpus.config.parent / "input/prose/b.jsonl").unlink()
    build(corpus)

    files = pl.concat(deduped(corpus, "prose", "origin"))["origin"].struct.field("file")
    assert set(files) == {"input/prose/a.jsonl"}


def test_a_part_damaged_on_disk_is_computed_again(corpus: Any, build: Build) -> None:
    build(corpus)
    before = hashes(corpus.store.root)
    victim = next(corpus.store.root.glob("filtered/prose/*.documents.parquet"))

    victim.write_bytes(victim.read_bytes()[:-10])
    build(corpus)

    assert hashes(corpus.store.root) == before
    assert computed(corpus)["filtered"] == 1


def test_the_check_of_files_names_what_is_cut_or_gone(corpus: Any, build: Build) -> None:
    build(corpus)
    manifest = corpus.store.newest("filtered", "prose")
    assert damaged_files(corpus, manifest) == []
    cut, gone = (corpus.store.path_of(manifest, file) for file in manifest.parts[0].files[:2])

    cut.write_bytes(cut.read_bytes()[:-1])
    gone.unlink()

    assert damaged_files(corpus, manifest) == [str(cut), str(gone)]


def test_samples_of_a_phase_are_rows_of_its_sources(corpus: Any, build: Build) -> None:
    build(corpus)
    build(corpus, "mixed")

    loader = CorpusLoader(corpus.store.root, "main")
    batch = loader.samples(range(10))
    rows = {
        name: table(corpus, "sharded", name, "parquet.parquet")["tokens"].to_list()
        for name in loader.sources
    }
    for tokens, length, source in zip(batch.tokens, batch.lengths, batch.sources, strict=True):
        assert tokens[:length].tolist() in rows[loader.sources[source]]
