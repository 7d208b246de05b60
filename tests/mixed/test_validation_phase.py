"""Held-out documents, from a built corpus to the loader: in validation once, never in training."""

import shutil

from builders import deduped, open_corpus, play, records, write_corpus
from chat_corpus import write_chat_corpus
from every_stage import build as build_stages
from prelude import Any, Counter, Path, json, np, pl, pytest

from assets.mixed.asset import STAGE as MIXED
from assets.stages import used_stages
from corpus_loader import CorpusLoader, LoaderOptions
from resources.store.records import Manifest

SOURCES = ("prose", "notes")
PHASES = ("general", "late")
CLASSES = {"score": "meta.n", "limits": [16, 38]}
GENERAL = {"weighting": "natural", "batch_samples": 4, "one_bucket_batches": True}
CONFIG: dict[str, Any] = {
    "holdout": {"share": 0.25},
    "buckets": {"mode": "buckets", "edges": [60, 90], "classes": CLASSES},
    # What goes stays in the files, and is marked.
    "shards": {"target_bytes": 1024, "formats": ["megatron", "parquet"], "rewrite_share": 0.9},
    "phases": [
        {"name": "general", "formats": ["parquet"]} | GENERAL,
        {"name": "late", "budgets": {"prose": 500}},
    ],
}
Documents = Counter[str]  # tokens by doc_id


def build(corpus: Any) -> None:
    build_stages(corpus, used_stages(corpus.settings).values())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small corpus in classes and batches of one bucket, a quarter of it held out."""
    folder = tmp_path_factory.mktemp("held_out")
    build(open_corpus(write_corpus(folder, **CONFIG)))
    return folder


@pytest.fixture
def corpus(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A copy of it, which commands find."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    return open_corpus(tmp_path / "pipeline.yaml")


def folder_of(cli: Any, *options: str) -> Path:
    return Path(cli.out("path", *options).strip())


def in_folder(folder: Path) -> Documents:
    """The documents of the rows of a folder of Parquet."""
    spans = pl.read_parquet(sorted(folder.glob("*.parquet")))["spans"].explode().struct.unnest()
    counts = spans.group_by("doc_id").agg(pl.col("length").sum())
    return Counter(dict(counts.iter_rows()))


def tokenized(corpus: Any, source: str) -> Documents:
    manifest = corpus.store.newest("tokenized", source)
    files = [corpus.store.file_of(manifest, part.file("tokens")) for part in manifest.parts]
    tables = [pl.read_ipc(file.checked(), columns=["doc_id", "tokens"]) for file in files]
    table = pl.concat(tables).select("doc_id", pl.col("tokens").list.len())
    return Counter(dict(table.iter_rows()))


def read(corpus: Any, *, world: int = 1, epochs: int = 1, **rest: Any) -> Documents:
    """The documents that all ranks read; repeated rows are left out."""
    options = LoaderOptions(with_documents=True)
    given = {"batch_size": 4, "split": "validation", "options": options} | rest
    found: Documents = Counter()
    for rank in range(world):
        loader = CorpusLoader(corpus.store.root, rank=rank, world_size=world, **given)
        for batch in (batch for _ in range(epochs) for batch in loader):
            assert batch.documents is not None
            edges = batch.documents.cu_seqlens
            rows = edges[:-1] // batch.tokens.shape[1]
            is_new = batch.documents.doc_ids.any(axis=1) & ~batch.is_repeated[rows]
            for segment in np.flatnonzero(is_new):
                doc_id = batch.documents.doc_ids[segment].tobytes().hex()
                found[doc_id] += int(edges[segment + 1] - edges[segment])
    return found


def test_every_document_is_in_one_split(corpus: Any, cli: Any) -> None:
    for source in SOURCES:
        given = ("--source", source, "--format", "parquet")
        trained, held = (folder_of(cli, *given, "--split", of) for of in ("train", "validation"))
        assert held.name.startswith("validation-parquet-")
        assert folder_of(cli, *given) == trained
        assert len(in_folder(held)) > 3 < len(in_folder(trained))
        assert not in_folder(held).keys() & in_folder(trained).keys()
        assert in_folder(held) + in_folder(trained) == tokenized(corpus, source)
        assert json.loads((held / "manifest.json").read_bytes())["split"] == "validation"
        assert "split" not in json.loads((trained / "manifest.json").read_bytes())
        for folder in (trained, held):
            cli.out("verify", "--folder", str(folder))
    cli.out("verify")


@pytest.mark.parametrize("world", [1, 2, 3])
def test_the_loader_reads_each_held_out_row_once(corpus: Any, cli: Any, world: int) -> None:
    asked = ("--split", "validation", "--format", "parquet")
    held = {source: in_folder(folder_of(cli, "--source", source, *asked)) for source in SOURCES}
    both = held["prose"] + held["notes"]
    assert read(corpus, world=world) == both
    assert read(corpus, world=world, source="notes") == held["notes"]
    assert in_folder(folder_of(cli, "--phase", "validation", "--format", "parquet")) == both


def test_no_phase_draws_what_is_held_out(corpus: Any, cli: Any) -> None:
    held, trained = read(corpus), Counter[str]()
    for phase in PHASES:
        trained += read(corpus, split="train", phase=phase, epochs=2, batch_size=1)
    assert len(trained) > 20
    assert not trained.keys() & held.keys()
    written = in_folder(folder_of(cli, "--phase", "general", "--format", "parquet"))
    assert written and not written.keys() & held.keys()


def test_commands_say_what_is_held_out(corpus: Any, cli: Any) -> None:
    held = read(corpus, source="prose")
    doc_id, other = min(held), min(tokenized(corpus, "prose").keys() - held.keys())
    numbers = cli.json("summary")["held_out"]["prose"]
    # Mode buckets: one document each.
    assert numbers == {"documents": len(held), "tokens": held.total(), "sequences": len(held)}
    said = f"prose: {len(held)} documents are held out for validation ({held.total()} tokens in"
    assert said in cli.out("summary")
    plan = cli.json("plan")
    assert plan["phases"]["validation"]["sources"]["prose"]["planned_tokens"] == held.total()
    assert plan["phases"]["validation"]["verdict"] == "ok"
    asked = [plan["phases"][name]["sources"]["prose"]["planned_tokens"] for name in PHASES]
    assert plan["sources"]["prose"]["planned_tokens"] == sum(asked)
    assert cli.json("trace", doc_id)["split"] == "validation"
    assert "split" not in cli.json("trace", other)
    assert "held out for validation: shard" in cli.out("trace", doc_id)
    sample = cli.json("trace", "--phase", "validation", "--sample", "0")
    text = sample["documents"][0]["text"][:30]
    assert ": held out for validation" in cli.out("find", text)
    described = MIXED.describe(corpus, corpus.store.newest(MIXED, "validation"))
    assert described["epochs/prose"] == described["epochs/notes"] == 1


def test_a_removed_copy_says_that_what_stays_for_it_is_held_out(corpus: Any, cli: Any) -> None:
    kept = min(read(corpus, source="prose"))
    other = min(tokenized(corpus, "prose").keys() - read(corpus, source="prose").keys())
    for number, table in enumerate(deduped(corpus, "prose", "doc_id", "text")):
        texts = dict(table.iter_rows())
        copied = [texts[doc_id] for doc_id in (kept, other) if doc_id in texts]
        play(corpus, {f"notes/{number}.jsonl": records(*copied)})
    build(corpus)

    manifest = corpus.store.newest("duplicates", "all")
    files = [file for part in manifest.parts if (file := part.file("clusters"))]
    clusters = pl.concat([pl.read_parquet(corpus.store.path_of(manifest, f)) for f in files])
    copies = clusters.filter(pl.col("method").is_not_null())
    by_kept = dict(copies.select("kept_doc_id", "doc_id").iter_rows())
    assert f"of {kept} (prose), which is held out for validation, cluster" in cli.out(
        "trace", by_kept[kept]
    )
    assert cli.json("trace", by_kept[kept])["kept_split"] == "validation"
    assert "held out" not in cli.out("trace", by_kept[other])


def test_reports_say_what_is_held_out(corpus: Any) -> None:
    held = read(corpus, source="prose")
    stages, said = used_stages(corpus.settings), {}
    for name in ("bucketed", "sharded"):
        manifest: Manifest[Any, Any] = corpus.store.newest(stages[name], "prose")
        said[name] = stages[name].describe(corpus, manifest)["held_out"]
    expected = {"tokens": held.total(), "sequences": len(held)}
    assert said["bucketed"] == expected | {"documents": len(held)}
    assert said["sharded"].items() >= expected.items()


def test_a_removed_document_is_in_the_tagged_validation_alone(corpus: Any, cli: Any) -> None:
    held = read(corpus)
    doc_id = next(each for each in sorted(held) if row_of(corpus, each) >= 0)
    cli.out("tag", "v1")
    file, row = corpus.config.parent / "input/prose/a.jsonl", row_of(corpus, doc_id)
    content = file.read_bytes()
    end = content.index(b"\n", row)
    gone = b'{"text": "gone"}'.ljust(end - row)  # the others keep their places, and their ids
    file.write_bytes(content[:row] + gone + content[end:])
    build(corpus)
    cli.out("verify")
    assert read(corpus) == Counter({each: n for each, n in held.items() if each != doc_id})
    assert read(corpus, data="v1") == held
    given = ("--source", "prose", "--format", "megatron", "--split")
    removed = [
        json.loads((folder_of(cli, *given, split) / "manifest.json").read_bytes())
        for split in ("train", "validation")
    ]
    assert [said.get("removed_rows") for said in removed] == [None, 1]
    assert removed[1]["rows"] == len(read(corpus, source="prose"))  # by .idx


def row_of(corpus: Any, doc_id: str) -> int:
    """The place in bytes of a document of prose's first file, else -1."""
    paths = corpus.store.root.glob("raw/prose/*.documents.parquet")
    table = pl.concat([pl.read_parquet(path, columns=["doc_id", "origin"]) for path in paths])
    found = table.filter(doc_id=doc_id).unnest("origin")
    return next((row for file, row in found.select("file", "row").rows() if "a.jsonl" in file), -1)


def test_a_takedown_takes_a_held_out_document(corpus: Any, cli: Any) -> None:
    held = read(corpus)
    doc_id = min(held)
    cli.out("takedown", "--doc", doc_id, "--reason", "asked for")
    build(corpus)
    assert read(corpus) == Counter({each: n for each, n in held.items() if each != doc_id})
    cli.out("takedown", "prove", code=1)  # older states have it
    cli.out("takedown", "prove", "--purge")
    cli.out("takedown", "prove")
    cli.out("gc")
    assert len(read(corpus)) == len(held) - 1


def test_conversations_are_held_out_with_their_masks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = open_corpus(write_chat_corpus(tmp_path, holdout={"share": 0.3}))
    build(corpus)
    loader = CorpusLoader(corpus.store.root, batch_size=2, split="validation", source="asked")
    masks = [batch.loss_mask for batch in loader]
    assert masks
    for mask in masks:
        assert mask is not None and 0 < mask.mean() < 0.9


def test_validation_is_written_in_the_formats_that_phases_have(tmp_path: Path) -> None:
    phases = [
        {"name": "general", "weights": {"prose": 1}, "formats": ["parquet", "mds"]},
        {"name": "late", "weights": {"prose": 1}, "formats": ["npy", "mds", "megatron"]},
    ]
    texts = open_corpus(write_corpus(tmp_path, phases=phases, holdout={"share": 0.1}))
    assert texts.settings.phase("validation").formats == ("parquet", "mds", "npy", "megatron")
    chats = open_corpus(write_chat_corpus(tmp_path, phases=phases, holdout={"share": 0.1}))
    assert chats.settings.phase("validation").formats == ("parquet", "megatron")


def test_commands_say_that_nothing_is_held_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Any
) -> None:
    about = CONFIG | {"holdout": {"share": 1e-9}}
    corpus = open_corpus(write_corpus(tmp_path, **about))
    build(corpus)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    assert "no document is held out" in cli.out("plan")
    refused = cli.err(1, "trace", "--sample", "0", "--phase", "validation")
    assert "no document is held out" in refused
    refused = cli.err(1, "shards", "path", "--source", "prose", "--split", "validation")
    assert "has no shards of documents that are held out" in refused
