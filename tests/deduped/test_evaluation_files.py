"""Items of evaluation sets out of files of every format."""

import csv
import gzip

import pyarrow as pa
from builders import write_jsonl
from prelude import Any, Callable, Path, json, pl, pytest

from assets.deduped.decontamination import evaluation_files
from assets.deduped.decontamination.evaluation_files import (
    find_evaluation_files,
    read_items,
    text_of,
    value_at,
)
from assets.raw.readers import decompress
from resources.errors import InputError
from resources.settings.decontamination import DecontaminationConfig

RECORDS: list[dict[str, Any]] = [
    {"question": "Which river is the longest?", "answer": "The Nile", "key": 7},
    {"question": "Où est la gare, s'il vous plaît?", "answer": "là-bas", "key": 8},
    {"question": "一加一等于几？", "answer": "二", "key": 9},
]
TEXTS = [f"{record['question']}\n{record['answer']}" for record in RECORDS]


def write_csv(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, RECORDS[0].keys())
        writer.writeheader()
        writer.writerows(RECORDS)


def write_lines(path: Path) -> bytes:
    return write_jsonl(path, RECORDS).read_bytes()


def write_zst(path: Path) -> None:
    lines = write_lines(path)
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
        stream.write(lines)


WRITERS: dict[str, Callable[[Path], Any]] = {
    "test.jsonl": write_lines,
    "test.jsonl.gz": lambda path: path.write_bytes(gzip.compress(write_lines(path))),
    "test.jsonl.zst": write_zst,
    "test.json": lambda path: path.write_text(json.dumps(RECORDS)),
    "test.csv": write_csv,
    "test.parquet": lambda path: pl.DataFrame(RECORDS).write_parquet(path),
}


def read(folder: Path, **of_set: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    given = {"name": "quiz", "where": "test*", "fields": ["question", "answer"]} | of_set
    config = DecontaminationConfig.model_validate({"sets": [given]})
    files = find_evaluation_files(config, folder, folder / "store/_downloads")
    return read_items(files)


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_items(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)

    items, quarantine = read(tmp_path, id_field="key")

    assert items.rows() == [("quiz", str(7 + i), text) for i, text in enumerate(TEXTS)]
    assert quarantine.is_empty()


def test_an_item_of_plain_text_ends_at_a_blank_line(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("The first\nitem.\n\n\nThe second.\n")

    items, _ = read(tmp_path, fields="text")

    assert items.rows() == [
        ("quiz", "test.txt#0", "The first\nitem."),
        ("quiz", "test.txt#1", "The second."),
    ]


def test_fields_reach_into_objects_and_lists(tmp_path: Path) -> None:
    record = {
        "question": "Why?",
        "license": "none",
        "choices": {"text": ["yes", "no"], "label": ["A", "B"]},
        "turns": [{"say": "one"}, {"say": "two"}, "three"],
    }
    write_jsonl(tmp_path / "test.jsonl", [record])

    fields = ["question", "choices.text", "turns.say", "license"]
    items, _ = read(tmp_path, fields=fields)

    assert items["text"].to_list() == ["Why?\nyes no\none two\nnone"]


def test_two_items_of_one_id_are_both_kept(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "test.jsonl", [RECORDS[0], RECORDS[0]])

    assert read(tmp_path, id_field="key")[0]["item"].to_list() == ["7", "7"]


def test_a_broken_record_is_in_quarantine_with_its_place(tmp_path: Path) -> None:
    no_question = {"answer": "x", "key": 1}
    no_answer = {"question": "Only this", "answer": None, "key": 2}
    write_jsonl(tmp_path / "test.jsonl", ["{", RECORDS[0], no_question, no_answer])

    items, quarantine = read(tmp_path)

    assert items["text"].to_list() == [TEXTS[0], "Only this"]
    assert quarantine["source"].to_list() == ["quiz"] * 2
    assert quarantine["position"][0] == "byte 0"
    assert "text field `question` is missing" in quarantine["error"][1]


@pytest.mark.parametrize(
    ("of_set", "message"),
    [
        ({"where": "tset.jsonl"}, r"evaluation set 'quiz': no input file matches 'tset.jsonl'"),
        ({"fields": "text"}, r"'quiz', file 'test.jsonl': text field `text` is missing.*question"),
        ({"fields": ["question", "gold"]}, r"no value of field 'gold'; .* question, answer, key"),
        ({"id_field": "id"}, r"no value of field 'id'.*Correct `fields`"),
    ],
)
def test_a_wrong_set_is_named_before_any_work(
    tmp_path: Path, of_set: dict[str, Any], message: str
) -> None:
    write_lines(tmp_path / "test.jsonl")

    with pytest.raises(InputError, match=message):
        read(tmp_path, **of_set)


def test_files_that_cannot_be_had_are_told_without_the_advice_for_sources(tmp_path: Path) -> None:
    (tmp_path / "test.data").touch()

    with pytest.raises(InputError) as nothing:
        read(tmp_path, where="*.jsonl")
    with pytest.raises(InputError) as unknown:
        read(tmp_path, where="test.data")

    assert str(nothing.value).endswith("Correct `where`.")
    assert str(unknown.value).startswith(
        "dedup.decontamination: evaluation set 'quiz': the format of 'test.data' cannot be told"
    )


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "holds no record"), (b"\x1f\x8bnothing", "gz stream is broken")]
)
def test_a_file_without_a_record_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "test.jsonl.gz").write_bytes(content)

    with pytest.raises(InputError, match=message):
        read(tmp_path)


def test_a_decompression_bomb_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompress, "BOMB_BYTES", 1 << 20)
    lines = write_lines(tmp_path / "test.jsonl.gz") + b" " * (64 << 20)
    (tmp_path / "test.jsonl.gz").write_bytes(gzip.compress(lines))

    items, quarantine = read(tmp_path)

    assert items.height == 3
    assert "decompression bomb" in quarantine["error"][0]


@pytest.mark.parametrize(
    ("path", "value"),
    [("a.b", 1), ("a.c", None), ("d", [2]), ("x.y", 3), ("a.b.c", None), ("list.z", [4])],
)
def test_a_path_leads_to_its_value(path: str, value: object) -> None:
    record = {"a": {"b": 1}, "d": [2], "x.y": 3, "list": [{"z": 4}, 5]}

    assert value_at(record, path) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (1.5, "1.5"), ([1, "b", None, ["c"]], "1 b c"), (True, ""), ({"a": 1}, "")],
)
def test_texts_numbers_and_lists_are_text(value: object, text: str) -> None:
    assert text_of(value) == text


def test_sets_beyond_the_bound_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_files, "MOST_BYTES", 1 << 20)
    path = tmp_path / "bomb.jsonl.gz"  # 300:1, below the size at which a stream is called a bomb
    path.write_bytes(gzip.compress(b'{"question": "a", "answer": "b"}\n' * 500_000))
    sets = [{"name": "quiz", "where": path.name, "fields": ["question"]}]
    config = DecontaminationConfig.model_validate({"sets": sets})
    files = find_evaluation_files(config, tmp_path, tmp_path / "store/downloads")
    with pytest.raises(InputError, match=r"over 1,048,576 bytes .*'bomb\.jsonl\.gz'"):
        read_items(files)
