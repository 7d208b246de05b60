"""Layouts that public datasets have: `corpus init` proposes the right field, or says what to do."""

import csv
import io

import yaml
from builders import sentence, write_jsonl
from prelude import Any, Path, json, pytest

from pipeline_defs.commands.main import main

TEXT, LONG = sentence(3, 60), sentence(4, 300)
QUESTION, ANSWER = "Where does the river meet the sea?", "It meets the sea behind the old town."
JAPANESE = "川は古い町の後ろで海に出会います。そこには小さな港があります。"
HTML = f"<div><p>{TEXT}</p><br/><a href='x'>More of it</a></div>"
HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" * 2
USER, ASSISTANT = {"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}
TURNS = [{"from": "human", "value": QUESTION}, {"from": "gpt", "value": ANSWER}]
ENTITIES = [{"start": 1, "label": "PLACE"}]

# By the dataset cards: one record of each, and the field that holds the text.
RIGHT: dict[str, tuple[dict[str, Any], str | None]] = {
    "c4": ({"text": TEXT, "timestamp": "2019-04-25T12:57:54Z", "url": "https://a.example"}, "text"),
    "oscar": ({"id": 1, "content": TEXT, "metadata": {"annotation": ["short"]}}, "content"),
    "redpajama": ({"text": TEXT, "meta": {"source": "arxiv"}, "red_pajama_subset": "a"}, "text"),
    "redpajama v2": ({"raw_content": TEXT, "doc_id": "a", "quality_signals": "{}"}, "raw_content"),
    "the stack": ({"hexsha": HASH, "content": "def f():\n    return 1\n", "lang": "P"}, "content"),
    "code search net": ({"repo": "a/b", "func_code_string": LONG, "sha": HASH}, "func_code_string"),
    "cnn dailymail": ({"article": LONG, "highlights": TEXT, "id": HASH}, "article"),
    "xsum": ({"document": LONG, "summary": QUESTION, "id": "1"}, "document"),
    "arxiv": ({"id": "1", "title": QUESTION, "abstract": LONG, "authors": "A. B."}, "abstract"),
    "authors in lists": (
        {"title": QUESTION, "abstract": LONG, "authors": [{"name": "A. N. Other of Here"}]},
        "abstract",
    ),
    "reddit comments": ({"author": "a", "body": TEXT, "subreddit": "b"}, "body"),
    "amazon reviews": (
        {"reviewerName": "An N.", "reviewText": LONG, "summary": "Two short words"},
        "reviewText",
    ),
    "imdb": ({"text": LONG, "label": 1}, "text"),
    "cc news": ({"title": QUESTION, "maintext": LONG, "date_publish": "2019-01-01"}, "maintext"),
    "elasticsearch dump": ({"_index": "a", "_source": {"text_body": LONG}}, "_source.text_body"),
    "nested": ({"id": 1, "data": {"content_raw": LONG, "lang": "en"}}, "data.content_raw"),
    "squad rows": (
        {"id": "5", "title": "Sea", "context": LONG, "question": QUESTION, "answers": {"text": []}},
        "context",
    ),
    "entities beside": ({"text": TEXT, "entities": ENTITIES}, "text"),
    "common voice": ({"client_id": HASH, "path": "a.mp3", "sentence": TEXT}, "sentence"),
    "laion": ({"URL": "https://a.example/a.jpg", "TEXT": TEXT, "WIDTH": 3}, "TEXT"),
    "japanese": ({"id": 1, "honbun": JAPANESE}, "honbun"),
    "openalex": (
        {"doi": "10.1/2", "display_abstract": TEXT, "type": "a paper"},
        "display_abstract",
    ),
    "products": ({"name": "A cup of tea", "description": LONG, "price": "1"}, "description"),
    "alpaca rendered": ({"instruction": QUESTION, "output": ANSWER, "text": TEXT}, "text"),
    "openai": ({"messages": [USER, ASSISTANT]}, None),
    "sharegpt": ({"id": "a", "conversations": TURNS}, "conversations"),
    "ultrafeedback": (
        {"prompt": QUESTION, "chosen": [USER, ASSISTANT], "rejected": [USER, ASSISTANT]},
        "chosen",
    ),
    "trl preference": (
        {"prompt": [USER], "chosen": [ASSISTANT], "rejected": [ASSISTANT]},
        "chosen",
    ),
    "trl prompts": ({"prompt": [USER], "completion": [ASSISTANT]}, "completion"),
    "alpaca": ({"instruction": QUESTION, "input": "", "output": LONG}, "output"),
    "gsm8k": ({"question": QUESTION, "answer": TEXT}, "answer"),
    "flan": ({"inputs": LONG, "targets": "yes"}, "targets"),
    "completions": ({"prompt": TEXT, "completion": LONG}, "completion"),
    "math": ({"problem": QUESTION, "solution": LONG, "level": "1"}, "solution"),
    "humaneval": ({"prompt": LONG, "canonical_solution": TEXT}, "canonical_solution"),
    "dolly": (
        {"instruction": QUESTION, "context": LONG, "response": ANSWER, "category": "open_qa"},
        "response",
    ),
    "messages as json": ({"messages": json.dumps([USER, ASSISTANT])}, None),
}

# What no key of a source can name, with what the refusal says.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "hh-rlhf": ({"chosen": TEXT, "rejected": LONG}, "preference pairs"),
    "axolotl": (
        {"segments": [{"label": False, "text": QUESTION}, {"label": True, "text": LONG}]},
        "marked as learned or not",
    ),
    "snli": ({"premise": TEXT, "hypothesis": QUESTION * 3}, "several fields hold text"),
    "sts": ({"sentence1": TEXT, "sentence2": TEXT, "score": "1"}, "several fields hold text"),
    "wmt": ({"translation": {"en": TEXT, "de": TEXT}}, "translation.en, translation.de"),
    "oasst": (
        {"message_id": "a", "parent_id": "b", "text": TEXT, "role": "prompter"},
        "single messages of conversations",
    ),
    "s2orc": ({"title": QUESTION, "body_text": [{"text": LONG}]}, "`jq -c '.body_text[]'"),
    "tags": ({"id": "1", "keywords": [QUESTION, LONG]}, "in lists: `keywords`"),
    "conll": ({"id": "0", "tokens": ["The", "sea"], "tags": [1, 2]}, "in lists: `tokens`"),
    "titles": ({"id": "0", "title": TEXT}, "`title` looks like a description"),
    "embeddings": ({"id": "0", "vector": [0.1, 0.2]}, "no field holds text"),
    "labels": ({"type": "comment", "label": "good"}, "no field holds text"),
    "reviews": ({"pros": TEXT, "cons": TEXT}, "several fields hold text"),
}

# Files of one JSON document.
DOCUMENTS: dict[str, tuple[Any, str]] = {
    "squad": (
        {"version": "1.1", "data": [{"title": "Sea", "paragraphs": [{"context": LONG}]}]},
        "`jq -c '.data[].paragraphs[]' FILE > NEW.jsonl`, and set `text_field: context`",
    ),
    "telegram": (
        {"name": "A chat", "type": "personal_chat", "messages": [{"from": "A", "text": LONG}]},
        "`jq -c '.messages[]' FILE > NEW.jsonl`, and set `text_field: text`",
    ),
    "datasets server": (
        {"features": [{"name": "text"}], "rows": [{"row": {"text": LONG}}]},
        "`jq -c '.rows[]' FILE > NEW.jsonl`, and set `text_field: row.text`",
    ),
    "odd names": ({"my rows": [{"b": LONG}]}, """`jq -c '.["my rows"][]'"""),
}

# Tables: the text of the file, and the keys of its source.
ROWS = [[str(i), f'{sentence(i)} It is "here", too.'] for i in range(9)]
LABELLED = [["ham" if i % 2 else "spam", sentence(i)] for i in range(9)]
NEWS = [[str(i % 4), f"{QUESTION} {i}", f"{sentence(i, 80)}"] for i in range(9)]
TABLES: dict[str, tuple[str, list[list[str]], str, dict[str, Any]]] = {
    "csv": ("a.csv", [["id", "text"], *ROWS], ",", {"text_field": "text"}),
    "semicolons": ("a.csv", [["id", "remark"], *ROWS], ";", {"separator": ";"}),
    "tabs in csv": ("a.csv", [["id", "remark"], *ROWS], "\t", {"separator": "\t"}),
    "bars": ("a.csv", [["id", "remark"], *ROWS], "|", {"separator": "|"}),
    "commas in tsv": ("a.tsv", [["id", "remark"], *ROWS], ",", {"separator": ","}),
    "tatoeba": ("a.tsv", ROWS, "\t", {"column_names": ["column_1", "column_2"]}),
    "sms spam": ("a.tsv", LABELLED, "\t", {"text_field": "column_2"}),
    "ag news": ("a.csv", NEWS, ",", {"text_field": "column_3"}),
    "pandas index": ("a.csv", [["", "remark"], *ROWS], ",", {"text_field": "remark"}),
    "long question": ("a.csv", [["id", "What is the sea to you?"], *ROWS], ",", {}),
}
WITHOUT_HEADER = {"tatoeba", "sms spam", "ag news"}


def init(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any] | None, str]:
    """The one source that is proposed, if there is one; and what is said."""
    is_written = main(["init", str(folder)]) == 0
    said = "".join(capsys.readouterr())
    content = yaml.safe_load((folder / "pipeline.yaml").read_text()) if is_written else {}
    return (content["sources"][0] if is_written else None), said


@pytest.mark.parametrize("name", RIGHT)
def test_the_field_with_the_text_is_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    record, expected = RIGHT[name]
    write_jsonl(tmp_path / "a.jsonl", [record] * 9)

    source, _ = init(tmp_path, capsys)

    assert source is not None
    is_chat = source.get("kind") == "chat"
    assert source.get("text_field", None if is_chat else "text") == expected


@pytest.mark.parametrize("name", [*REFUSED, *DOCUMENTS])
def test_what_is_not_clear_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    content, message = (REFUSED | DOCUMENTS)[name]
    if name in DOCUMENTS:
        (tmp_path / "a.json").write_text(json.dumps(content))
    else:
        write_jsonl(tmp_path / "a.jsonl", [content] * 9)

    source, said = init(tmp_path, capsys)

    assert source is None
    assert message in said


@pytest.mark.parametrize("name", TABLES)
def test_tables_keep_their_first_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file, rows, separator, expected = TABLES[name]
    table = io.StringIO()
    csv.writer(table, delimiter=separator).writerows(rows)
    (tmp_path / file).write_text(table.getvalue())

    source, _ = init(tmp_path, capsys)

    assert source is not None
    assert {"text_field": "text"} | source | expected == {"text_field": "text"} | source
    assert ("column_names" in source) == (name in WITHOUT_HEADER)


def test_fields_of_html_lose_their_tags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{"Id": i, "Body": HTML} for i in range(9)])

    source, said = init(tmp_path, capsys)

    assert source is not None
    assert (source["text_field"], source["html"]) == ("Body", "text")
    assert "HTML, of which the text is kept" in said


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"<!DOCTYPE html><html><body>{HTML}</body></html>", "page"),
        (f"<nav><a href='/'>Home</a></nav>{HTML}", "page"),
        (f"<table><tr><td>{HTML}</td></tr></table>", "text"),
        (TEXT, None),
    ],
)
def test_whole_pages_get_their_main_text_and_fragments_all_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, expected: str | None
) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{"body": f"{body}{i}"} for i in range(9)])

    source, said = init(tmp_path, capsys)

    assert source is not None and source.get("html") == expected
    assert ("of which the main text is kept" in said) == (expected == "page")


def test_a_snapshot_of_wikimedia_enterprise_is_known_by_its_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = {
        "article_body": {"html": f"<html><body>{HTML * 3}</body></html>", "wikitext": TEXT * 3},
        "in_language": {"identifier": "en", "name": "English"},
        "license": [{"identifier": "CC-BY-SA-4.0", "name": "Share Alike 4.0"}],
        "abstract": TEXT,
    }
    write_jsonl(tmp_path / "a.ndjson", [{"identifier": i} | page for i in range(9)])

    source, _ = init(tmp_path, capsys)

    assert source is not None
    assert (
        source
        | {
            "text_field": "article_body.html",
            "html": "page",
            "id_field": "identifier",
            "lang_field": "in_language.identifier",
            "license_field": "license.0.identifier",
        }
        == source
    )


def test_a_folder_that_is_not_clear_stops_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_jsonl(tmp_path / "good/a.jsonl", [{"text": TEXT}])
    write_jsonl(tmp_path / "pairs/a.jsonl", [{"chosen": TEXT, "rejected": LONG}])
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/a.jsonl").write_text('{"text": "a"\n{"text": "b"\n')

    source, said = init(tmp_path, capsys)

    assert source is not None and source["name"] == "good"
    assert "left out: broken/" in said
    assert "left out: pairs/: records are preference pairs" in said
