"""`corpus trace` names the document of any token, and the fate of any document."""

import shutil

import every_stage
import yaml
from builders import (
    SHARED_TEXT,
    Build,
    deduped,
    open_corpus,
    sentence,
    write_corpus,
    write_jsonl,
)
from prelude import Any, Path, os, pl, pytest, re
from sharded_corpus import remove_rows
from verbs import Cli

from assets.deduped.asset import STAGE as DEDUPED
from assets.raw.asset import STAGE as RAW
from assets.sharded.asset import PASSES, plan_sharded
from assets.sharded.asset import STAGE as SHARDED
from assets.sharded.flat_row_files import open_shard
from assets.stages import STAGES
from assets.text.marks import id_marks
from corpus_loader import CorpusLoader
from corpus_loader.order import order_seed
from corpus_loader.reader import LoaderOptions
from pipeline_defs.commands.terminal import masked_values
from resources.materialize.materialization import manifest_of
from resources.passes import run_passes
from resources.takedowns import Takedown, add_takedown

NASTY = "the mill \x1b[31mred\x07 [bold]of[/nothing] \u202e and its river "
LINE = "this line is on the page of every one of them, and says nothing of the town"
SEQUENCE = 128
CONFIG: dict[str, Any] = {
    "filters": {
        "rules": {"length": {"min_chars": 20}},
        "normalize": {"control_characters": False},
        "language": {"backend": "none"},
    },
    "dedup": {"lines": {"min_count": 3, "min_chars": 20}},
    "tokenizer": {"vocab_size": 300, "sample_bytes": 100_000},
    "buckets": {"mode": "pack", "sequence_length": SEQUENCE},
    "shards": {"target_bytes": 4096, "formats": ["megatron"]},
}


@pytest.fixture
def corpus(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, build: Build
) -> Any:
    """Build a packed corpus once: a copy, a short document, a nasty one, a repeated line."""
    folder = tmp_path_factory.getbasetemp() / "traced"
    if not (folder / "store/mixed/main").exists():
        write_corpus(folder, **CONFIG)
        nasty = {
            "text": NASTY + sentence(77),
            "url": "http://me:hunter2@a/\x1b[2Jb?sig=swordfish",
            "license": "[red]CC0",
        }
        pages = [{"text": f"{sentence(200 + n, 40)}\n{LINE}"} for n in range(4)]
        write_jsonl(folder / "input/notes/nasty.jsonl", [nasty, {"text": "short"}, *pages])
        built = open_corpus(folder / "pipeline.yaml")
        build(built)
        build(built, "mixed")
    monkeypatch.setenv("TOKENMILL_CONFIG", str(folder / "pipeline.yaml"))
    return open_corpus(folder / "pipeline.yaml")


def table(corpus: Any, stage: str, kind: str) -> pl.DataFrame:
    """Read a stage's newest tables of all sources."""
    frames = []
    for source in ("prose", "notes"):
        manifest = corpus.store.newest(stage, source)
        for part in manifest.parts:
            path = corpus.store.path_of(manifest, part.file(kind))
            frames.append(pl.read_ipc(path) if path.suffix == ".arrow" else pl.read_parquet(path))
    return pl.concat(frames)


def documents_of(corpus: Any) -> pl.DataFrame:
    """Read what `deduped` keeps of all sources."""
    return pl.concat([*deduped(corpus, "prose"), *deduped(corpus, "notes")])


def test_every_sample_is_what_the_loader_gives_and_tokenized_has(corpus: Any, cli: Cli) -> None:
    loader = CorpusLoader(
        corpus.store.root, "main", batch_size=1, options=LoaderOptions(with_documents=True)
    )
    batches = list(loader)
    tokens = dict(table(corpus, "tokenized", "tokens").select("doc_id", "tokens").iter_rows())
    documents = {row["doc_id"]: row for row in documents_of(corpus).to_dicts()}

    for number in range(0, len(batches), 3):
        batch, found = (
            batches[number],
            cli.json("trace", "--phase", "main", "--sample", str(number)),
        )
        assert batch.documents is not None
        ids = [bytes(each).hex() for each in batch.documents.doc_ids if each.any()]
        assert [document["doc_id"] for document in found["documents"]] == ids
        assert found["source"] == loader.sources[batch.sources[0]]
        for piece in found["documents"]:
            first, start, length = (piece[key] for key in ("position", "start", "tokens"))
            row = batch.tokens[0, first : first + length].tolist()
            assert row == tokens[piece["doc_id"]][start : start + length]
            document = documents[piece["doc_id"]]
            assert piece["origin"] == document["origin"]
            assert piece["url"] == masked_values(document["url"])
            assert piece["text"][:20] in document["text"]
            assert start or document["text"].startswith(piece["text"])
    assert any(len(batch.documents.doc_ids) > 2 for batch in batches if batch.documents)


def test_a_later_epoch_and_another_seed(corpus: Any, cli: Cli) -> None:
    loader = CorpusLoader(corpus.store.root, "main", batch_size=1, seed=5)
    samples = len(loader)
    found = cli.json("trace", "--phase", "main", "--sample", str(samples + 1), "--seed", "5")
    other = cli.json("trace", "--phase", "main", "--sample", str(samples + 1))
    assert found["epoch"] == other["epoch"] == 1 and found["seed"] == order_seed(5, "main")
    loader.set_epoch(1)
    batch = [*loader][1]
    assert found["source"] == loader.sources[batch.sources[0]]
    at = cli.json("trace", "--shard", found["shard"], "--row", str(found["row"]))
    assert at["documents"] == found["documents"]


def test_a_token_is_pointed_at(corpus: Any, cli: Cli) -> None:
    found = cli.json("trace", "--phase", "main", "--sample", "0", "--token", "60")
    token, piece = found["token"], found["documents"][found["token"]["document"]]
    assert piece["position"] <= 60 < piece["position"] + piece["tokens"]
    assert token["index"] == piece["start"] + 60 - piece["position"]
    encoded = table(corpus, "tokenized", "tokens").filter(doc_id=piece["doc_id"])
    assert encoded["tokens"].list.get(token["index"]).item() == token["id"]

    offset = found["row"] * SEQUENCE + 60
    at = cli.json("trace", "--shard", f"{found['shard']}.bin", "--offset", str(offset))
    assert at == {key: found[key] for key in at}

    text = cli.out("trace", "--phase", "main", "--sample", "0", "--token", "60")
    assert f"{piece['doc_id']} <- the token" in text


def test_padding_is_no_document(corpus: Any, cli: Cli) -> None:
    manifest = corpus.store.newest("sharded", "notes")
    shards = [part for part in manifest.parts if part.file("megatron.bin")]
    last = len(shards) - 1
    shard = ("trace", "--source", "notes", "--shard", str(last), "--token", "127", "--row")
    found = [cli.json(*shard, str(row)) for row in range(shards[last].stats.rows_kept)]
    padded = [each for each in found if each["num_tokens"] < SEQUENCE]
    assert padded and all(each["token"]["document"] is None for each in padded)
    text = cli.out(*shard, str(padded[0]["row"]))
    assert "): padding" in text


def test_a_copied_folder_is_traced_where_it_is(corpus: Any, cli: Cli, tmp_path: Path) -> None:
    found = cli.json("trace", "--phase", "main", "--sample", "1")
    copied = tmp_path / "trainer/data"
    shutil.copytree(Path(found["shard"]).parent, copied)
    path = copied / f"{Path(found['shard']).name}.idx"
    at = cli.json("trace", "--shard", str(path), "--row", str(found["row"]))
    assert at["documents"] == found["documents"]


def test_no_text_acts_on_the_terminal_and_secrets_are_masked(corpus: Any, cli: Cli) -> None:
    documents = documents_of(corpus)
    nasty = documents.filter(pl.col("text").str.contains("red")).row(0, named=True)
    pieces = cli.json("trace", nasty["doc_id"])["sharded"]
    (place,) = [piece for piece in pieces if piece["start"] == 0]
    arguments = ["--source", "notes", "--shard", str(place["shard"]), "--row", str(place["row"])]
    for text in (cli.out("trace", *arguments), cli.out("trace", nasty["doc_id"])):
        assert not any(sign in text for sign in "\x1b\x07\u202e")
        assert "http://***@a/␛[2Jb?sig=***" in text and "[red]CC0" in text
    assert cli.json("trace", nasty["doc_id"])["raw"]["url"] == "http://***@a/\x1b[2Jb?sig=***"
    assert "[bold]of[/nothing]" in cli.out("trace", *arguments)


def test_a_document_is_followed_through_the_stages(corpus: Any, cli: Cli) -> None:
    documents = documents_of(corpus)
    tokens = dict(table(corpus, "tokenized", "tokens").select("doc_id", "tokens").iter_rows())
    longest = max(tokens, key=lambda doc_id: len(tokens[doc_id]))

    found = cli.json("trace", longest[:12].upper())

    origin = documents.filter(doc_id=longest)["origin"].item()
    assert found["doc_id"] == longest and found["raw"]["origin"] == origin
    assert found["filtered"] == {"kept": True, "reasons": []}
    assert found["duplicates"] is None and found["deduped"] == {"kept": True, "changes": []}
    assert found["tokenized"] == {"tokens": len(tokens[longest])}
    pieces = sorted((piece["start"], piece["tokens"]) for piece in found["sharded"])
    assert len(pieces) > 1
    assert [start for start, _ in pieces] == [n * SEQUENCE for n in range(len(pieces))]
    assert sum(length for _, length in pieces) == len(tokens[longest])
    for piece in found["sharded"]:
        row = cli.json(
            "trace", "--source", found["source"], "--shard", str(piece["shard"]), "--row",
            str(piece["row"]),
        )  # fmt: skip
        assert longest in [document["doc_id"] for document in row["documents"]]
    assert "tokenized: " in cli.out("trace", longest)


def test_why_a_document_is_not_there(corpus: Any, cli: Cli) -> None:
    raw = table(corpus, "raw", "documents")
    short = raw.filter(text="short")["doc_id"].item()
    found = cli.json("trace", short)
    assert found["filtered"] == {"kept": False, "reasons": ["length.too_short"]}
    assert found["deduped"] == {"kept": False, "changes": []}
    assert found["tokenized"] is None and found["sharded"] == []
    assert "filtered: rejected: length.too_short" in cli.out("trace", short)

    page = raw.filter(pl.col("text").str.contains(LINE))["doc_id"].to_list()[-1]
    (change,) = cli.json("trace", page)["deduped"]["changes"]
    assert (change["step"], change["cut_chars"]) == ("lines", len(LINE) + 1)
    assert f"deduped: kept, lines cut {len(LINE) + 1} characters" in cli.out("trace", page)

    both = raw.filter(text=SHARED_TEXT)["doc_id"].to_list()
    fates = {doc_id: cli.json("trace", doc_id) for doc_id in both}
    (copy,) = [doc_id for doc_id in both if not fates[doc_id]["deduped"]["kept"]]
    (survivor,) = [doc_id for doc_id in both if doc_id != copy]
    assert fates[copy]["duplicates"]["kept_doc_id"] == survivor and not fates[copy]["sharded"]
    assert f"similarity 1.000) of {survivor}" in cli.out("trace", copy)
    assert "duplicates: stays for cluster" in cli.out("trace", survivor)


def test_every_removed_document_has_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    question = sentence(3, 23)
    quiz = {"name": "quiz", "where": "quiz.jsonl", "fields": ["question"]}
    dedup = {"lines": {"min_count": 3, "min_chars": 20}, "decontamination": {"sets": [quiz]}}
    corpus = open_corpus(write_corpus(tmp_path, **CONFIG | {"dedup": dedup}))
    write_jsonl(tmp_path / "quiz.jsonl", [{"question": question}])
    pages = [{"text": f"{LINE}\n{LINE}{n}"} for n in range(4)] + [{"text": "short"}]
    asked = {"text": f"Somebody asked: {question}"}
    write_jsonl(tmp_path / "input/notes/more.jsonl", [asked, *pages, *[{"text": LINE}] * 3])
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    stages = STAGES[: STAGES.index(DEDUPED) + 1]
    every_stage.build(corpus, [stage for stage in stages if stage.is_used(corpus.settings)])
    kept = set(documents_of(corpus)["doc_id"])
    raw = {row["text"]: row["doc_id"] for row in table(corpus, "raw", "documents").to_dicts()}

    said = {doc_id: cli.out("trace", doc_id) for doc_id in raw.values() if doc_id not in kept}

    found = said[raw[asked["text"]]]
    assert re.search(r"removed, contaminated by item .+ of evaluation set quiz \(100% of it", found)
    assert question[:40] in found
    assert all(
        re.search(r"rejected it|removed as a copy of|removed, (contam|too little)", text)
        for text in said.values()
    )
    assert "`filtered` rejected it" in said[raw["short"]]


def test_a_document_that_is_gone_from_the_input_or_taken_down_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    corpus = open_corpus(write_corpus(tmp_path, **CONFIG))
    write_jsonl(tmp_path / "input/notes/more.jsonl", [{"text": "to be removed"}])
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    every_stage.build(corpus, [RAW])
    doc_id = table(corpus, "raw", "documents").filter(text="to be removed")["doc_id"].item()
    assert "raw[notes] has it, and `filtered` has not read that yet" in cli.err(2, "trace", doc_id)

    (tmp_path / "input/notes/more.jsonl").unlink()
    every_stage.build(corpus, [RAW])
    assert "An older state of raw[notes] has it" in cli.err(2, "trace", doc_id)

    takedown = Takedown("doc", "asked by its author", ids=b"".join(id_marks([doc_id])))
    add_takedown(corpus.store.root, takedown)
    assert "Takedown 1 removed it (asked by its author)" in cli.err(2, "trace", doc_id)


def test_the_language_of_a_document_in_another_one_is_named(
    tmp_path: Path,
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    config = write_corpus(tmp_path, filters={"rules": {"length": None}})
    content = yaml.safe_load(config.read_text())
    content["sources"][1]["language"] = "en"
    config.write_text(yaml.safe_dump(content))
    german = "Der Fluss stieg in jenem Jahr zweimal, und die Leute verließen ihre Häuser am Ufer. "
    write_jsonl(tmp_path / "input/notes/german.jsonl", [{"text": german * 3}])
    built = open_corpus(config)
    build(built, "raw", "classifier", "filtered")
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    doc_id = table(built, "raw", "documents").filter(text=german * 3)["doc_id"].item()

    found = cli.json("trace", doc_id)["filtered"]

    assert found == {"kept": True, "reasons": [], "other_language": "de"}
    assert "filtered: kept; in de, none of its source's languages" in cli.out("trace", doc_id)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "given: nothing"),
        (["--phase", "main"], 2, "given: phase"),
        (["--phase", "main", "--sample", "1", "--row", "1"], 2, "given: phase, row, sample"),
        (["--phase", "mian", "--sample", "1"], 2, "did you mean main"),
        (["--source", "porse", "--shard", "0", "--row", "1"], 2, "did you mean prose"),
        (["--shard", "0", "--row", "1"], 2, "--shard 0 is a number: give its --source"),
        (["--source", "prose", "--shard", "99", "--row", "1"], 1, "shards: no 99"),
        (["--source", "prose", "--shard", "0", "--row", "9999"], 1, "there is no row 9,999"),
        (["--phase", "main", "--sample", "0", "--token", "128"], 1, "128 tokens: no 128"),
        (["--shard", "nowhere/shard-0.bin", "--row", "0"], 1, "nowhere/shard-0.idx: missing"),
        (["--phase", "main", "--sample", "0", "--data", "f0" * 16], 1, "has the fingerprint f0f0"),
        (["abc"], 2, "'abc' is too short"),
        (["ffff0000ffff"], 2, "there is no document 'ffff0000ffff'"),
    ],
)
def test_what_is_not_there_is_said(
    corpus: Any,
    cli: Cli,
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    assert message in cli.err(code, "trace", *arguments)


def test_a_shard_that_is_none_is_refused(corpus: Any, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.idx").write_bytes(b"MMIDIDX")
    assert "is no index of a flat token file" in cli.err(
        1, "trace", "--shard", str(tmp_path / "x.idx"), "--row", "0"
    )
    offset = cli.err(
        1, "trace", "--shard", cli.json("trace", "--phase", "late", "--sample", "0")["shard"],
        "--offset", "99999999",
    )  # fmt: skip
    assert "there is no 99,999,999" in offset


@pytest.mark.parametrize("suffix", ["idx", "bin", "spans"])
@pytest.mark.parametrize("share", [0, 0.002, 0.02, 0.5])
def test_a_shard_that_was_cut_is_refused(
    corpus: Any, cli: Cli, tmp_path: Path, suffix: str, share: float
) -> None:
    found = cli.json("trace", "--phase", "main", "--sample", "1")
    shutil.copytree(Path(found["shard"]).parent, tmp_path / "data")
    stem = tmp_path / "data" / Path(found["shard"]).name
    last = stem.with_suffix(".bin").stat().st_size // (2 * SEQUENCE) - 1
    path = stem.with_suffix(f".{suffix}")
    os.truncate(path, int(path.stat().st_size * share))
    assert path.name in cli.err(1, "trace", "--shard", str(stem), "--row", str(last))


@pytest.mark.parametrize("number", ["9" * 19, "9" * 9000, "-1", "1.5", "x"])
def test_numbers_that_are_none_are_refused(cli: Cli, number: str) -> None:
    said = cli.err(2, "trace", "--phase", "main", f"--sample={number}")
    assert "is no whole number from 0 to 10^18" in said


def test_an_older_mixture_is_traced_though_its_shards_were_replaced(
    corpus: Any, cli: Cli, tmp_path: Path, build: Build,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shutil.copytree(corpus.config.parent, tmp_path / "copy")
    config = tmp_path / "copy/pipeline.yaml"
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    before = cli.json("trace", "--phase", "main", "--sample", "7")
    for seed in (1, 2, 3, 4):
        rebuild_shards(config, seed)
    assert cli.json("trace", "--phase", "main", "--sample", "7") == before
    build(open_corpus(config), "mixed")

    now = cli.json("trace", "--phase", "main", "--sample", "7")
    older = cli.json("trace", "--phase", "main", "--sample", "7", "--data", before["data"])

    assert now["data"] != before["data"] and older == before
    assert f"data: {now['data']}" in cli.out("trace", "--phase", "main", "--sample", "7")
    options = LoaderOptions(data=before["data"], verify="first")
    assert len([*CorpusLoader(tmp_path / "copy/store", "main", options=options)])


def rebuild_shards(config: Path, seed: int) -> None:
    """Materialize `sharded` in another order."""
    settings = yaml.safe_load(config.read_text())
    settings["shards"]["seed"] = seed
    config.write_text(yaml.safe_dump(settings, sort_keys=False))
    corpus = open_corpus(config)
    for source in ("prose", "notes"):
        plan, folder = plan_sharded(corpus, source), corpus.store.partition("sharded", source)
        with folder.writing(corpus.settings.keep_manifests, SHARDED.keep):
            outcomes = run_passes(corpus, plan.tasks, PASSES)
            folder.commit(manifest_of(SHARDED, source, plan, outcomes))


def test_a_phase_that_is_not_mixed_yet_is_said(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))
    message = cli.err(1, "trace", "--phase", "main", "--sample", "0")
    assert "mixed[main] is not materialized" in message
    assert "there is no document" in cli.err(2, "trace", "abcdef")


def test_removed_rows_are_neither_given_nor_taken_for_present(
    corpus: Any, cli: Cli, tmp_path: Path, build: Build,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shutil.copytree(corpus.config.parent, tmp_path / "copy")
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "copy/pipeline.yaml"))
    corpus = open_corpus(tmp_path / "copy/pipeline.yaml")
    manifest = corpus.store.newest("sharded", "notes")
    part = next(part for part in manifest.parts if part.file("megatron.bin"))
    stem = corpus.store.path_of(manifest, part.file("megatron.bin")).with_suffix("")
    ids = [bytes(each).hex() for each in open_shard(stem).read_row(0)[1].doc_ids]
    before = {each: cli.json("trace", each) for each in ids}
    remove_rows(corpus.store, "notes", {part.name: [0]})
    build(corpus, "mixed")

    for each, seen in before.items():
        now, gone = cli.json("trace", each), [row for row in seen["sharded"] if at(row, 0, 0)]
        assert gone and now["sharded"] == [row for row in seen["sharded"] if row not in gone]
        assert (seen["removed_rows"], now["removed_rows"]) == (0, 1)
        assert "removed rows with tokens of it, no longer drawn: 1" in cli.out("trace", each)
    place = ("--shard", f"{stem}.bin", "--offset")
    assert cli.json("trace", *place, "5")["is_removed"] is True
    assert "row 0: removed, no longer drawn" in cli.out("trace", *place, "5")
    assert "is_removed" not in cli.json("trace", *place, str(SEQUENCE))
    assert (
        cli.json("trace", "--source", "notes", "--shard", "0", "--row", "0")["is_removed"] is True
    )
    check_samples(corpus, cli, (str(stem), 0))


def at(row: dict[str, Any], shard: int, number: int) -> bool:
    """Return whether a row that a document has tokens in has that place."""
    return (row["shard"], row["row"]) == (shard, number)


def check_samples(corpus: Any, cli: Cli, gone: tuple[str, int]) -> None:
    """Compare every sample of an epoch with its trace, of which none is in the row `gone`."""
    loader = CorpusLoader(
        corpus.store.root, "main", batch_size=1, options=LoaderOptions(with_documents=True)
    )
    for number, batch in enumerate(loader):
        found = cli.json("trace", "--phase", "main", "--sample", str(number))
        assert batch.documents is not None
        ids = [bytes(each).hex() for each in batch.documents.doc_ids if each.any()]
        assert [document["doc_id"] for document in found["documents"]] == ids
        assert (found["shard"], found["row"]) != gone and "is_removed" not in found
