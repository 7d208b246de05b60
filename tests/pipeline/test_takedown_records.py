"""Takedowns in bulk, their list and export, and requests that are withdrawn."""

import csv
import shutil

from builders import open_corpus, sentence, write_corpus, write_jsonl
from every_stage import build as build_stages
from prelude import Any, Iterator, Path, json, pl, pytest
from verbs import Cli

from assets.raw.asset import STAGE as RAW
from pipeline_defs.commands.main import main
from resources.dagster_home import tables_folder, write_record
from resources.materialize.excerpts import as_excerpt
from resources.store.preview_files import page_path, preview_path, write_preview


def text_of(number: int) -> str:
    return " ".join(sentence(1000 + 7 * number + i, 30) for i in range(3))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Twenty documents with URLs and a copy of the first in another source, up to `raw`."""
    folder = tmp_path_factory.mktemp("built")
    corpus = open_corpus(write_corpus(folder))
    urls = [{"text": text_of(n), "url": f"https://a.example/{n}"} for n in range(20)]
    write_jsonl(folder / "input/prose/u.jsonl", urls)
    copy = [{"text": text_of(0), "url": "https://b.example/copy"}, {"text": text_of(50)}]
    write_jsonl(folder / "input/notes/u.jsonl", copy)
    build_stages(corpus, [RAW])
    yield folder


@pytest.fixture
def corpus(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    return open_corpus(tmp_path / "pipeline.yaml")


def texts(corpus: Any, source: str) -> pl.DataFrame:
    """Return the documents of the newest state of `raw`."""
    manifest = corpus.store.newest("raw", source)
    paths = [corpus.store.path_of(manifest, part.file("documents")) for part in manifest.parts]
    return pl.concat(map(pl.read_parquet, paths))


def write_notices(corpus: Any, tmp_path: Path) -> str:
    doc_id = texts(corpus, "prose").filter(url="https://a.example/3")["doc_id"].item()
    lines = ["# of May", "https://a.example/0", "https://nowhere.example/", doc_id, ""]
    lines += [json.dumps({"text": text_of(4).upper(), "date": "2026-05-01", "reason": "by mail"})]
    lines += [json.dumps({"domain": "b.example"}), "http://www.a.example/0#top"]
    (tmp_path / "notices.txt").write_text("\n".join(lines))
    return str(tmp_path / "notices.txt")


def test_a_file_of_notices_is_one_scan_and_a_request_each(
    corpus: Any, cli: Cli, tmp_path: Path
) -> None:
    command = ["takedown", "--file", write_notices(corpus, tmp_path), "--reason", "batch"]
    said = cli.out(*command, "--dry-run")
    assert "5 notices (not recorded): 4 documents; 1 found nothing" in said
    assert cli.json("takedown", "list") == []

    assert "5 notices (takedowns 1 to 5)" in cli.out(*command)
    found = cli.json("takedown", "list")
    assert [(each["kind"], each["documents"]) for each in found] == [
        ("url", 2), ("url", 0), ("doc", 1), ("match", 1), ("domain", 2),
    ]  # fmt: skip
    assert (found[3]["date"], found[3]["reason"], found[0]["reason"]) == (
        "2026-05-01", "by mail", "batch",
    )  # fmt: skip
    assert "5 more are recorded already" in cli.out(*command)
    assert len(cli.json("takedown", "list")) == 5

    build_stages(corpus, [RAW])
    assert corpus.store.newest("raw", "prose").stats.rejected == {"taken_down": 3}
    assert corpus.store.newest("raw", "notes").stats.rejected == {"taken_down": 1}


def test_an_auditor_gets_every_request(corpus: Any, tmp_path: Path) -> None:
    assert main(["takedown", "export", str(tmp_path / "audit.csv")]) == 2
    assert main(["takedown", "--file", write_notices(corpus, tmp_path), "--reason", "a,b"]) == 0
    assert main(["takedown", "withdraw", "4", "--reason", "by mistake"]) == 0
    assert main(["takedown", "export", str(tmp_path / "audit.csv")]) == 0
    assert main(["takedown", "export", str(tmp_path / "audit.jsonl")]) == 0

    with open(tmp_path / "audit.csv", newline="") as file:
        of_csv = list(csv.DictReader(file))
    of_json = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [each["number"] for each in of_json] == [1, 2, 3, 4, 5, 6]
    assert (of_json[3]["withdrawn_by"], of_json[5]["withdraws"]) == (6, 4)
    assert of_csv[0]["reason"] == "a,b" and of_csv[3]["date"] == "2026-05-01"
    assert of_csv[0]["form"].startswith("sha256 of a url")


def test_a_withdrawn_request_gives_its_documents_back(corpus: Any, tmp_path: Path) -> None:
    before = texts(corpus, "prose")
    for url in ("https://a.example/1", "https://a.example/2", "https://later.example/"):
        assert main(["takedown", "--url", url, "--reason", "asked"]) == 0
    later = [{"text": text_of(90), "url": "https://later.example/"}]
    write_jsonl(tmp_path / "input/notes/later.jsonl", later)
    build_stages(corpus, [RAW])
    assert corpus.store.newest("raw", "notes").stats.rejected == {"taken_down": 1}

    for number in ("1", "3"):
        assert main(["takedown", "withdraw", number, "--reason", "by mistake"]) == 0
    assert main(["takedown", "withdraw", "1", "--reason", "again"]) == 2
    build_stages(corpus, [RAW])
    urls = set(texts(corpus, "prose")["url"])
    assert "https://a.example/1" in urls and "https://a.example/2" not in urls
    assert "https://later.example/" in set(texts(corpus, "notes")["url"])

    assert main(["takedown", "withdraw", "2", "--reason", "all"]) == 0
    build_stages(corpus, [RAW])
    assert texts(corpus, "prose").equals(before)


def test_previews_and_tables_of_runs_lose_what_was_taken_down(
    corpus: Any, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    root = corpus.store.root
    doc_id = texts(corpus, "prose").filter(url="https://a.example/7")["doc_id"].item()
    own, other = (preview_path(root, "raw", name) for name in ("prose", "notes"))
    content = f"| doc_id | text |\n|---|---|\n| {doc_id} | {as_excerpt(text_of(7), 80)} |"
    write_preview(own, content)
    write_preview(other, "| other |")
    old = tables_folder(root) / "raw/prose.json"
    write_record(old, b'{"xxh3": "0", "preview": "| ...", "columns": []}')

    assert main(["takedown", "--url", "https://a.example/7", "--reason", "asked"]) == 0
    assert (own.exists(), other.exists(), old.exists()) == (False, True, False)
    build_stages(corpus, [RAW])
    write_preview(own, content.replace(doc_id, "no id"))
    said = cli.out("takedown", "prove", code=1)
    assert "_previews/raw/prose.md: --purge removes it" in said
    assert main(["takedown", "prove", "--purge"]) == 0
    assert not own.exists()


def test_what_a_killed_command_left_holds_no_text_after_a_takedown(corpus: Any, cli: Cli) -> None:
    page = page_path(corpus.store.root)
    write_preview(page, "whole")
    left = page.with_name(".tmp-1-all.html")
    left.write_text(text_of(7))
    assert [each["files"].keys() for each in cli.json("states", "gc")["partitions"]] == [
        {"report/.tmp-1-all.html"}
    ]
    assert main(["takedown", "--url", "https://a.example/7", "--reason", "asked"]) == 0
    assert not left.exists() and not page.exists()
    left.write_text(text_of(7))
    write_preview(page, "whole")
    assert not left.exists(), "the same command leaves none of an earlier one"


def test_the_proof_searches_what_nobody_declares(corpus: Any, cli: Cli) -> None:
    assert main(["takedown", "--url", "https://a.example/7", "--reason", "asked"]) == 0
    build_stages(corpus, [RAW])
    assert main(["takedown", "prove", "--purge"]) == 0
    notes = corpus.store.root / "_notes/mine.txt"
    notes.parent.mkdir()
    for path in (notes, corpus.store.root / "mine.txt"):
        path.write_text(text_of(7))
        said = cli.out("takedown", "prove", "--purge", code=1)
        assert f"{path}: no command writes such a file: remove it" in said
        path.unlink()


def test_a_preview_of_no_partition_is_garbage(corpus: Any, cli: Cli) -> None:
    write_preview(preview_path(corpus.store.root, "raw", "gone"), "| text |")
    found = cli.json("states", "gc")["partitions"]
    assert [each["files"] for each in found] == [{"raw/gone.md": 8}]
    assert main(["states", "gc", "--delete"]) == 0
    left = {path.name for path in corpus.store.root.glob("_previews/raw/*")}
    assert left == {"notes.md", "prose.md"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"url": "https://a.example/", "doc": "x"}', "line 2: a notice has one of"),
        ('{"address": "x"}', "line 2: Object contains unknown field"),
        ('{"domain": "co.uk"}', "line 2: 'co.uk' is no domain that one owner can have"),
        ('{"text": "..."}', "line 2: no words"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_recorded(
    corpus: Any, cli: Cli, tmp_path: Path, line: str, message: str
) -> None:
    (tmp_path / "notices.txt").write_text(f"https://a.example/0\n{line}\n")
    command = ["takedown", "--file", str(tmp_path / "notices.txt"), "--reason", "batch"]
    assert message in cli.err(2, *command)
    assert not (corpus.store.root / "_takedowns").exists()
