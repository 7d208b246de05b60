"""`corpus report`: the corpus as one page."""

import dagster as dg
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, pytest, re
from starlette.testclient import TestClient
from verbs import Cli

from pipeline_defs.commands.look.ui import guarded_app
from pipeline_defs.commands.look.ui_guard import hosts_of
from pipeline_defs.commands.look.update_report import update_report
from resources.store.preview_files import page_path

MAIL = "jane.doe@realmail.org"
SHORT = f"<script>alert(1)</script> {MAIL} \u202e"
LOADED = re.compile(r"""(?:src|href|url\(|srcset|action)\s*=?\s*["'(]?(?!data:|#)\w+:?//""")


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    config = write_corpus(tmp_path, filters={"rules": {"length": {"min_words": 8}}})
    copies = [sentence(300, 50) + f" {MAIL} copy {n}" for n in range(3)]
    short = [{"text": f"{SHORT}{n}"} for n in range(12)]
    write_jsonl(
        tmp_path / "input/prose/c.jsonl",
        [*short, *({"text": text} for text in copies), f'{{"text": 5, "by": "<script>{MAIL}"}}'],
    )
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    monkeypatch.setenv("TOKENMILL_STORE", str(tmp_path / "store"))
    return open_corpus(config)


def test_the_page_needs_nothing_else_and_shows_no_markup_or_personal_data(
    corpus: Any, build: Build, cli: Cli, tmp_path: Path
) -> None:
    build(corpus)
    build(corpus, "mixed")
    assert cli.out("report", "--out", str(tmp_path / "page.html")).strip().endswith("page.html")
    page = (tmp_path / "page.html").read_text("utf-8")

    told = cli.json("report")
    assert told["page"] == str(page_path(corpus.store.root))
    assert {row["source"]: row["records"] for row in told["overview"]}["notes"] == 41
    assert MAIL not in str(told) and "funnel" not in told and told["funnel_rows"]
    assert cli.out("report").strip() == str(page_path(corpus.store.root))
    assert page_path(corpus.store.root).read_text("utf-8") == page
    assert len(page.encode()) < 2_000_000 and not LOADED.search(page)
    assert "<script" not in page and MAIL not in page and "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &lt;EMAIL&gt;" in page
    named = set(re.findall(r'id="(\w+)"', page))
    assert named >= {*re.findall(r'href="#(\w+)"', page), "raw", "filtered", "deduped"}
    assert page.count('<div class="document"><h2>') >= 10 and "3 documents, 3 of them here" in page


def test_what_changed_since_the_state_before_is_told(
    corpus: Any, build: Build, cli: Cli, tmp_path: Path
) -> None:
    build(corpus)
    (tmp_path / "input/prose/b.jsonl").unlink()
    build(corpus)
    cli.out("report")

    page = page_path(corpus.store.root).read_text("utf-8")
    changed = page[page.index('id="changes"') : page.index('id="failures"')]
    assert '<td data-name="what">removed: input/prose/b.jsonl</td>' in changed
    assert '<td data-name="what">raw: kept</td>' in changed


def test_a_takedown_removes_the_page_and_a_clean_up_leaves_it(
    corpus: Any, build: Build, cli: Cli
) -> None:
    build(corpus)
    cli.out("report")
    cli.out("gc", "--delete")
    page = page_path(corpus.store.root)
    assert page.exists()

    doc_id = re.findall(r"<h2>([0-9a-f]{32})", page.read_text("utf-8"))[0]
    cli.out("takedown", "--doc", doc_id, "--reason", "asked")
    assert not page.exists()
    build(corpus)
    cli.out("report")
    assert doc_id not in page.read_text("utf-8")


def test_texts_that_are_lost_are_left_out(corpus: Any, build: Build, cli: Cli) -> None:
    build(corpus)
    manifest = corpus.store.newest("raw", "prose")
    for part in manifest.parts:
        corpus.store.path_of(manifest, part.file("documents")).unlink()
    cli.out("report")

    page = page_path(corpus.store.root).read_text("utf-8")
    assert "length.too_few_words: 12 documents" in page
    assert "No text is shown of this reason." in page and "3 documents, 3 of them here" in page


def test_a_report_that_fails_fails_no_run(
    corpus: Any, dagster_build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> str:
        raise ZeroDivisionError

    page = page_path(corpus.store.root)
    dagster_build(corpus)
    monkeypatch.setattr("pipeline_defs.commands.look.report.page_of", fail)
    assert dagster_build(corpus, "mixed").success and not page.exists()
    monkeypatch.undo()
    (found,) = dagster_build(corpus, "mixed").asset_materializations_for_node("corpus_report")
    assert found.metadata["page"] == dg.MetadataValue.url("/corpus_report") and page.exists()


@pytest.mark.parametrize("change", ["nothing", "state", "config", "failure", "damage"])
def test_the_page_is_written_again_if_what_it_is_made_of_has_changed(
    corpus: Any, build: Build, cli: Cli, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    build(corpus)
    cli.out("report")
    page, written = page_path(corpus.store.root), list[str]()
    monkeypatch.setattr(
        "pipeline_defs.commands.look.report.write_report", lambda _: written.append(change) or ""
    )
    match change:
        case "state":
            (corpus.config.parent / "input/prose/b.jsonl").unlink()
            build(corpus)
        case "config":
            corpus.config.write_text(corpus.config.read_text("utf-8") + "# note\n")
        case "failure":
            faults = "pipeline_defs.commands.look.report_inputs.failures"
            monkeypatch.setattr(faults, lambda *_: ["prose: raw failed: no space"])
        case "damage":
            page.write_bytes(b"")

    update_report(corpus)

    assert written == [change] * (change != "nothing")


def test_the_web_ui_has_the_page(corpus: Any, build: Build, cli: Cli) -> None:
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import EmptyWorkspaceTarget

    with (
        dg.DagsterInstance.get() as instance,
        WorkspaceProcessContext(instance, EmptyWorkspaceTarget()) as context,
    ):
        app = guarded_app(context, hosts_of([], 3000), corpus.store.root)
        client = TestClient(app, base_url="http://localhost:3000")
        assert client.get("/corpus_report").status_code == 404
        build(corpus)
        cli.out("report")
        assert "<h1>Corpus of pipeline.yaml</h1>" in client.get("/corpus_report").text
        elsewhere = client.get("/corpus_report", headers={"Host": "evil.example"})
        assert elsewhere.status_code == 403


def test_nothing_built_is_said(corpus: Any, cli: Cli) -> None:
    assert "Nothing is built yet" in cli.err(2, "report")
