"""Documents that are held out of training: packed by themselves, and drawn by validation alone."""

from builders import Build, open_corpus, write_corpus, write_jsonl
from prelude import Any, Path, json, pl, pytest

from assets.bucketed.asset import STAGE as BUCKETED
from assets.bucketed.bucketed_records import layout_of
from assets.bucketed.held_out import is_below
from assets.stages import used_stages
from corpus_loader.find_mixture import find_mixture
from resources.settings.pipeline import SettingsError
from resources.store.loader_files import StoreFiles
from resources.store.mapped_files import map_arrow

CLASSES = {"score": "meta.n", "limits": [16, 38]}
PACKED = {"mode": "pack", "sequence_length": 16}
PHASE = {"name": "main", "weighting": "natural", "batch_samples": 16}


def held_out(folder: Path, **changes: Any) -> Any:
    """The small corpus, of which a quarter is held out."""
    content = {
        "buckets": PACKED,
        "holdout": {"share": 0.25},
        "shards": {"formats": ["megatron"], "target_bytes": 1024},
        "phases": [PHASE],
    }
    return open_corpus(write_corpus(folder, **content | changes))


def build_all(build: Build, corpus: Any) -> None:
    build(corpus, *[name for name in used_stages(corpus.settings) if name != "mixed"])
    build(corpus, "mixed")


def documents_by_group(corpus: Any, source: str) -> dict[str, set[str]]:
    """The documents of the sequences of each group of a source."""
    manifest = corpus.store.newest(BUCKETED, source)
    names = layout_of(manifest).names
    found: dict[str, set[str]] = {}
    for part in manifest.parts:
        file = corpus.store.file_of(manifest, part.file("sequences"))
        for bucket, spans in map_arrow(file.checked(), ["bucket", "spans"]).iter_rows():
            group = names[bucket].partition(".")[2]
            found.setdefault(group, set()).update(span["doc_id"] for span in spans)
    return found


def test_documents_held_out_are_packed_and_mixed_by_themselves(
    tmp_path: Path, build: Build
) -> None:
    corpus = held_out(tmp_path, buckets=PACKED | {"classes": CLASSES})
    build_all(build, corpus)

    groups = documents_by_group(corpus, "prose")
    held = groups.pop("validation")
    assert sorted(groups) == ["class-0", "class-1", "class-2"]
    assert held and held.isdisjoint(set().union(*groups.values()))
    everything = pl.Series(sorted(held.union(*groups.values())))
    assert set(everything.filter(pl.Series(is_below(everything, 0.25)))) == held

    files = StoreFiles(corpus.store.root)
    numbers = corpus.store.newest(BUCKETED, "prose").stats.numbers
    validation, main = (find_mixture(files, name) for name in ("validation", "main"))
    drawn = {source.name: source for source in validation.sources}
    assert drawn["prose"].samples == numbers.bucket_sequences["16.validation"]
    assert drawn["prose"].epochs == 1
    expected = {"16", "16.class-0", "16.class-1", "16.class-2"}
    assert {s.bucket for source in main.sources for s in source.shards} == expected


def test_a_corpus_too_small_to_hold_out_a_document_is_built(tmp_path: Path, build: Build) -> None:
    corpus = held_out(tmp_path, holdout={"share": 1e-9})
    build_all(build, corpus)

    mixture = find_mixture(StoreFiles(corpus.store.root), "validation")
    assert mixture.epoch_samples == 0
    assert mixture.warnings[0].startswith("no document is held out")
    assert set(documents_by_group(corpus, "prose")) == {""}


def test_a_phase_of_that_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"'validation' is the name .* Rename the phase"):
        held_out(tmp_path, phases=[PHASE | {"name": "validation"}])
    with pytest.raises(SettingsError, match="give either `share` or `tokens`"):
        held_out(tmp_path, holdout={})


def test_nights_draw_no_held_out_document_and_no_copy_of_one(tmp_path: Path, build: Build) -> None:
    corpus = held_out(tmp_path, dedup={"keep": ["longest"]})
    build_all(build, corpus)
    first = {source: documents_by_group(corpus, source) for source in ("prose", "notes")}
    held = first["prose"]["validation"]
    lines = (tmp_path / "input/prose/a.jsonl").read_text().splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    longer = [{"text": f"{text} again"} for text in texts if len(text.split()) > 30]
    write_jsonl(tmp_path / "input/notes/longer.jsonl", longer)

    build_all(build, corpus)

    second = {source: documents_by_group(corpus, source) for source in ("prose", "notes")}
    assert not second["prose"][""] & held
    assert not held & second["notes"][""]
    removed = held - second["prose"].get("validation", set())
    copies = second["notes"]["validation"] - first["notes"]["validation"]
    assert len(removed) == len(copies) > 0  # each is held out in place of one
