"""`corpus duplicates` finds a cluster, shows the differences, and escapes all texts."""

import html

from builders import Build, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, json, pl, pytest
from verbs import Cli

from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA
from resources.store.records import Manifest, PartRecord, Stats
from resources.store.store import PartWriter

NASTY = "the old \x1b[31mred\x07 <script>alert(1)</script> [bold]of[/nothing] \u202e {x} end"
SHORT = "short"
SCHEMA = {"row": pl.UInt32} | {k: v for k, v in CLUSTER_SCHEMA.items() if k != "ref"}
Place = tuple[str, str]


def documents(corpus: Any, source: str) -> pl.DataFrame:
    """Read the documents that `filtered` kept of a source, with row and part."""
    manifest = corpus.store.newest("filtered", source)
    frames = [
        pl.read_parquet(corpus.store.path_of(manifest, part.file("documents")))
        .with_row_index("row")
        .with_columns(part=pl.lit(part.name), source=pl.lit(source))
        for part in manifest.parts
    ]
    return pl.concat(frames)


def write_clusters(
    corpus: Any,
    clusters: list[list[dict[str, Any]]],
    how: tuple[float | None, str] = (0.875, "minhash"),
) -> None:
    """Write the stage `duplicates` by hand: the first document of each cluster survives."""
    rows: dict[Place, list[tuple[Any, ...]]] = {
        (source, part.name): []
        for source in ("prose", "notes")
        for part in corpus.store.newest("filtered", source).parts
    }
    for members in clusters:
        first, cluster_id = members[0], min(member["doc_id"] for member in members)
        for member in members:
            kept = (len(members), first["doc_id"], first["source"])
            found = (None, None) if member is first else how
            row = (member["row"], member["doc_id"], cluster_id, *kept, *found)
            rows[member["source"], member["part"]].append(row)
    folder = corpus.store.partition("duplicates", "all")
    parts: list[PartRecord] = []
    with folder.writing(1):
        for number, ((source, part), found) in enumerate(rows.items()):
            writer = PartWriter(folder, f"clusters-{number:04d}", f"{number:032x}")
            writer.write_parquet("clusters", pl.DataFrame(found, SCHEMA, orient="row"))
            parts.append(writer.publish(Stats(numbers={"source": source, "part": part})))
        folder.commit(Manifest("duplicates", "all", "f" * 32, "1", {}, tuple(parts), Stats()))


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build) -> Any:
    """Make clusters of three (over two sources) and two; one document is filtered out."""
    filters = {
        "rules": {"length": {"min_chars": 10}},
        "normalize": {"control_characters": False},
        "language": {"backend": "none"},
    }
    path = write_corpus(tmp_path, filters=filters)
    long = " ".join(sentence(n) for n in range(50, 60))
    write_jsonl(
        tmp_path / "input/prose/c.jsonl", [{"text": f"{long} {NASTY}", "url": "http://a\x1b<b>"}]
    )
    copies = [
        {"text": f"{long} {NASTY.replace('the old', 'the new')}"},
        {"text": f"{long} {NASTY}"},
    ]
    write_jsonl(tmp_path / "input/notes/copies.jsonl", [*copies, {"text": SHORT}])
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    corpus = open_corpus(path)
    build(corpus, "raw", "filtered")
    prose, notes = documents(corpus, "prose"), documents(corpus, "notes")
    nasty = pl.col("text").str.contains("script", literal=True)
    trio = prose.filter(nasty).to_dicts() + notes.filter(nasty).to_dicts()
    write_clusters(corpus, [trio, notes.filter(~nasty).head(2).to_dicts()])
    return corpus


def nasty_ids(corpus: Any) -> list[str]:
    """Return the ids of survivor, edited copy and equal copy."""
    is_nasty = pl.col("text").str.contains("script", literal=True)
    both = pl.concat([documents(corpus, name).filter(is_nasty) for name in ("prose", "notes")])
    return both["doc_id"].to_list()


def test_a_cluster_is_shown_from_any_of_its_documents(corpus: Any, cli: Cli) -> None:
    ids = nasty_ids(corpus)

    shown = [
        cli.out("duplicates", "show", doc_id) for doc_id in (*ids, ids[1][:12], ids[2].upper())
    ]

    assert len(set(shown)) == 1
    text = shown[0]
    assert text.index(f"{ids[0]}: stays") < text.index(f"{ids[1]}: removed")
    assert f"cluster: {min(ids)}" in text and "documents: 3" in text
    assert "origin: input/notes/copies.jsonl, byte 0" in text
    assert "method: minhash" in text and "similarity: 0.875" in text


def test_differences_are_marked_and_the_rest_is_folded(corpus: Any, cli: Cli) -> None:
    text = cli.out("duplicates", "show", nasty_ids(corpus)[0], "--context", "2")

    assert "[-old-]{+new+}" in text
    assert " the [-old-]" in text and "characters ...]" in text
    assert text.count("The same text.") == 1
    assert text.count(" ".join(sentence(50).split()[:3])) == 1  # of the equal copy, once


def test_a_copy_with_an_equal_field_only_has_no_similarity(corpus: Any, cli: Cli) -> None:
    pair = documents(corpus, "prose").head(2).to_dicts()
    write_clusters(corpus, [pair], how=(None, "field:url"))

    text = cli.out("duplicates", "show", pair[1]["doc_id"])

    assert "method: field:url\nsimilarity: -\n" in text and text.count("similarity") == 1


def test_no_text_acts_on_the_terminal(corpus: Any, cli: Cli) -> None:
    text = cli.out("duplicates", "show", nasty_ids(corpus)[0], "--context", "60")

    assert not any(sign in text for sign in ("\x1b", "\x07", "\u202e"))
    assert "[bold]of[/nothing]" in text and "␛[31mred" in text and "http://a␛<b>" in text


def test_no_text_acts_on_the_page(corpus: Any, cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    cli.out("duplicates", "show", nasty_ids(corpus)[0], "--context", "60", "--html", str(target))

    page = target.read_text()
    assert "<del>old</del><ins>new</ins>" in page
    assert "<script" not in page and html.escape("<script>alert(1)</script>") in page
    assert "http://a␛&lt;b&gt;" in page
    assert "\x1b" not in page and "\u202e" not in page


def test_of_a_large_cluster_the_first_are_shown(corpus: Any, cli: Cli) -> None:
    prose = documents(corpus, "prose").to_dicts()
    write_clusters(corpus, [[prose[30], *prose[:30]]])

    text = cli.out("duplicates", "show", prose[3]["doc_id"], "--most", "4")

    assert text.count(": removed") == 3 and f"{prose[30]['doc_id']}: stays" in text
    assert "and 27 more" in text


def test_a_document_in_no_cluster_is_refused_with_the_reason(corpus: Any, cli: Cli) -> None:
    alone = documents(corpus, "prose")["doc_id"][0]
    manifest = corpus.store.newest("filtered", "notes")
    paths = [corpus.store.path_of(manifest, part.file("decisions")) for part in manifest.parts]
    rejected = pl.scan_parquet(paths).filter(~pl.col("kept")).collect()["doc_id"][0]
    for prefix, message in (
        (alone, f"{alone} (prose) is in no cluster"),
        (rejected, "(notes) was filtered out (length.too_short)"),
        ("xyzxyz", "there is no document 'xyzxyz'"),
        ("abc", "at least 4 characters"),
    ):
        assert message in cli.err(2, "duplicates", "show", prefix)


def test_a_prefix_of_several_documents_is_refused(
    corpus: Any, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline_defs.commands.published_documents.LEAST_PREFIX", 1)
    prose = documents(corpus, "prose").to_dicts()
    write_clusters(corpus, [prose])

    first = [row["doc_id"][0] for row in prose]
    common = max(first, key=first.count)
    message = cli.err(2, "duplicates", "show", common)
    assert f"{common!r} begins the ids of" in message and "Give more of it" in message


@pytest.mark.parametrize(
    ("file", "whose"),
    [("notes/copies.jsonl", "The text"), ("prose/c.jsonl", "The survivor's text")],
)
def test_a_text_that_is_gone_is_said(
    corpus: Any, cli: Cli, build: Build, file: str, whose: str
) -> None:
    ids = nasty_ids(corpus)
    (corpus.config.parent / "input" / file).unlink()
    build(corpus, "raw", "filtered")

    text = cli.out("duplicates", "show", ids[0])

    assert text.count(f"{whose} is not among the newest filtered documents") == 2
    assert f"{ids[1]}: removed" in text


def test_clusters_are_listed_by_size(corpus: Any, cli: Cli) -> None:
    ids = nasty_ids(corpus)
    found = cli.json("duplicates", "list")

    assert [row["cluster_size"] for row in found] == [3, 2]
    assert found[0] == {
        "cluster_id": min(ids),
        "cluster_size": 3,
        "kept_doc_id": ids[0],
        "kept_source": "prose",
    }
    assert len(cli.json("duplicates", "list", "--source", "prose")) == 1
    assert len(cli.json("duplicates", "list", "--min-size", "3")) == 1
    assert len(cli.json("duplicates", "list", "--most", "1")) == 1
    assert min(ids) in cli.out("duplicates", "list")
    assert "did you mean prose" in cli.err(2, "duplicates", "list", "--source", "pros")


def test_a_list_without_clusters_says_what_was_looked_for(corpus: Any, cli: Cli) -> None:
    assert (
        cli.out("duplicates", "list", "--min-size", "9") == "No cluster of 9 or more documents.\n"
    )
    write_clusters(corpus, [documents(corpus, "notes").head(2).to_dicts()])
    found = cli.out("duplicates", "list", "--source", "prose")
    assert found == "No cluster of 2 or more documents with a document of 'prose'.\n"
    assert cli.json("duplicates", "list", "--source", "prose") == []


def test_the_ledger_is_printed_as_the_config_takes_it(corpus: Any, cli: Cli) -> None:
    from assets.deduped.index.ledger import Ingested, read_order

    entry = {
        "id": 7,
        "source": "prose",
        "part": "p",
        "generations": [[4, 2]],
        "fingerprint": "f",
        "rows": 3,
    }
    folder = corpus.store.partition("band_index", "all")
    about = {"ledger": [entry]}
    with folder.writing(1):
        folder.commit(Manifest("band_index", "all", "f" * 32, "1", {}, (), Stats(), about))

    text = cli.out("duplicates", "ledger")

    assert json.loads(text) == [{"source": "prose", "part": "p", "generations": [[4, 2]]}]
    assert read_order("l", text.encode()) == {("prose", "p"): Ingested(0, ((4, 2),))}


def test_without_clusters_the_stage_to_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))
    assert "Materialize `duplicates`" in cli.err(1, "duplicates", "list")
