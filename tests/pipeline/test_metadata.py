"""Metadata of a materialization: tables, column meanings, and a preview without any markup."""

import dagster as dg
import msgspec
from builders import Build, sentence, write_jsonl
from every_stage import PASSAGE, write_inputs
from markdown_it import MarkdownIt
from prelude import Any, Path, given, json, pl, pytest, st

from assets.stages import BY_NAME, used_stages
from resources.dagster_home import tables_folder
from resources.materialize.metadata import (
    CELL_CHARS,
    ROWS,
    ShownTable,
    cell_text,
    log_line,
    preview,
)
from resources.run_reports import RunReport
from resources.store.records import Stats, to_json

pytestmark = pytest.mark.slow

HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "a | b\n| c |\n\n# Title\n\n---",
    "[click](javascript:alert(1)) ![](http://example.com/x.png) http://example.com a@b.org",
    "`code` **bold** &lt;b&gt; &#124; \\| ~~~",
    "\u202eright to left\x1b[31m\x00 \ufeff" + "long " * 1000,
    "a sixth row",
]


def shown(dagster_build: Build, corpus: Any, stage: str, source: str | None) -> Any:
    events = dagster_build(corpus).get_asset_materialization_events()
    found = [e.materialization for e in events if e.asset_key.path[-1] == stage]
    return next(each.metadata for each in found if each.partition == source)


def cells(markdown: str) -> list[list[str]]:
    """The cells of a table in Markdown, as a browser shows them; any other markup fails."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    kinds = {child.type for token in tokens for child in token.children or []}
    assert kinds <= {"text", "text_special"}, kinds
    assert {token.type for token in tokens} <= {
        *(
            f"{name}_{end}"
            for name in ("table", "thead", "tbody", "tr", "th", "td")
            for end in ("open", "close")
        ),
        "inline",
    }
    lines: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            lines.append([])
        if token.type == "inline":
            lines[-1].append("".join(child.content for child in token.children or []))
    return lines


def write_table(path: Path, table: pl.DataFrame) -> Path:
    table.write_parquet(path) if path.suffix == ".parquet" else table.write_ipc(path)
    return path


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_hostile_texts_are_shown_as_they_are(tmp_path: Path, name: str) -> None:
    table = pl.DataFrame({"text": HOSTILE, "row": range(6)})

    markdown = preview(write_table(tmp_path / name, table))

    assert markdown is not None and "<" not in markdown and "\n\n" not in markdown
    header, *rows = cells(markdown)
    assert header == ["text", "row"] and len(rows) == ROWS
    assert rows[0][0] == HOSTILE[0] and rows[3][0].startswith("`code` **bold** &lt;b&gt;")
    assert all(len(cell) <= CELL_CHARS + 10 for row in rows for cell in row)
    assert all(
        character.isprintable() for row in rows for character in row[0].replace("\u2060", "")
    )


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_a_preview_has_a_cell_for_each_value(tmp_path_factory: Any, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("preview") / "t.parquet"

    markdown = preview(write_table(path, pl.DataFrame({"text": texts, "number": 1})))

    assert markdown is not None
    assert [len(row) for row in cells(markdown)] == [2] * (len(texts) + 1)


def test_values_of_any_type_have_a_text(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "hash": [b"\x00\xff", None],
            "tokens": [list(range(1000)), []],
            "sketch": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.UInt32, 2)),
            "origin": [{"file": "a|b", "row": 3}, None],
            "share": [1 / 3, None],
        }
    )

    markdown = preview(write_table(tmp_path / "t.parquet", table))

    assert markdown is not None
    _, first, second = cells(markdown)
    assert first[0] == "00ff" and first[1].startswith("0, 1, 2, ") and len(first[1]) <= CELL_CHARS
    assert first[2:] == ["1, 2", "file: a|b, row: 3", "0.333333"]
    assert second[0] == "" and second[4] == ""


def test_a_preview_masks_secrets_in_urls(tmp_path: Path) -> None:
    url = "https://me:hunter2@a.org/x?token=swordfish"
    meta = json.dumps({"url": url, "links": [url]})
    pl.DataFrame({"text": [f"see {url}"], "url": [url], "meta": [meta]}).write_parquet(
        tmp_path / "a.parquet"
    )

    shown = preview(tmp_path / "a.parquet")

    assert shown is not None and "a&#46;org" in shown
    assert "hunter2" not in shown and "swordfish" not in shown


def test_a_table_without_rows_has_no_preview(tmp_path: Path) -> None:
    assert preview(write_table(tmp_path / "t.arrow", pl.DataFrame({"text": []}))) is None
    assert cell_text(None) == ""


def test_every_column_of_every_main_table_has_a_meaning(corpus: Any, dagster_build: Build) -> None:
    events = dagster_build(corpus).get_asset_materialization_events()

    schemas = {
        event.asset_key.path[-1]: event.materialization.metadata["dagster/column_schema"].value
        for event in events
        if "dagster/column_schema" in event.materialization.metadata
    }
    with_table = {name for name, stage in used_stages(corpus.settings).items() if stage.main_table}
    assert set(schemas) == with_table - {"mixed"}  # the small corpus writes no shards of phases
    for name, schema in schemas.items():
        assert schema.columns and not [c.name for c in schema.columns if not c.description], name
        named = BY_NAME[name].main_table
        assert named is not None and all(len(text) < 100 for text in named.columns.values())


def test_reasons_are_one_table_without_zeros(corpus: Any, dagster_build: Build) -> None:
    write_jsonl(corpus.config.parent / "input/notes/short.jsonl", [{"text": "x"}, {"text": "y"}])

    metadata = shown(dagster_build, corpus, "filtered", "notes")

    assert isinstance(metadata["rejected"], dg.TableMetadataValue)
    counts = {
        record.data["rule"]: record.data["breaks it"] for record in metadata["rejected"].records
    }
    assert counts["length.too_short"] == 2 and all(counts.values())
    assert not [key for key in metadata if key.startswith(("rejected/", "broken"))]
    assert not [key for key in metadata if len(key) > len("dagster/partition_row_count")]


def test_a_preview_of_documents_is_a_file_of_the_store(corpus: Any, dagster_build: Build) -> None:
    metadata = shown(dagster_build, corpus, "raw", "prose")

    path = Path(metadata["preview"].value)
    assert path == corpus.store.root / "_previews/raw/prose.md"
    header, *rows = cells(path.read_text().split("\n\n", 1)[1])
    assert header[:3] == ["doc_id", "text", "source"] and len(rows) == 5
    assert rows[0][1].startswith(sentence(0, 20)[:70]) or sentence(25, 45)[:70] in rows[0][1]


def test_no_text_of_a_document_is_in_the_metadata_of_any_stage(
    tmp_path: Path, dagster_build: Build
) -> None:
    corpus = write_inputs(tmp_path)
    events = dagster_build(corpus).get_asset_materialization_events()
    events += dagster_build(corpus, "mixed").get_asset_materialization_events()
    metadata = [str({k: v.value for k, v in e.materialization.metadata.items()}) for e in events]
    texts = [sentence(n, 23)[:60] for n in range(40)] + [PASSAGE[:60], "Home &#124; News"]
    doc_ids = pl.concat(map(pl.read_parquet, tmp_path.glob("store/raw/*/*documents.parquet")))
    assert not [text for text in texts if any(text in each for each in metadata)]
    assert not [one for one in doc_ids["doc_id"] if any(one in each for each in metadata)]
    files = "".join(path.read_text() for path in tmp_path.glob("store/_previews/*/*.md"))
    assert "Home &#124; News" in files and "river0 and bridge0" in files.lower()


def test_a_table_is_read_again_only_if_its_file_is_another_one(
    corpus: Any, dagster_build: Build
) -> None:
    before = shown(dagster_build, corpus, "raw", "prose")
    kept = tables_folder(corpus.store.root) / "raw/prose.json"
    known = msgspec.json.decode(kept.read_bytes(), type=ShownTable)
    path = Path(before["preview"].value)
    content = path.read_text()
    assert sentence(0)[:40] not in kept.read_text()

    path.write_text("kept")
    shown(dagster_build, corpus, "raw", "prose")
    assert path.read_text() == "kept"
    for stale in (msgspec.structs.replace(known, xxh3="0" * 32), {"xxh3": 1}):
        kept.write_bytes(to_json(stale))
        shown(dagster_build, corpus, "raw", "prose")
        assert path.read_text() == content
    path.unlink()
    again = shown(dagster_build, corpus, "raw", "prose")
    assert path.read_text() == content
    assert again["dagster/column_schema"] == before["dagster/column_schema"]
    assert msgspec.json.decode(kept.read_bytes(), type=ShownTable) == known


def test_a_log_line_leaves_out_speeds_that_were_not_measured() -> None:
    stats: Stats[Any] = Stats(rows_in=10, rows_kept=9)

    assert log_line("raw[web]", stats, RunReport(parts_reused=2)) == (
        "raw[web]: 9 of 10 rows kept, 0 parts computed, 2 reused"
    )
    ran = RunReport(2, 0, 12.34, 20.0, 512_000_000, 1234.0, 0.0521)
    assert log_line("raw[web]", stats, ran) == (
        "raw[web]: 9 of 10 rows kept, 2 parts computed, 0 reused, 12.3 s, 20.0 CPU s, "
        "1,234 docs/s, 0.0521 MB/s, 512 MB of memory"
    )
