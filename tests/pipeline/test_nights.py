"""Nights through all stages: few new documents write few shards, and jobs keep their data."""

import yaml
from builders import Build, hashes, open_corpus, sentence, write_jsonl
from prelude import Any, Path, pytest

from assets.sharded.asset import STAGE as SHARDED
from corpus_loader import CorpusLoader, LoaderOptions
from pipeline_defs.commands.main import main
from resources.run_reports import read_report


def add_documents(corpus: Any, name: str, first: int, count: int) -> None:
    texts = [{"text": sentence(first + number, 40)} for number in range(count)]
    write_jsonl(corpus.config.parent / f"input/prose/{name}.jsonl", texts)


def samples_of(corpus: Any, data: str | None = None) -> list[list[int]]:
    """The samples of an epoch of the phase `main`, in order."""
    loader = CorpusLoader(corpus.store.root, "main", options=LoaderOptions(data=data))
    batch = loader.samples(range(loader.split.epoch_samples))
    pairs = zip(batch.tokens, batch.lengths, strict=True)
    return [tokens[:length].tolist() for tokens, length in pairs]


def shard_names(corpus: Any) -> list[str]:
    manifest = corpus.store.newest(SHARDED, "prose")
    return [part.name for part in manifest.parts if "-shard-" in part.name]


def test_few_new_documents_write_the_shards_of_a_new_generation(corpus: Any, build: Build) -> None:
    build(corpus)
    before = hashes(corpus.store.root / "sharded/prose")
    add_documents(corpus, "c", 500, 3)

    build(corpus)

    report = read_report(corpus.store.root, "sharded", "prose")
    new = [name for name in shard_names(corpus) if name.startswith("g0002")]
    assert report.parts_computed == len(new) + 2  # the ledger and the index
    after = hashes(corpus.store.root / "sharded/prose")
    shards = {path for path in before if "shard-" in path}
    assert {path: after[path] for path in shards} == {path: before[path] for path in shards}


def test_an_older_mixture_keeps_its_shards_and_its_removed_rows(corpus: Any, build: Build) -> None:
    for number in range(3):
        add_documents(corpus, f"c{number}", 500 + 20 * number, 20)
    build(corpus)
    (corpus.config.parent / "input/prose/c2.jsonl").write_text(
        "".join((corpus.config.parent / "input/prose/c2.jsonl").read_text().splitlines(True)[:-2])
    )
    build(corpus)
    build(corpus, "mixed")
    older = CorpusLoader(corpus.store.root, "main").mixture.fingerprint
    before = samples_of(corpus)
    assert corpus.store.newest(SHARDED, "prose").stats.numbers.removed_rows

    for number in range(corpus.settings.keep_manifests + 1):
        (corpus.config.parent / f"input/prose/{'ab'[number % 2]}.jsonl").unlink(missing_ok=True)
        add_documents(corpus, f"d{number}", 700 + 40 * number, 40)
        build(corpus)
    build(corpus, "mixed")

    assert samples_of(corpus, older) == before
    assert samples_of(corpus) != before


def test_a_build_from_nothing_with_ledgers_and_tokenizer_draws_the_same_samples(
    corpus: Any,
    build: Build,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    build(corpus)
    add_documents(corpus, "c", 500, 3)
    lines = (corpus.config.parent / "input/prose/b.jsonl").read_text().splitlines(keepends=True)
    (corpus.config.parent / "input/prose/b.jsonl").write_text("".join(lines[:-1]))
    build(corpus)
    build(corpus, "mixed")
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    assert main(["shards", "ledger", str(tmp_path / "exported")]) == 0
    assert "prose: " in capsys.readouterr().out
    assert main(["duplicates", "ledger"]) == 0
    (tmp_path / "ingested.json").write_text(capsys.readouterr().out)
    [tokenizer] = corpus.store.root.glob("tokenizer/all/*.tokenizer.json")

    content = yaml.safe_load(corpus.config.read_text()) | {
        "store": "fresh",
        "tokenizer": {"path": str(tokenizer)},
        "dedup": {"ledger": str(tmp_path / "ingested.json")},
    }
    content["shards"] |= {"ledger": str(tmp_path / "exported")}
    config = corpus.config.with_name("fresh.yaml")
    config.write_text(yaml.safe_dump(content, sort_keys=False))
    build(fresh := open_corpus(config, corpus.config.with_name("fresh")))
    build(fresh, "mixed")

    assert {name[:5] for name in shard_names(corpus)} == {"g0001", "g0002"}
    assert corpus.store.newest(SHARDED, "prose").stats.numbers.removed_rows
    assert shard_names(fresh) == shard_names(corpus)
    assert samples_of(fresh) == samples_of(corpus)


def test_the_ledger_of_a_store_without_shards_names_the_stage_to_run(
    corpus: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))

    assert main(["shards", "ledger", str(corpus.config.parent / "exported")]) == 1
    assert "Materialize `sharded` first" in capsys.readouterr().err
