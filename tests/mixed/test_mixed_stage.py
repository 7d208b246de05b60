"""Run `mixed` through Dagster: the mixture, its metadata, and the samples written in its order."""

import dagster as dg
from builders import Build, hashes
from loader_corpus import every_sample
from prelude import Any, Path, assert_frame_equal, json, np, pl, pytest
from sharded_corpus import ABOUT, WEIGHTED, change, corpus_with, shard, write_sharded

from assets.mixed.asset import STAGE as MIXED
from assets.mixed.phase_shard_files import read_samples
from assets.sharded.shard_files import files_of
from corpus_loader.mixture import parse_mixture
from pipeline_defs.commands.answers import nested
from pipeline_defs.corpus_tables import newest_tables
from resources.run_reports import read_report
from resources.settings.shards import FORMAT_NAMES
from resources.store.records import to_json


def mixture_of(corpus: Any, phase: str = "main") -> dict[str, Any]:
    manifest = corpus.store.newest("mixed", phase)
    path = corpus.store.path_of(manifest, manifest.parts[0].file("mixture"))
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_the_mixture_says_what_was_planned_and_drawn(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED)
    build(corpus, "mixed")

    found = mixture_of(corpus)

    prose, notes = found.pop("sources")
    assert [shard.pop("rows") for shard in prose.pop("shards")] == [6, 4]
    [only] = notes.pop("shards")
    assert prose == numbers("prose", 0.75, 72, 72, 80) | {"epochs": 0.9, "samples": 9, "rows": 10}
    drawn = {"epochs": 0.714286, "samples": 3, "rows": 4}
    assert notes == numbers("notes", 0.25, 24, 20, 28) | drawn
    path = corpus.store.root / f"{only['path']}.bin"
    assert (only["rows"], only["tokens"], only["bucket"]) == (4, 28, "8")
    assert only["files"]["bin"]["bytes"] == path.stat().st_size == 4 * 8 * 2
    assert set(only["files"]) == {"bin", "idx", "spans"}
    assert len(found.pop("fingerprint")) == 32
    assert found.pop("seed") < 2**53
    assert found == ABOUT | {
        "version": 1,
        "phase": "main",
        "epoch_samples": 12,
        "tokens": 92,
        "batch_samples": 4,
        "window_shards": None,
        "sequence_length": 8,
        "warnings": ["the weights sum to 4, not 1; normalised to prose 0.75, notes 0.25"],
    }


def numbers(
    name: str, weight: float, planned: int, realised: int, available: int
) -> dict[str, Any]:
    tokens = {"planned": planned, "realised": realised, "available": available}
    return {"name": name, "weight": weight} | {f"{of}_tokens": n for of, n in tokens.items()}


def test_metadata_and_summary_hold_the_mix(tmp_path: Path, dagster_build: Build) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED)
    events = dagster_build(corpus, "mixed").get_asset_materialization_events()

    by_phase = {event.partition: event.materialization.metadata for event in events}
    metadata = by_phase["main"]
    assert metadata["epochs/prose"].value == 0.9
    assert metadata["mix"].value["notes"]["realised_tokens"] == 20
    assert (metadata["rows_kept"].value, metadata["tokens"].value) == (12, 92)
    assert len(metadata["warnings"].value) == 1
    for picture in ("mix_chart", "mix_over_position"):
        assert [*metadata].index(picture) < [*metadata].index("mix"), "long JSON is last"
        assert metadata[picture].value.startswith("![") and "svg" in metadata[picture].value
    assert (
        nested(newest_tables(corpus)["mix"], "phase", "source")["main"]["prose"]["planned_tokens"]
        == 72
    )


def test_written_shards_hold_the_samples_in_the_order_of_the_phase(
    tmp_path: Path, build: Build
) -> None:
    written_as = WEIGHTED | {"formats": ["parquet", "megatron"], "target_bytes": 1024}
    corpus = corpus_with(tmp_path, written_as)
    wide = [shard(100 + row, [8] * 50) for row in (0, 100)]
    write_sharded(corpus.store, "prose", wide)
    build(corpus := change(corpus, written_as | {"tokens": 800}), "mixed")

    manifest = corpus.store.newest("mixed", "main")
    found = mixture_of(corpus)
    names = [part.name for part in manifest.parts]
    files = [file for part in manifest.parts[1:-1] for file in files_of(part, "parquet")]
    written = pl.concat([pl.read_parquet(corpus.store.path_of(manifest, file)) for file in files])
    assert names == ["mix", "shard-00000", "shard-00001", "index"]
    positions = np.arange(found["epoch_samples"])
    in_order = read_samples(corpus.store.root, parse_mixture(to_json(found)), positions)
    assert_frame_equal(written, in_order)
    batches = list(every_sample(corpus.store.root, "main", batch_size=7))
    loaded = np.concatenate([batch.tokens for batch in batches])
    assert np.array_equal(loaded, np.stack(written["tokens"].to_numpy()))
    assert manifest.stats.rows_kept == found["epoch_samples"] == written.height
    assert manifest.stats.tokens == found["tokens"]
    assert (
        nested(newest_tables(corpus)["mix"], "phase", "source")["main"]["notes"]["weight"] == 0.25
    )
    folders = {Path(file.path).parent.name for part in manifest.parts[1:] for file in part.files}
    assert {folder.rsplit("-", 1)[0] for folder in folders} == {"parquet", "megatron"}


def test_document_spans_survive_the_way_into_mixed_shards(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with(tmp_path, {"budgets": {"notes": 28}, "formats": ["parquet"]})
    build(corpus, "mixed")

    manifest = corpus.store.newest("mixed", "main")
    [file] = files_of(manifest.parts[1], "parquet")
    written = pl.read_parquet(corpus.store.path_of(manifest, file))
    in_order = written.sort(pl.col("tokens").list.first())
    assert_frame_equal(in_order, shard(300, [8, 8, 8, 4]), check_dtypes=True)


def test_a_second_run_changes_no_byte(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED | {"formats": list(FORMAT_NAMES)})
    build(corpus, "mixed")
    before = hashes(corpus.store.root)

    build(corpus, "mixed")

    assert hashes(corpus.store.root) == before
    assert read_report(corpus.store.root, "mixed", "main").parts_computed == 0
    manifests = corpus.store.root.glob("mixed/main/*/manifest.json")
    assert {json.loads(path.read_text())["format"] for path in manifests} == set(FORMAT_NAMES)


def test_a_damaged_shard_of_a_phase_is_written_again_alone(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with(tmp_path, WEIGHTED | {"formats": ["megatron"], "target_bytes": 1024})
    build(corpus, "mixed")
    before = hashes(corpus.store.root)

    next(corpus.store.root.glob("mixed/main/megatron-*/shard-00000.bin")).write_bytes(b"cut")
    build(corpus, "mixed")

    assert hashes(corpus.store.root) == before
    assert read_report(corpus.store.root, "mixed", "main").parts_computed == 1


@pytest.mark.parametrize("suffix", ["bin", "idx", "spans"])
def test_samples_of_a_damaged_source_are_not_written(
    tmp_path: Path, build: Build, suffix: str
) -> None:
    corpus = corpus_with(tmp_path, {"budgets": {"prose": 80}, "formats": ["npy"]})
    path = next(corpus.store.root.glob(f"sharded/prose/*/shard-00001.{suffix}"))
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    with pytest.raises(dg.Failure, match=rf"{path.name}: missing, or not as .* --repair"):
        build(corpus, "mixed")
    assert not list(corpus.store.root.glob("mixed/main/npy-*"))

    path.write_bytes(content)
    build(corpus, "mixed")
    path.unlink()
    build(corpus, "mixed")  # all shards are there: nothing is read


def test_the_manifest_of_a_folder_says_what_decided_its_bytes(tmp_path: Path, build: Build) -> None:
    phase = WEIGHTED | {"formats": ["npy"], "target_bytes": 1024, "seed": 3}
    corpus = corpus_with(tmp_path, phase)
    build(corpus, "mixed")
    [first] = corpus.store.root.glob("mixed/main/npy-*/manifest.json")
    written = first.read_bytes()

    build(change(corpus, phase | {"warn_epochs": 2.0}), "mixed")

    said = json.loads(written)
    deciding = {"seed": 3, "batch_samples": 4, "window_shards": None, "target_bytes": 1024}
    assert said["config"] == deciding
    assert {key: said[key] for key in ABOUT} == ABOUT
    assert said["code_version"] == MIXED.code_version
    assert said["mixture"] == mixture_of(corpus)["fingerprint"]
    assert first.parent.name == f"npy-{said['fingerprint'][:8]}"
    assert read_report(corpus.store.root, "mixed", "main").parts_computed == 1  # the mixture
    assert first.read_bytes() == written


def test_a_phase_beyond_its_caps_is_refused_with_what_would_do(
    tmp_path: Path, build: Build
) -> None:
    corpus = corpus_with(tmp_path, {"weights": {"prose": 0.5, "notes": 0.5}, "tokens": 1000})

    with pytest.raises(dg.Failure, match=r"500 tokens of 'notes', which has 28.*at most 896"):
        build(corpus, "mixed")
