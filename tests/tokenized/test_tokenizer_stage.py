"""The tokenizer through Dagster: drawn by weight, trained once, loaded, refused."""

import shutil

import yaml
from builders import Build, hashes, open_corpus, sentence, write_jsonl
from msgspec import structs
from prelude import Any, Path, hashlib, pl, pytest
from small_tokenizer import trained

from assets.deduped.document_files import KeptDocuments
from assets.tokenized.sample_files import SAMPLED_CHARS, Drawn, SampledSource, sample_documents
from resources.run_reports import read_report
from resources.settings.tokenizer import TokenizerConfig
from resources.store.published import as_it_is
from resources.store.records import to_json

DOCUMENTS = ("raw", "filtered", "signatures", "band_index", "duplicates", "deduped")
SMALL = {"vocab_size": 300, "sample_bytes": 100_000}


@pytest.fixture
def deduped(corpus: Any, build: Build) -> Any:
    """The small corpus up to what the tokenizer is trained on."""
    build(corpus, *DOCUMENTS)
    return corpus


def with_tokenizer(corpus: Any, **tokenizer: Any) -> Any:
    """The same corpus with another tokenizer."""
    content = yaml.safe_load(corpus.config.read_text()) | {"tokenizer": SMALL | tokenizer}
    corpus.config.write_text(yaml.safe_dump(content, sort_keys=False))
    return open_corpus(corpus.config)


def made(corpus: Any) -> tuple[str, dict[str, Any], int]:
    """(tokenizer.json, what its record says, parts that the last run computed)."""
    manifest = corpus.store.newest("tokenizer", "all")
    part = manifest.parts[0]
    content = corpus.store.path_of(manifest, part.file("tokenizer")).read_text()
    computed = read_report(corpus.store.root, "tokenizer", "all").parts_computed
    return content, part.stats.numbers, computed


def test_the_sample_is_drawn_by_weight(deduped: Any, build: Build) -> None:
    weighted = with_tokenizer(deduped, sample_bytes=4000, weights={"prose": 3, "notes": 1})
    build(weighted, "tokenizer")

    _, extra, _ = made(weighted)

    assert extra["sample_wanted_bytes"] == {"prose": 3000, "notes": 1000}
    assert extra["sample_takes_all_of"] == []
    assert 1500 < extra["sample_bytes"]["prose"] < 4500  # whole documents
    assert 200 < extra["sample_bytes"]["notes"] < 1800


def sampled(
    folder: Path, config: TokenizerConfig, **texts: list[str]
) -> tuple[list[str], dict[str, int]]:
    """(the sampled texts, their bytes by source) of sources with these texts, a part each."""
    sources = []
    for name, content in texts.items():
        doc_ids = [
            hashlib.sha256(f"{name}{row}".encode()).hexdigest() for row in range(len(content))
        ]
        documents = pl.DataFrame({"doc_id": doc_ids, "text": content, "lang": "en"})
        documents.write_parquet(folder / f"{name}.parquet")
        files = [KeptDocuments(as_it_is(folder / f"{name}.parquet"), None)]
        sources.append(SampledSource(name, sum(map(len, content)), files))
    drawn = {name: Drawn() for name in texts}
    batches = [batch["text"].to_list() for _, batch in sample_documents(sources, config, drawn)]
    assert sum(len(batch) for batch in batches) == sum(each.documents for each in drawn.values())
    return [text for batch in batches for text in batch], {
        name: each.bytes for name, each in drawn.items()
    }


def test_parts_that_are_read_side_by_side_come_in_their_order(tmp_path: Path) -> None:
    config, sources, expected = TokenizerConfig(sample_bytes=10**6), [], []
    for name in ("long", "short"):
        files, length = [], {"long": 50_000, "short": 1}[name]
        for number in range(4):
            path, texts = tmp_path / f"{name}-{number}.parquet", [f"{name} {number} " * length]
            documents = {"doc_id": f"{number:032x}", "text": texts, "lang": "en"}
            pl.DataFrame(documents).write_parquet(path)
            files.append(KeptDocuments(as_it_is(path), None))
            expected.append((name, texts[0][:SAMPLED_CHARS]))
        sources.append(SampledSource(name, 400_000, files))

    drawn = {source.name: Drawn() for source in sources}
    sample = [(name, *part["text"]) for name, part in sample_documents(sources, config, drawn)]

    assert sample == expected


def test_of_a_long_document_no_more_than_the_share_is_taken_and_others_give_the_rest(
    tmp_path: Path,
) -> None:
    equal = {"short": 1, "long": 1}
    texts, size = sampled(tmp_path, TokenizerConfig(sample_bytes=10_000), long=["m" * 1_000_000])
    assert (texts, size) == (["m" * 10_000], {"long": 10_000})

    config = TokenizerConfig(sample_bytes=20_000, weights=equal)
    short, long = ["s" * 100] * 1000, ["l" * 100] * 300 + ["m" * 20_000_000]
    texts, size = sampled(tmp_path, config, short=short, long=long)
    assert 9_000 <= size["short"] < 13_000
    assert 9_000 <= size["long"] < 20_000
    assert sum(map(len, texts)) == sum(size.values())

    config = TokenizerConfig(sample_bytes=1_000_000, weights=equal)
    texts, size = sampled(tmp_path, config, short=["s" * 1000] * 2000, long=["l" * 1_000_000])
    assert size["long"] == 200_000
    assert 720_000 <= size["short"] < 880_000
    assert sum(map(len, texts)) == sum(size.values())


def test_a_sample_that_is_not_as_asked_for_is_said_in_the_log(
    deduped: Any, dagster_build: Build, capfd: pytest.CaptureFixture[str]
) -> None:
    dagster_build(with_tokenizer(deduped, weights={"prose": 1, "notes": 3}), "tokenizer")
    assert "source 'notes' gives" in capfd.readouterr().err


def test_a_source_that_is_short_gives_all_and_that_is_said(deduped: Any, build: Build) -> None:
    build(with_tokenizer(deduped, sample_bytes=1_000_000, vocab_size=5000), "tokenizer")

    _, extra, _ = made(deduped)

    there = {s: deduped.store.newest("deduped", s).stats for s in ("prose", "notes")}
    assert extra["sample_takes_all_of"] == ["prose", "notes"]
    assert extra["sample_bytes"] == {name: stats.bytes for name, stats in there.items()}
    assert extra["sample_documents"] == {name: stats.rows_kept for name, stats in there.items()}
    assert extra["entries_unfilled"] == 5000 - extra["vocab_size"] > 0


def test_with_always_it_is_trained_again_when_its_inputs_or_settings_change(
    deduped: Any, build: Build
) -> None:
    def computed(**tokenizer: Any) -> int:
        corpus = with_tokenizer(deduped, retrain="always", **tokenizer)
        build(corpus, "tokenizer")
        return made(corpus)[2]

    assert computed(weights={"prose": 1}) == 1
    assert computed(weights={"prose": 1}) == 0
    assert computed(weights={"prose": 1}, vocab_size=310) == 1

    write_jsonl(deduped.config.parent / "input/notes/m.jsonl", [{"text": sentence(300)}])
    build(deduped, *DOCUMENTS)
    assert computed(weights={"prose": 1}) == 0  # notes give nothing to it
    assert computed() == 1
    write_jsonl(deduped.config.parent / "input/prose/c.jsonl", [{"text": sentence(301)}])
    build(deduped, *DOCUMENTS)
    assert computed() == computed(weights={"prose": 1}) == 1


def add_documents(corpus: Any, name: str, first: int, number: int = 5) -> Path:
    """A new file of a source."""
    path = corpus.config.parent / f"input/{name}/new-{first}.jsonl"
    return write_jsonl(path, [{"text": sentence(first + i, 40)} for i in range(number)])


def manifest_files(corpus: Any) -> dict[str, str]:
    """sha256 of everything that the tokenizer has published."""
    return hashes(corpus.store.root / "tokenizer")


def test_documents_that_come_and_go_do_not_change_it(deduped: Any, build: Build) -> None:
    build(deduped, "tokenizer")
    before = manifest_files(deduped)
    then = [deduped.store.newest("deduped", name) for name in ("prose", "notes")]
    added = add_documents(deduped, "prose", 300)
    build(deduped, *DOCUMENTS, "tokenizer")
    assert made(deduped)[2] == 0 and manifest_files(deduped) == before

    manifest = deduped.store.newest("tokenizer", "all")  # names the documents that trained it
    assert manifest.provenance["sample"] == [
        {"source": each.partition, "parts": [part.fingerprint for part in each.parts]}
        for each in then
    ]
    numbers = manifest.stats.numbers
    served = {(each["source"], each["language"]): each for each in numbers["served"]}
    assert set(served) == {("prose", "en"), ("notes", "en")}
    for name, each in served.items():
        assert each["text_bytes"] == numbers["sample_bytes"][name[0]]
        assert each["text_bytes"] > each["tokens"] > each["byte_tokens"] == 0
    assert manifest.config["vocab_size"] == 300
    assert "retrain" not in manifest.config

    added.unlink()
    (deduped.config.parent / "input/prose/b.jsonl").unlink()
    build(deduped, *DOCUMENTS, "tokenizer")
    assert made(deduped)[2] == 0 and manifest_files(deduped) == before


def test_a_changed_key_is_refused_and_the_cost_named(deduped: Any, build: Build) -> None:
    build(deduped, "tokenizer", "tokenized")
    stats = {name: deduped.store.newest("tokenized", name).stats for name in ("prose", "notes")}
    tokens = f"{stats['prose'].tokens + stats['notes'].tokens:,} tokens"
    before = manifest_files(deduped)

    with pytest.raises(Exception, match="vocab_size from 300 to 310") as refused:
        build(with_tokenizer(deduped, vocab_size=310), "tokenizer", "tokenized")

    shown = str(refused.value)
    assert f"2 sources, {sum(s.rows_kept for s in stats.values()):,} documents, {tokens}" in shown
    assert f"prose ({stats['prose'].rows_kept} documents" in shown
    assert "or run `corpus tokenizer retrain`" in shown
    assert manifest_files(deduped) == before
    build(with_tokenizer(deduped), "tokenizer")  # set back
    assert made(deduped)[2] == 0


def test_a_refused_change_is_not_retried(deduped: Any, build: Build, dagster_build: Build) -> None:
    build(deduped, "tokenizer")

    result = dagster_build(with_tokenizer(deduped, seed=1), "tokenizer", raise_on_error=False)

    assert not result.success
    assert not [event for event in result.all_events if event.is_step_up_for_retry]


def test_a_changed_key_trains_again_if_the_config_says_so(deduped: Any, build: Build) -> None:
    def computed(**tokenizer: Any) -> int:
        corpus = with_tokenizer(deduped, retrain="when_config_changes", **tokenizer)
        build(corpus, "tokenizer")
        return made(corpus)[2]

    assert computed() == 1
    add_documents(deduped, "prose", 300)
    build(deduped, *DOCUMENTS)
    assert computed() == 0
    assert computed(vocab_size=310) == 1
    assert computed(vocab_size=310) == 0


def test_from_a_file_to_training_is_a_change(deduped: Any, build: Build) -> None:
    (deduped.config.parent / "my.json").write_text(trained(), encoding="utf-8")
    build(with_tokenizer(deduped, path="my.json"), "tokenizer")

    with pytest.raises(Exception, match=r'path from "my.json" to null.*No source is encoded yet'):
        build(with_tokenizer(deduped), "tokenizer")

    build(with_tokenizer(deduped, retrain="when_config_changes"), "tokenizer")
    assert made(deduped)[2] == 1


def test_a_build_from_nothing_with_its_file_gives_the_same_bytes(
    deduped: Any, build: Build, tmp_path: Path
) -> None:
    build(deduped, "tokenizer", "tokenized")
    add_documents(deduped, "prose", 300)
    build(deduped, *DOCUMENTS, "tokenizer", "tokenized")
    content, facts, _ = made(deduped)
    (tmp_path / "exported.json").write_text(content, encoding="utf-8")
    loading = with_tokenizer(deduped, path="exported.json")
    other = open_corpus(loading.config, tmp_path / "from_nothing")

    build(other, *DOCUMENTS, "tokenizer", "tokenized")

    assert made(other)[1]["tokenizer_fingerprint"] == facts["tokenizer_fingerprint"]
    for name in ("prose", "notes"):
        manifests = [corpus.store.newest("tokenized", name) for corpus in (deduped, other)]
        assert to_json(manifests[0]) == to_json(manifests[1])
        assert read_report(other.store.root, "tokenized", name).parts_reused == 0
    published = hashes(other.store.root / "tokenized").items()
    same = {path: digest for path, digest in published if "_manifests" not in path}
    assert same.items() <= hashes(deduped.store.root / "tokenized").items()


def test_marks_around_documents_do_not_train_it_again(deduped: Any, build: Build) -> None:
    special = ["<|endoftext|>", "<s>"]
    build(with_tokenizer(deduped, special_tokens=special), "tokenizer")
    first, before, _ = made(deduped)
    add_documents(deduped, "prose", 300)
    build(deduped, *DOCUMENTS)

    build(with_tokenizer(deduped, special_tokens=special, begin_of_document="<s>"), "tokenizer")

    second, after, computed = made(deduped)
    assert (second, computed) == (first, 1)
    changed = {"begin_of_document": "<s>", "begin_of_document_id": 1}
    assert after == before | changed
    assert deduped.store.newest("tokenizer", "all").config["begin_of_document"] == "<s>"
    build(with_tokenizer(deduped, special_tokens=special, begin_of_document="<s>"), "tokenizer")
    assert made(deduped)[2] == 0


def test_a_tokenizer_of_an_earlier_version_is_kept(deduped: Any, build: Build) -> None:
    """Its manifest names no sample, and lacks a key that the config has today."""
    build(deduped, "tokenizer")
    folder = deduped.store.partition("tokenizer", "all")
    manifest = folder.newest_manifest()
    config = {key: value for key, value in manifest.config.items() if key != "min_frequency"}
    earlier = structs.replace(manifest, code_version="3", config=config, provenance={})
    folder.manifest_path(1).unlink()
    folder.commit(earlier)
    add_documents(deduped, "prose", 300)

    build(deduped, *DOCUMENTS, "tokenizer")

    assert made(deduped)[2] == 0
    assert deduped.store.newest("tokenizer", "all").parts == manifest.parts


def test_a_lost_file_is_made_again_of_the_same_sample(deduped: Any, build: Build) -> None:
    build(deduped, "tokenizer")
    before = manifest_files(deduped)
    (published,) = (deduped.store.root / "tokenizer/all").glob("*.json")
    added = add_documents(deduped, "prose", 300)
    build(deduped, *DOCUMENTS)
    published.unlink()

    build(deduped, "tokenizer")

    assert made(deduped)[2] == 1 and manifest_files(deduped) == before
    added.unlink()
    (deduped.config.parent / "input/prose/b.jsonl").unlink()
    build(deduped, *DOCUMENTS)
    published.unlink()
    with pytest.raises(Exception, match=r"documents that it was trained on.*tokenizer retrain"):
        build(deduped, "tokenizer")


def test_a_loaded_tokenizer_is_published_as_it_is_or_refused(corpus: Any, build: Build) -> None:
    (corpus.config.parent / "my.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(Exception, match=r"my.json: not a tokenizer.json: not UTF-8"):
        build(with_tokenizer(corpus, path="my.json"), "tokenizer")
    (corpus.config.parent / "my.json").write_text(trained(), encoding="utf-8")
    build(with_tokenizer(corpus, path="my.json"), "tokenizer")

    content, extra, computed = made(corpus)

    assert (content, computed) == (trained(), 1)
    assert extra["end_of_document_id"] == 0
    assert extra["begin_of_document_id"] is None
    assert "sample_bytes" not in extra


def test_a_trained_tokenizer_is_frozen_by_loading_its_file(deduped: Any, build: Build) -> None:
    def fingerprint(**tokenizer: Any) -> str:
        corpus = with_tokenizer(deduped, **tokenizer)
        build(corpus, "tokenizer")
        return str(made(corpus)[1]["tokenizer_fingerprint"])

    before = fingerprint()
    (published,) = (deduped.store.root / "tokenizer/all").glob("*.json")
    shutil.copy(published, deduped.config.parent / "frozen.json")
    write_jsonl(deduped.config.parent / "input/prose/d.jsonl", [{"text": sentence(302)}])
    build(deduped, *DOCUMENTS)

    assert hashlib.sha256(published.read_bytes()).hexdigest() == before
    assert fingerprint(path="frozen.json") == before
    assert fingerprint(retrain="always") != before


def test_a_sample_without_documents_is_refused(deduped: Any, build: Build) -> None:
    with pytest.raises(Exception, match=r"no document to train.*Raise tokenizer.sample_bytes"):
        build(with_tokenizer(deduped, sample_bytes=1), "tokenizer")
