"""Layouts of records and tables for `corpus init`: which field holds the text, and where it is.

A field is proposed when its name or its content leaves no doubt. Where two fields could be meant,
or the texts are in a form that a source cannot name, `UnclearLayout` says so and what to write: a
wrong guess would train on labels or on rejected answers.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Literal, NamedTuple

from assets.raw.chat_forms import FORMS, as_messages
from assets.raw.chat_records import PROMPTS, QUESTIONS, answer_of
from assets.raw.chat_transcripts import BEGINS
from assets.raw.readers.decompress import BrokenStream, read_blocks
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.input_record import look_up
from assets.raw.readers.read_tables import SEPARATORS
from assets.text.chat_messages import ChatError
from pipeline_defs.commands.terminal import ONE_LINE
from resources.settings.sources import SourceConfig

MOST_SHOWN = 20  # names of fields
MIN_SHARE = 0.8  # of the records, for a proposal
MAX_SECOND = 0.15  # of the text of a field, in the next one: beyond it, both could be meant
MIN_CHARACTERS = 20  # of the median text in a field without a usual name
MIN_WORDS = 3
MAX_DIGITS = 0.2  # of the characters of a text: more are dates, coordinates, hashes
MOST_DEPTH = 4  # of objects and lists in a record
TEXT_FIELDS = (
    *("text", "content", "body", "raw_content", "article", "document", "markdown"),
    "article_body.html",  # of Wikimedia Enterprise
)
ASKING = (*QUESTIONS, "input", "source")
ANSWERS = (
    *("output", "response", "answer", "completion", "targets", "target", "solution"),
    *("canonical_solution", "generated_solution", "best_answer", "chosen_response", "answers"),
    "chosen",
)
DIALOGUES = ("conversation", "conversations", "data", "dialog", "dialogue", "messages")
REJECTED = ("chosen", "rejected")
OF_MESSAGE = {"parent_id", "message_id", "message_tree_id", "conversation_id", "thread_id"}
BESIDE = re.compile(  # names of fields that say something about a text
    r"(.*_)?(title|headline|subject|name|author|authors|editor|date|time|timestamp|created|url|"
    r"link|path|file|filename|repo|label|labels|category|type|version|lang|language|tags|keywords|"
    r"license|licence|summary|highlights|rejected|source|id|uuid|hash|sha|meta|metadata)",
    re.IGNORECASE,
)
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{6}")
TAG = re.compile(
    r"</(p|div|a|li|ul|td|h[1-6]|em|strong|code|pre|span|b|i)>|<br ?/?>", re.IGNORECASE
)
PAGE = re.compile(r"<(html|body|nav)[\s>]|<!doctype html", re.IGNORECASE)
CANDIDATES = ",;\t|"
NUM_ROWS, HEAD_BYTES = 50, 1 << 20
MOST_NAME = 64  # characters of the name of a column
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NUMBER = re.compile(r"[-+]?[0-9][0-9.,:/eE+-]*")
Fields = Mapping[str, object]


class UnclearLayout(ValueError):
    """No field holds the text without a doubt; the message says why, and what to write."""


class TableLayout(NamedTuple):
    """How a CSV or TSV file differs from what a source assumes; None: it does not.

    column_names   of a file whose first row is data
    """

    separator: str | None = None
    column_names: tuple[str, ...] | None = None


AS_ASSUMED = TableLayout()


def table_layout(file: InputFile) -> TableLayout:
    """Return separator and names of columns of a CSV or TSV file, by its first rows."""
    if file.format not in SEPARATORS:
        return AS_ASSUMED
    lines, usual = first_lines(file), SEPARATORS[file.format]
    rows, separator = max(
        ((rows_of(lines, each), each) for each in (usual, *CANDIDATES)),
        key=lambda found: (regular_rows(found[0]), found[1] == usual),
    )
    names = None if not rows or is_header(rows) else numbered(len(rows[0]))
    return TableLayout(None if separator == usual else separator, names)


def table_columns(file: InputFile, source: SourceConfig) -> list[str]:
    """Return the names of a CSV or TSV file's columns, by its source or its first row."""
    rows = rows_of(first_lines(file), source.separator or SEPARATORS[file.format])
    return [*(source.column_names or next(iter(rows), ()))]


def first_lines(file: InputFile) -> list[str]:
    """Return the first lines of a file; none if it cannot be read."""
    try:
        head = next(read_blocks(file), b"")[:HEAD_BYTES]
    except (OSError, BrokenStream):
        return []
    return head.decode("utf-8-sig", "replace").splitlines(keepends=True)


def rows_of(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the first rows of a table; those before a fault."""
    rows = list[list[str]]()
    try:
        for row in csv.reader(lines, delimiter=separator, strict=True):
            rows += [row] if row else []
            if len(rows) == NUM_ROWS:
                break
    except csv.Error:
        return rows
    return rows


def regular_rows(rows: Sequence[Sequence[str]]) -> float:
    """Return the share of rows with as many fields as the first one; 0 for a single column."""
    if not rows or len(rows[0]) == 1:
        return 0.0
    return sum(len(row) == len(rows[0]) for row in rows) / len(rows)


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row of a table has the names of its columns.

    Names are distinct, short and no numbers; a value comes again below, or is as long as others.
    """
    first = rows[0]
    others = [row for row in rows if row != first]  # files that were joined repeat it
    if len({*first}) < len(first) or not all(map(is_name, first)):
        return False
    columns = [[row[i] for row in others if len(row) == len(first)] for i in range(len(first))]
    return not any(
        name in values or (len(name.split()) >= MIN_WORDS and len(name) > median_length(values) / 3)
        for name, values in zip(first, columns, strict=True)
        if values
    )


def is_name(value: str) -> bool:
    """Return whether a cell may be the name of a column; an index has an empty one."""
    return len(value) <= MOST_NAME and not NUMBER.fullmatch(value.strip())


def median_length(values: Sequence[str]) -> float:
    """Return the median length of texts, in characters."""
    return median(map(len, values))


def numbered(count: int) -> tuple[str, ...]:
    """Return names for columns that have none, as Polars gives them."""
    return tuple(f"column_{number}" for number in range(1, count + 1))


def chat_field_of(records: Sequence[Fields]) -> str | None:
    """Return the field of messages in most records, or of answers to a question, if there is one.

    Messages in `prompt` come before those of an answer, and `rejected` is none to learn.
    """
    found = Counter(
        name for fields in records for name, value in fields.items() if is_conversation(name, value)
    )
    usual = [name for name, count in found.most_common() if count >= MIN_SHARE * len(records)]
    answers = [name for name in usual if name not in ("rejected", *PROMPTS)]
    return next(iter(answers), None) or answer_field_of(records) or next(iter(usual), None)


def answer_field_of(records: Sequence[Fields]) -> str | None:
    """Return the field with the answer to a question in most records, if none has both."""
    names = TEXT_FIELDS + ANSWERS
    usual = [name for name in names if share_with(records, name) >= MIN_SHARE]
    if not usual or usual[0] in TEXT_FIELDS:
        return None
    name = usual[0]
    num_answered = sum(bool(answer_of(each, name)[0]) for each in records)
    return usual[0] if num_answered >= MIN_SHARE * len(records) else None


def is_conversation(name: str, value: object) -> bool:
    """Return whether a field holds messages, or their JSON text, each with its role and text.

    Texts or questions that alternate with answers are some only in a field of a usual name.
    """
    if isinstance(value, str) and not value.startswith(("[{", *BEGINS)):
        return False
    try:
        first = as_messages(value, name)[0]
    except ChatError:
        return False
    given = value[0] if isinstance(value, list) else first
    is_usual = name in DIALOGUES or given == first
    return isinstance(first, Mapping) and is_usual and any({*form} <= {*first} for form in FORMS)


def text_field_of(records: Sequence[Fields]) -> str:
    """Return the first usual name with text in most records, else the field that has the text.

    UnclearLayout if there is none, or if others could be meant.
    """
    texts = texts_by_path(records)
    names = {name for fields in records for name in fields}
    if "role" in names and names & OF_MESSAGE:
        raise UnclearLayout(
            "records are single messages of conversations (fields: "
            f"{shown_names(names)}). Write each conversation as a list, `messages`"
        )
    for name in TEXT_FIELDS:
        spelled = [path for path in texts if path.lower() == name]
        if spelled and len(texts[spelled[0]]) >= MIN_SHARE * len(records):
            return spelled[0]
    plain = [path for path in texts if "[]" not in path and is_text(texts[path], len(records))]
    plain.sort(key=lambda path: -size_of(texts[path]))
    likely = [path for path in plain if not BESIDE.fullmatch(path.rpartition(".")[2])]
    if reason := doubt(texts, plain, likely):
        raise UnclearLayout(reason)
    if not likely:
        only = f"; `{plain[0]}` looks like a description of one" if plain else ""
        raise UnclearLayout(
            f"no field holds text in most records (fields: {shown_names(names)}){only}. Set "
            "`text_field` if one does"
        )
    return likely[0]


def doubt(texts: Mapping[str, Sequence[str]], plain: Sequence[str], likely: Sequence[str]) -> str:
    """Return why the first likely field may not be the text, and what to write; "" if it is.

    `plain` and `likely` are fields with texts, those with most text first.
    """
    if {*REJECTED} <= texts.keys():
        return (
            "records are preference pairs (`chosen`, `rejected`). To train on the answers that "
            "were preferred, write them with their prompts as `messages`, or set `text_field: "
            "chosen`"
        )
    if "segments[].text" in texts:
        return (
            "`segments` are marked as learned or not, which no text says. Write them as "
            "`messages`, with `train: false` in those that are not learned"
        )
    size = size_of(texts[likely[0]]) if likely else 0
    in_list = (path for path in texts if "[]" in path and size_of(texts[path]) > 2 * size)
    if deepest := max(in_list, key=lambda path: size_of(texts[path]), default=""):
        return in_lists(deepest)
    question = next((path for path in plain if path.lower() in ASKING), "")
    answer = next((path for path in texts if path.lower() in ANSWERS), "")
    if question and answer:
        return (
            f"`{answer}` answers `{question}`, and neither is the text alone. Write them as "
            "`messages` for `kind: chat`, or join them in one field"
        )
    close = [path for path in likely if size_of(texts[path]) >= MAX_SECOND * size]
    if len(close) > 1:
        return (
            f"several fields hold text: {shown_names(close)}. Set `text_field` to the one that is "
            "meant, or join them in one field"
        )
    return ""


def size_of(texts: Sequence[str]) -> int:
    """Return the number of characters of texts."""
    return sum(map(len, texts))


def texts_by_path(records: Sequence[Fields]) -> dict[str, list[str]]:
    """Return the texts of records by their dotted path; behind a list, its name has `[]`."""
    found: dict[str, list[str]] = {}
    for fields in records:
        for path, text in texts_in(fields, "", MOST_DEPTH):
            found.setdefault(path, []).append(text)
    return found


def texts_in(value: object, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of the texts in a value that are not empty."""
    if isinstance(value, str):
        if value:
            yield path, value
    elif depth and isinstance(value, Mapping):
        for name, inner in value.items():
            yield from texts_in(inner, f"{path}.{name}" if path else str(name), depth - 1)
    elif depth and isinstance(value, Sequence) and not isinstance(value, bytes):
        for inner in value:
            yield from texts_in(inner, f"{path}[]", depth)


def is_text(values: Sequence[str], num_records: int) -> bool:
    """Return whether a field holds text in most records: some words, few digits, no JSON."""
    if len(values) < MIN_SHARE * num_records or median_length(values) < MIN_CHARACTERS:
        return False
    return sum(map(has_words, values)) * 2 >= len(values)


def has_words(value: str) -> bool:
    """Return whether a value reads like text."""
    head = value[:2000]
    is_worded = len(head.split(None, MIN_WORDS)) >= MIN_WORDS or UNSPACED.search(head) is not None
    num_digits = sum(map(str.isdigit, head))
    return is_worded and num_digits <= MAX_DIGITS * len(head) and not head.startswith(("[{", '{"'))


def in_lists(path: str) -> str:
    """Say that the texts of a file are in lists, with a command that makes records of them."""
    outer, _, inner = path.rpartition("[]")
    name = inner.removeprefix(".")
    if not name:
        return f"the texts are in lists: `{outer}`. Join each list to one text"
    query = "".join(jq_step(step) for step in f"{outer}[]".split("."))
    return (
        f"the texts are in lists of objects: `{path}`. Make a record of each, as with "
        f"`jq -c '{query}' FILE > NEW.jsonl`, and set `text_field: {name}`"
    )


def jq_step(step: str) -> str:
    """Return a step of a path as jq writes it."""
    name, dots = step.rstrip("[]"), "[]" * step.count("[]")
    return f".{name}{dots}" if IDENTIFIER.fullmatch(name) else f".[{json.dumps(name)}]{dots}"


def shown_names(names: Sequence[str] | set[str]) -> str:
    """Return the names of fields as one line, in their order, a set's sorted."""
    ordered = sorted(names) if isinstance(names, set) else [*names]
    more = ", ..." if len(ordered) > MOST_SHOWN else ""
    return (", ".join(ordered[:MOST_SHOWN]) + more).translate(ONE_LINE)


def share_with(records: Sequence[Fields], name: str) -> float:
    """Return the share of the records in which a field holds a text."""
    found = (look_up(fields, name) for fields in records)
    return sum(bool(isinstance(value, str) and value) for value in found) / len(records)


def html_of(texts: Sequence[str]) -> Literal["keep", "text", "page"]:
    """Return `html` for a source: whether most texts are whole pages, or have tags of HTML."""
    pages, tagged = (sum(mark.search(t) is not None for t in texts) for mark in (PAGE, TAG))
    return "page" if 2 * pages > len(texts) else "text" if 2 * tagged > len(texts) else "keep"
