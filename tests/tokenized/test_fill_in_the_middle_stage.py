"""Documents rearranged for filling in the middle, from the config to shards and `corpus trace`."""

import dagster as dg
import yaml
from builders import Build, deduped, hashes, open_corpus, write_corpus
from prelude import Any, Counter, Path, json, pl, pytest
from small_tokenizer import trained

from assets.text.marks import find_passages, passage_marks, text_marks
from assets.text.takedown_files import wanted_by
from pipeline_defs.commands.main import main
from pipeline_defs.commands.takedown.store_search import Search, spellings
from resources.settings.full_source import Source
from resources.takedowns import Takedown

PREFIX, MIDDLE, SUFFIX = 1, 2, 3
SOURCES = [
    {"name": "prose", "where": "input/prose/*", "fill_in_the_middle": {"rate": 0.5}},
    {"name": "notes", "where": "input/notes/*"},
]
CHANGES: dict[str, Any] = {
    "sources": SOURCES,
    "tokenizer": {"vocab_size": 300, "sample_bytes": 100_000},
    "buckets": {"mode": "pack", "sequence_length": 128},
}


def tokens_of(corpus: Any, source: str) -> pl.DataFrame:
    """Read text and tokens of each document of a source."""
    manifest = corpus.store.newest("tokenized", source)
    paths = [corpus.store.path_of(manifest, part.file("tokens")) for part in manifest.parts]
    tokens = pl.concat([pl.read_ipc(path) for path in paths])
    texts = pl.concat(deduped(corpus, source, "doc_id", "text"))
    return tokens.join(texts, on="doc_id", maintain_order="left")


def test_documents_of_one_source_are_rearranged_and_can_be_traced(
    tmp_path: Path,
    build: Build,
    dagster_build: Build,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    corpus = open_corpus(write_corpus(tmp_path, **CHANGES))
    result = dagster_build(corpus)
    build(corpus, "mixed")

    events = result.asset_materializations_for_node("tokenized")
    shown = {event.partition: event.metadata for event in events}
    rows = tokens_of(corpus, "prose")
    has_middle = rows["tokens"].list.contains(MIDDLE)
    modes = {key: shown["prose"][f"fill_in_the_middle_{key}"].value for key in ("psm", "spm")}
    assert modes["psm"] > 3 and modes["spm"] > 3 and sum(modes.values()) == has_middle.sum()
    assert shown["prose"]["fill_in_the_middle_documents"].value == has_middle.sum()
    assert shown["prose"]["fill_in_the_middle_tokens"].value == 3 * has_middle.sum()
    assert shown["prose"]["fill_in_the_middle_share"].value == has_middle.mean()
    assert "fill_in_the_middle_documents" not in shown["notes"]
    assert shown["prose"]["round_trip_failures"].value == 0
    notes = tokens_of(corpus, "notes")["tokens"].explode()
    assert not notes.is_in([PREFIX, MIDDLE, SUFFIX]).any()

    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    is_psm = rows["tokens"].list.get(1) != SUFFIX
    row = rows.filter(has_middle & is_psm).row(0, named=True)
    assert main(["trace", row["doc_id"], "--json"]) == 0
    place = json.loads(capsys.readouterr().out)["sharded"][0]
    at = ["trace", "--source", "prose", "--shard", str(place["shard"]), "--row", str(place["row"])]
    middle = row["tokens"].index(MIDDLE)
    token = place["position"] + middle + 1 - place["start"]
    assert place["start"] <= middle + 1 < place["start"] + place["tokens"]
    assert main([*at, "--token", str(token), "--json"]) == 0
    traced = json.loads(capsys.readouterr().out)
    piece = traced["documents"][traced["token"]["document"]]
    assert piece["doc_id"] == row["doc_id"] and traced["token"]["index"] == middle + 1
    assert piece["text"].startswith("<|fim_prefix|>" + row["text"][:20])


@pytest.mark.parametrize("kind", ["in_process", "processes"])
def test_workers_and_engines_give_the_same_bytes(tmp_path: Path, build: Build, kind: str) -> None:
    engines = {"kind": "in_process", "workers": 1}, {"kind": kind, "workers": 2}
    one, two = (
        open_corpus(write_corpus(tmp_path / str(number), **CHANGES, engine=engine))
        for number, engine in enumerate(engines)
    )
    build(one)
    build(two)
    assert hashes(one.store.root) == hashes(two.store.root)


def test_a_loaded_tokenizer_without_the_tokens_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_corpus(tmp_path, sources=SOURCES, tokenizer={"path": "tokenizer.json"})
    (tmp_path / "tokenizer.json").write_text(trained())
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))

    assert main(["summary"]) == 2

    error = capsys.readouterr().err
    assert "tokenizer.path 'tokenizer.json': the tokenizer lacks the special tokens" in error
    assert not (tmp_path / "store").exists()


def test_a_trained_tokenizer_without_the_tokens_is_kept_and_named(
    tmp_path: Path, build: Build
) -> None:
    config = write_corpus(tmp_path)
    build(open_corpus(config))
    content = yaml.safe_load(config.read_text()) | {"sources": SOURCES}
    config.write_text(yaml.safe_dump(content, sort_keys=False))

    with pytest.raises(dg.Failure, match="which fill_in_the_middle of a source adds to"):
        build(open_corpus(config), "tokenizer")


def test_a_proof_finds_texts_and_passages_across_cuts(tmp_path: Path, build: Build) -> None:
    sources = [SOURCES[0] | {"fill_in_the_middle": {"rate": 1}}, SOURCES[1]]
    corpus = open_corpus(write_corpus(tmp_path, **CHANGES | {"sources": sources}))
    build(corpus)
    rows = tokens_of(corpus, "prose")
    texts, passages = b"".join(text_marks(rows["text"])), b"".join(passage_marks(rows["text"]))
    wanted = wanted_by([Takedown("match", "", texts=texts, passages=passages)])
    search = Search(wanted, spellings(corpus), {})

    found = Counter[str]()
    for seen, number in search.column(rows["tokens"]).items():
        found[seen.kind] += number

    assert found["text"] == rows.height > 30
    in_texts = len(find_passages(rows["text"], wanted.passages))
    assert found["passage"] == in_texts > 30


def test_conversations_are_not_rearranged() -> None:
    given = {"name": "a", "where": "a.jsonl", "kind": "chat", "fill_in_the_middle": {}}

    with pytest.raises(ValueError, match="fill_in_the_middle has no meaning with kind: chat"):
        Source.model_validate(given)
