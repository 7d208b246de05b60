"""Takedowns from request to proof: what is meant is gone from every file of the store."""

import shutil

from builders import open_corpus, sentence, write_corpus, write_jsonl
from every_stage import build as build_stages
from planted_documents import (
    NUM_PLANTED,
    planted_text,
    url_of,
    word,
    write_planted,
)
from prelude import Any, Iterator, Path, json, np, pl, pytest, re
from tokenizers import Tokenizer
from verbs import Cli

from assets.deduped.evaluation_asset import STAGE as EVALUATION
from assets.filtered.asset import STAGE as FILTERED
from assets.raw.asset import STAGE as RAW
from assets.sharded.asset import plan_sharded
from assets.stages import used_stages
from pipeline_defs.commands.main import main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build and mix the corpus with planted documents; tests take copies."""
    folder = tmp_path_factory.mktemp("planted")
    corpus = write_planted(folder)
    build(corpus)
    yield folder


@pytest.fixture
def corpus(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Copy the built corpus, and let commands find it."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    return open_corpus(tmp_path / "pipeline.yaml")


def build(corpus: Any) -> None:
    build_stages(corpus, used_stages(corpus.settings).values())


def newest_fingerprints(corpus: Any, stage: str, source: str) -> dict[str, str]:
    manifest = corpus.store.newest(stage, source)
    return {part.name: part.fingerprint for part in manifest.parts}


def tokens_of(corpus: Any, number: int) -> tuple[bytes, list[int]]:
    """Return token ids of words in the middle of a planted text, as in every copy of it."""
    manifest = corpus.store.newest("tokenizer", "all")
    path = corpus.store.path_of(manifest, manifest.parts[0].files[0])
    middle = "".join(f" {word(100 * number + i)} and the" for i in range(20, 24))
    ids = Tokenizer.from_file(str(path)).encode(middle, add_special_tokens=False).ids
    return np.array(ids, np.uint16).tobytes(), ids


def files_with(corpus: Any, number: int) -> set[str]:
    """Return the folders of the store with a planted text: read by nothing of the project."""
    spelled, ids = tokens_of(corpus, number)
    own, found = word(100 * number + 21).encode(), set()
    for path in corpus.store.root.rglob("*"):
        if not path.is_file():
            continue
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content = pl.read_parquet(path).write_json().encode()
        if (
            own in content
            or spelled in content
            or str(ids)[1:-1].replace(" ", "").encode() in (content)
        ):
            found.add(path.relative_to(corpus.store.root).parts[0])
    return found


def doc_id_of(corpus: Any, url: str) -> str:
    paths = corpus.store.root.glob("raw/planted/*.documents.parquet")
    return str(pl.concat(map(pl.read_parquet, paths)).filter(url=url)["doc_id"].item())


def sharding(corpus: Any) -> tuple[float, int]:
    """Return the share that may be marked in the next shards, and the takedowns they obey."""
    [ledger] = plan_sharded(corpus, "planted").tasks
    return ledger.payload.rewrite_share, len(ledger.payload.takedowns)


def dead_keys(corpus: Any) -> int:
    """Count the keys of the index whose part is no longer signed."""
    manifest = corpus.store.newest("band_index", "all")
    live = [entry["id"] for entry in manifest.provenance["ledger"]]
    files = [file for part in manifest.parts if (file := part.file("entries"))]
    arrays = [np.fromfile(corpus.store.path_of(manifest, file), np.uint64) for file in files]
    parts = np.concatenate([each.reshape(2, -1)[1] for each in arrays]) >> np.uint64(32)
    return int((~np.isin(parts, live)).sum())


EVERYWHERE = {"raw", "filtered", "deduped", "tokenized", "bucketed", "sharded", "mixed"}


def test_a_hundred_documents_and_their_copies_are_found_and_gone(
    corpus: Any, cli: Cli, tmp_path: Path
) -> None:
    assert files_with(corpus, 42) >= EVERYWHERE
    before = newest_fingerprints(corpus, "filtered", "prose")
    assert main(["states", "tag", "v1"]) == 0
    (tmp_path / "text.txt").write_text(planted_text(3).replace(" ", "\n"))
    requests = [["--url", url_of(number)] for number in range(3)]
    requests += [["--match", str(tmp_path / "text.txt")], ["--doc", doc_id_of(corpus, url_of(4))]]
    requests.append(["--domain", "example.org"])
    said = "".join(
        cli.out("takedown", *each, "--reason", "asked for", "--near") for each in requests
    )
    assert said.count(": 3 documents in") == 5, "an original, its copy, and its near copy"
    assert f": {3 * (NUM_PLANTED - 5)} documents in" in said
    assert all(f"/{name}: row" in said for name in ("a.jsonl", "g.parquet", "h.warc", "i.txt"))
    assert main(["takedown", "prove"]) == 1

    build(corpus)

    assert corpus.store.newest("raw", "planted").stats.rejected == {"taken_down": 300}
    assert corpus.store.newest("raw", "planted").stats.rows_kept == 9
    assert newest_fingerprints(corpus, "filtered", "prose") == before
    told = json.loads(cli.out("takedown", "prove", "--json", code=1))
    assert {each["manifest"] for each in told["held"] if each["stage"] == "raw"} == {1}
    assert {each["takedown"] for each in told["remaining"]} <= {*range(1, len(requests) + 1)}
    said = cli.out("takedown", "prove", code=1)
    assert "--purge --tag v1 removes it" in said, "older manifests have them"
    said = cli.out("takedown", "prove", "--purge", code=1)
    assert "manifest 1 stays: the tag v1 names it" in said
    said = cli.out("takedown", "prove", "--purge", "--tag", "v1")
    assert "The tag v1 is deleted: it named" in said
    assert main(["takedown", "prove"]) == 0
    assert not any(files_with(corpus, number) for number in (0, 3, 4, 42, 99))
    assert main(["verify", "--fast"]) == 0


def test_a_near_copy_is_meant_although_nobody_asked_for_it(corpus: Any, cli: Cli) -> None:
    asked = ("takedown", "--url", url_of(1), "--reason", "asked for")
    told = cli.json(*asked, "--dry-run")
    [request] = told["requests"]
    assert (request["number"], request["documents"], len(told["documents"])) == (None, 3, 3)
    assert told["next"] == []
    said = cli.out(*asked)
    doc_id = doc_id_of(corpus, url_of(1))
    assert ": 3 documents in" in said and "Near copies that stay" not in said
    assert sharding(corpus) == (0.0, 0), "no row stays marked until the next shards"

    build(corpus)

    history = cli.json("states", "history", "planted")
    of_states = [state["takedowns"] for state in history["entries"]]
    assert of_states == [[1], []]
    said = cli.out("takedown", "prove", code=1)
    assert f"Document {doc_id} ({url_of(1)}) of takedown 1 (asked for) remains in" in said
    remaining = json.loads(cli.out("takedown", "prove", "--json", code=1))["remaining"]
    assert (doc_id, url_of(1)) in {(each["document"], each["url"]) for each in remaining}
    assert main(["takedown", "prove", "--purge"]) == 0
    assert not files_with(corpus, 1)
    assert corpus.store.newest("sharded", "planted").stats.rows_kept > 20
    assert dead_keys(corpus) == 0


def test_a_quotation_that_stays_is_named_by_the_proof(
    corpus: Any, cli: Cli, tmp_path: Path
) -> None:
    text = planted_text(1)
    quoting = f"{sentence(900, 60)} {text[: len(text) // 4]} {sentence(901, 60)}"
    address = "https://quotes.example.net/1"
    write_jsonl(tmp_path / "input/planted/q.jsonl", [{"url": address, "text": quoting}])
    cli.out("takedown", "--url", url_of(1), "--reason", "asked for")
    build(corpus)

    said = cli.out("takedown", "prove", "--purge")

    assert re.search(rf"\({address}\) has \d passages? of takedown 1\.", said)
    assert re.search(r"`corpus takedown --doc \w+ --reason \.\.\.` removes it", said)


def test_a_request_that_means_nothing_changes_no_part_and_is_kept_for_later_documents(
    corpus: Any, cli: Cli, tmp_path: Path
) -> None:
    before = newest_fingerprints(corpus, "raw", "planted")
    said = cli.out("takedown", "--url", "https://later.example/1/", "--reason", "asked for")
    assert "0 documents" in said
    later = [{"url": "http://www.later.example/1", "text": planted_text(500)}]
    write_jsonl(tmp_path / "input/planted/z.jsonl", later)

    build_stages(corpus, [RAW])

    after = corpus.store.newest("raw", "planted")
    assert before.items() <= {part.name: part.fingerprint for part in after.parts}.items()
    assert after.stats.rejected == {"taken_down": 1}


def test_a_request_holds_no_text_no_url_and_no_id(corpus: Any) -> None:
    assert main(["takedown", "--url", url_of(2), "--reason", "why", "--near"]) == 0
    [path] = (corpus.store.root / "_takedowns").glob("*")
    content = path.read_bytes()
    doc_id = doc_id_of(corpus, url_of(2))
    secrets = [url_of(2), "site2.example.com", word(200), doc_id, doc_id[:8]]
    assert not any(each.encode() in content for each in secrets)
    assert bytes.fromhex(doc_id) not in content
    assert b"why" in content


@pytest.mark.parametrize("by", ["url", "doc", "domain", "match"])
def test_a_text_that_returns_within_more_stays_out(by: str, corpus: Any, tmp_path: Path) -> None:
    text, menu = planted_text(7), "Home | About\n\n{}\n\nAll rights reserved."
    (tmp_path / "text.txt").write_text(text)
    write_jsonl(tmp_path / "input/prose/first.jsonl", [{"text": menu.format(text)}])
    build_stages(corpus, [RAW])
    asked = {"url": url_of(7), "doc": doc_id_of(corpus, url_of(7)), "domain": "example.org"}
    asked["match"] = str(tmp_path / "text.txt")

    assert main(["takedown", f"--{by}", asked[by], "--reason", "asked for"]) == 0
    longer = f"{planted_text(600)}\n\n{text}\n\n{planted_text(601)}"
    kept = [text[: len(text) // 4], planted_text(602)]
    later = [menu.format(text.replace(" ", "\n")), longer, *kept]
    write_jsonl(tmp_path / "input/prose/later.jsonl", [{"text": each} for each in later])
    build_stages(corpus, [RAW])

    manifest = corpus.store.newest("raw", "prose")
    paths = [corpus.store.path_of(manifest, part.file("documents")) for part in manifest.parts]
    texts = pl.concat(map(pl.read_parquet, paths))["text"].to_list()
    assert manifest.stats.rejected == {"taken_down": 3}
    assert set(kept) <= set(texts)


@pytest.mark.parametrize("is_there", [True, False], ids=["before", "after"])
def test_a_text_that_a_correction_restores_stays_out_until_withdrawn(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Lines between every five words hide a text from `raw`, until the filters remove them."""
    lines = {"c4": {"end_marks": None, "min_words": 0}}
    corpus = open_corpus(write_corpus(tmp_path, filters={"lines": lines}))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    words = planted_text(7).split(" ")
    fives = [" ".join(words[i : i + 5]) for i in range(0, len(words), 5)]
    quoted = fives[: len(fives) // 4]  # too little to be meant
    own = [[planted_text(8)], fives, [*quoted, planted_text(9)]]
    records = [{"text": "\nPlease enable JavaScript.\n".join(lines)} for lines in own]
    (tmp_path / "text.txt").write_text(planted_text(7))

    def filtered() -> Any:
        build_stages(corpus, [RAW, FILTERED])
        return corpus.store.newest("filtered", "prose")

    if is_there:
        write_jsonl(tmp_path / "input/prose/c.jsonl", records)
    before = filtered()
    assert before.stats.rows_kept == 40 + 3 * is_there
    cli.out("takedown", "--match", str(tmp_path / "text.txt"), "--reason", "asked for")
    write_jsonl(tmp_path / "input/prose/c.jsonl", records)

    after = filtered()

    by_id, by_text = corpus.store.newest("raw", "prose").stats.rejected, after.stats.rejected
    assert after.stats.rows_kept == 42
    assert (by_id, by_text)[not is_there] == {"taken_down": 1}
    assert not is_there or before.parts[-1].fingerprint != after.parts[-1].fingerprint
    assert "Stays on purpose" in cli.out("takedown", "prove", "--purge")
    cli.out("takedown", "withdraw", "1", "--reason", "settled")
    assert filtered().stats.rows_kept == 43


@pytest.mark.parametrize("is_there", [True, False], ids=["before", "after"])
def test_an_item_of_an_evaluation_set_leaves_the_store(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    sets = [{"name": "quiz", "where": "quiz.jsonl", "fields": ["question", "answer"]}]
    corpus = open_corpus(write_corpus(tmp_path, dedup={"decontamination": {"sets": sets}}))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    items = [{"question": planted_text(n), "answer": "No."} for n in (7, 8)]
    (tmp_path / "text.txt").write_text(planted_text(7))

    def indexed() -> Any:
        build_stages(corpus, [EVALUATION])
        return corpus.store.newest("evaluation", "all").parts[0]

    write_jsonl(tmp_path / "quiz.jsonl", items if is_there else items[1:])
    before = indexed()
    cli.out("takedown", "--match", str(tmp_path / "text.txt"), "--reason", "asked for")
    assert is_there or indexed() == before, "a request that means no item makes no index again"
    write_jsonl(tmp_path / "quiz.jsonl", items)

    after = indexed()

    assert (after.stats.rows_kept, after.stats.rejected) == (1, {"taken_down": 1})
    cli.out("takedown", "prove", "--purge")
    cli.out("takedown", "withdraw", "1", "--reason", "settled")
    assert indexed().stats.rows_kept == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--domain", "co.uk"], "no domain that one owner can have"),
        (["--doc", "abc"], "give all of its 32 hex digits"),
        (["--url", "https://a.example/", "--domain", "a.example"], "give either"),
        (["--match", "missing.txt"], "cannot be read"),
    ],
)
def test_a_wrong_request_is_refused(
    arguments: list[str], message: str, corpus: Any, cli: Cli
) -> None:
    assert message in cli.err(2, "takedown", *arguments, "--reason", "why")
    assert not (corpus.store.root / "_takedowns").exists()
