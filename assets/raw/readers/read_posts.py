"""Posts.xml of Stack Exchange: a document per question, with its answers in order of score.

Answers stand anywhere behind their question, so that all posts go through a private database of
SQLite on disk, which is gone with its connection, and come back sorted: memory does not grow with
the file. Price: disk for the posts, twice while they are sorted (in SQLITE_TMPDIR or TMPDIR).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from typing import NamedTuple
from xml.etree import ElementTree

import msgspec

from assets.raw.readers.archive_names import EMPTY_POST, OTHER_POST
from assets.raw.readers.decompress import FileFault
from assets.raw.readers.html_fields import plain_text
from assets.raw.readers.input_file import STREAM_END, InputFile, Slice
from assets.raw.readers.input_record import InputRecord
from assets.raw.readers.read_lines import Line, read_lines
from resources.settings.sources import SourceConfig

QUESTION, ANSWER = "1", "2"  # PostTypeId; others are wikis of tags and such
LICENCES = (("2011-04-08", "CC BY-SA 2.5"), ("2018-05-02", "CC BY-SA 3.0"))  # of posts before
NEWEST = "CC BY-SA 4.0"  # https://stackoverflow.com/help/licensing
SITE = re.compile(
    r"(?:[\w-]+\.)*(?:stackexchange|stackoverflow|superuser|serverfault|askubuntu|stackapps)\.com"
    r"|mathoverflow\.net"
)
KEPT = ("Body", "Title", "Tags", "CreationDate", "ContentLicense", "AcceptedAnswerId")
TABLE = "CREATE TABLE post (topic INT, is_answer INT, score INT, id INT, place INT, kept BLOB)"
SORTED = "SELECT * FROM post ORDER BY topic, is_answer, score DESC, id, place"
ENCODE = msgspec.json.encode
DECODE = msgspec.json.Decoder(dict[str, str]).decode


class _Post(NamedTuple):
    """A row of the table; `topic` is the id of the question, `place` a byte of the file."""

    topic: int
    is_answer: int
    score: int
    id: int
    place: int
    kept: bytes


def read_posts(file: InputFile, source: SourceConfig, cut: Slice) -> Iterator[InputRecord]:
    """Yield what cannot be read or is left out, then the questions; rows are bytes of the file."""
    found = SITE.search(file.name)
    with closing(sqlite3.connect("", isolation_level=None, check_same_thread=False)) as table:
        table.execute("PRAGMA journal_mode = OFF")
        table.execute(TABLE)
        table.execute("BEGIN")
        is_ended = cut.span.end.offset < STREAM_END
        for line in read_lines(file, source, cut.span):
            post = line.data.strip()
            is_ended = is_ended or post.startswith(b"</posts")
            if line.error or post.startswith(b"<row"):
                read = _parsed(line)
                if isinstance(read, InputRecord):
                    yield read
                else:
                    table.execute("INSERT INTO post VALUES (?, ?, ?, ?, ?, ?)", read)
            elif post.strip(b"\xef\xbb\xbf") and not post.endswith(
                (b"?>", b"<posts>", b"</posts>")
            ):
                yield InputRecord(line.offset, None, post, "XML is broken: no post in this line")
        if not is_ended:
            yield InputRecord(0, None, b"", FileFault("XML ends before </posts> (truncated)"))
        posts = map(_Post._make, table.execute(SORTED))
        for _, topic in groupby(posts, key=lambda post: post.topic):
            yield from _topic_records(topic, found[0] if found else "", source)


def _parsed(line: Line) -> _Post | InputRecord:
    """Return the post of a line, or what is wrong with it."""
    if line.error:
        return InputRecord(line.offset, None, line.data, line.error)
    try:
        row = ElementTree.fromstring(line.data.strip()).attrib
        kind, number, score = row["PostTypeId"], int(row["Id"]), int(row.get("Score", "0"))
        if kind not in (QUESTION, ANSWER):
            return InputRecord(line.offset, None, left_out=OTHER_POST)
        topic = number if kind == QUESTION else int(row["ParentId"])
        kept = ENCODE({key: row[key] for key in KEPT if key in row})
        post = _Post(topic, int(kind == ANSWER), score, number, line.offset, kept)
    except ElementTree.ParseError as error:
        return InputRecord(line.offset, None, line.data, f"XML is broken: {error}")
    except KeyError as error:
        return InputRecord(line.offset, None, line.data, f"XML post has no {error}")
    except ValueError as error:
        return InputRecord(line.offset, None, line.data, f"XML post has a wrong number: {error}")
    if all(abs(each) < STREAM_END for each in (topic, score, number)):
        return post
    return InputRecord(line.offset, None, line.data, "XML post has a number above 2^63")


def _topic_records(
    topic: Iterator[_Post], site: str, source: SourceConfig
) -> Iterator[InputRecord]:
    """Yield the record of a question with its answers, and errors of posts that belong to none."""
    question = next(topic)
    if question.is_answer:
        yield _misplaced(question, f"its question {question.topic} is not in the file")
        yield from (
            _misplaced(each, f"its question {each.topic} is not in the file") for each in topic
        )
        return
    first = DECODE(question.kept)
    asked = first.get("Title"), plain_text(first.get("Body", "")).strip()
    posts, parts = [first], ["Q: " + "\n\n".join(filter(None, asked))]
    for each in topic:
        kept = DECODE(each.kept)
        text = plain_text(kept.get("Body", ""))
        if not each.is_answer:
            yield _misplaced(each, f"the file has a question {each.id} before it")
        elif text.strip():
            posts.append(kept)
            parts.append(f"A: {text}")
        else:
            yield InputRecord(each.place, None, left_out=EMPTY_POST)
    fields = {
        source.text_field: "\n\n".join(parts),
        "id": question.id,
        "title": first.get("Title"),
        "url": f"https://{site}/questions/{question.id}" if site else None,
        source.license_field: " AND ".join(sorted({*map(licence_of, posts)})),
        "date": first.get("CreationDate"),
        "tags": re.findall(r"[^<>|]+", first.get("Tags", "")),
        "score": question.score,
        "answers": len(posts) - 1,
    }
    known = {key: value for key, value in fields.items() if value is not None}
    yield InputRecord(question.place, known)


def _misplaced(post: _Post, why: str) -> InputRecord:
    return InputRecord(post.place, None, post.kept, f"XML post {post.id} has no place: {why}")


def licence_of(post: dict[str, str]) -> str:
    """Return the licence of a post: its own, or that of its date."""
    date = post.get("CreationDate", "")
    by_date = next((name for end, name in LICENCES if date < end), NEWEST)
    return post.get("ContentLicense") or by_date
