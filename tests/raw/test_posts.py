"""Posts.xml of Stack Exchange: questions with their answers, licences, and what is damaged."""

import random

from input_files import COMPRESS, read, texts, write
from prelude import Path, json, pytest
from tables import cases

from assets.raw.readers.read_posts import licence_of

HEAD = '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<posts>\n'
TAIL = "</posts>\n"
ROWS = {  # as the dumps of a site have them
    1: 'PostTypeId="1" AcceptedAnswerId="4" CreationDate="2010-07-19T19:12:12.510" Score="47" '
    'ViewCount="5188" Body="&lt;p&gt;How do bees &lt;em&gt;fly&lt;/em&gt;?&lt;/p&gt;&#xA;" '
    'OwnerUserId="8" LastActivityDate="2020-11-01T01:48:26.840" Title="Flight of bees" '
    'Tags="&lt;bees&gt;&lt;flight-mechanics&gt;" AnswerCount="3" CommentCount="1" '
    'ContentLicense="CC BY-SA 2.5"',
    2: 'PostTypeId="1" CreationDate="2012-01-01T00:00:00.000" Score="-1" Body="&lt;p&gt;Alone.'
    '&lt;/p&gt;" Title="A question &amp; no answer" Tags="|sql|c#|" AnswerCount="0" '
    'ContentLicense="CC BY-SA 3.0"',
    3: 'PostTypeId="2" ParentId="1" CreationDate="2010-07-19T20:00:00.000" Score="5" '
    'Body="&lt;p&gt;With wings.&lt;/p&gt;" ContentLicense="CC BY-SA 2.5"',
    4: 'PostTypeId="2" ParentId="1" CreationDate="2019-07-19T20:00:00.000" Score="-2" '
    'Body="&lt;p&gt;By magic.&lt;/p&gt;" ContentLicense="CC BY-SA 4.0"',
    5: 'PostTypeId="2" ParentId="1" CreationDate="2010-08-19T20:00:00.000" Score="12" '
    'Body="&lt;p&gt;Code:&lt;/p&gt;&#xA;&#xA;&lt;pre&gt;&lt;code&gt;def fly():&#xA;    return '
    'a &amp;lt; b&#xA;&lt;/code&gt;&lt;/pre&gt;" ContentLicense="CC BY-SA 2.5"',
    6: 'PostTypeId="4" CreationDate="2010-07-19T20:00:00.000" Score="0" Body="a tag"',
    7: 'PostTypeId="5" CreationDate="2010-07-19T20:00:00.000" Score="0" Body=""',
}
FLIGHT = """\
Q: Flight of bees

How do bees fly?

A: Code:

def fly():
    return a < b

A: With wings.

A: By magic."""


def row(number: int, attributes: str) -> str:
    return f'  <row Id="{number}" {attributes} />\n'


def posts(*rows: str) -> str:
    return HEAD + "".join(rows) + TAIL


KNOWN = [row(number, attributes) for number, attributes in ROWS.items()]


@pytest.mark.parametrize("packing", ["", *COMPRESS])
def test_a_question_comes_with_its_answers_by_score(tmp_path: Path, packing: str) -> None:
    data = COMPRESS[packing](posts(*KNOWN).encode()) if packing else posts(*KNOWN).encode()
    name = "bees.stackexchange.com-Posts.xml" + (f".{packing}" if packing else "")

    chunk = read(write(tmp_path, name, data), id_field="id")

    assert texts(chunk) == [FLIGHT, "Q: A question & no answer\n\nAlone."]
    assert chunk.documents["id"].to_list() == ["1", "2"]
    assert chunk.documents["url"][0] == "https://bees.stackexchange.com/questions/1"
    assert chunk.documents["license"].to_list() == [
        "CC BY-SA 2.5 AND CC BY-SA 4.0",
        "CC BY-SA 3.0",
    ]
    meta = [json.loads(each) for each in chunk.documents["meta"]]
    assert [each["tags"] for each in meta] == [["bees", "flight-mechanics"], ["sql", "c#"]]
    assert (meta[0]["answers"], meta[0]["score"]) == (3, 47)
    assert chunk.left_out == {"other_post": 2}
    places = [len(HEAD.encode()), len((HEAD + KNOWN[0]).encode())]
    assert chunk.documents["origin"].struct.field("row").to_list() == places


def test_the_order_of_rows_changes_no_text(tmp_path: Path) -> None:
    shuffled = [*KNOWN]
    random.Random(7).shuffle(shuffled)
    assert shuffled != KNOWN
    chunk = read(write(tmp_path, "Posts.xml", posts(*shuffled)))
    assert sorted(texts(chunk)) == sorted([FLIGHT, "Q: A question & no answer\n\nAlone."])
    assert chunk.documents["url"].to_list() == [None, None]


def test_many_questions_keep_all_of_their_answers(tmp_path: Path) -> None:
    questions = [
        row(i, f'PostTypeId="1" Score="0" CreationDate="2020" Title="T{i}" Body="B{i}"')
        for i in range(2000)
    ]
    answers = [
        row(2000 + i, f'PostTypeId="2" ParentId="{i * 7 % 2000}" Score="{i % 5}" Body="A{i}"')
        for i in range(4000)
    ]
    chunk = read(write(tmp_path, "Posts.xml", posts(*questions, *answers)), part_bytes=1 << 14)
    found = texts(chunk)
    assert len(found) == 2000
    assert sorted(part for text in found for part in text.split("\n\nA: ")[1:]) == sorted(
        f"A{i}" for i in range(4000)
    )
    assert found[7] == "Q: T7\n\nB7\n\nA: A1\n\nA: A2001"  # scores are equal: the older id


@cases("""
attributes                                                       | error
PostTypeId="2" ParentId="99" Score="1" Body="b"                  | its question 99 is not in
PostTypeId="1" Score="x" Body="b"                                | has a wrong number: invalid
PostTypeId="2" Score="1" Body="b"                                | XML post has no 'ParentId'
Score="1" Body="b"                                               | XML post has no 'PostTypeId'
PostTypeId="1" Body="a < b"                                      | XML is broken: not well-formed
PostTypeId="1" Body="&e;"                                        | XML is broken: undefined entity
PostTypeId="1" Score="99999999999999999999" Body="b"             | a number above 2^63
PostTypeId="1" Body="b" Id="3"                                   | XML is broken: duplicate
""")
def test_what_is_wrong_with_a_post_is_named(tmp_path: Path, attributes: str, error: str) -> None:
    chunk = read(write(tmp_path, "Posts.xml", posts(*KNOWN, row(50, attributes))))
    assert len(chunk.documents) == 2
    assert error in chunk.quarantine["error"][0]
    assert chunk.quarantine["position"][0] == f"byte {len((HEAD + ''.join(KNOWN)).encode())}"


def test_of_two_questions_with_one_id_the_first_stays(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "Posts.xml", posts(*KNOWN, KNOWN[1])))
    assert len(chunk.documents) == 2
    assert "the file has a question 2 before it" in chunk.quarantine["error"][0]


def test_a_post_above_the_bound_costs_the_post(tmp_path: Path) -> None:
    large = row(9, f'PostTypeId="1" Score="1" Body="{"x" * 5000}"')
    chunk = read(write(tmp_path, "Posts.xml", posts(*KNOWN, large)), max_record_bytes=2000)
    assert len(chunk.documents) == 2
    assert "max_record_bytes=2,000" in chunk.quarantine["error"][0]


def test_a_cut_file_gives_what_came_before(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "Posts.xml", posts(*KNOWN)[:-40]))
    assert texts(chunk)[0] == FLIGHT
    assert any("(truncated)" in error for error in chunk.quarantine["error"])


def test_lines_that_are_no_posts_are_named(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "Posts.xml", posts(*KNOWN, "  text\n", "<!-- a -->\n")))
    assert chunk.quarantine["error"].to_list() == ["XML is broken: no post in this line"] * 2


@cases("""
date                    | expected
2008-07-31T21:42:52.667 | CC BY-SA 2.5
2011-04-07T23:59:59.999 | CC BY-SA 2.5
2011-04-08T00:00:00.000 | CC BY-SA 3.0
2018-05-01T23:59:59.999 | CC BY-SA 3.0
2018-05-02T00:00:00.000 | CC BY-SA 4.0
2024-03-31T00:00:00.000 | CC BY-SA 4.0
""")
def test_a_post_without_a_licence_has_that_of_its_date(date: str, expected: str) -> None:
    assert licence_of({"CreationDate": date}) == expected
    assert licence_of({"CreationDate": date, "ContentLicense": "CC BY-SA 1.0"}) == "CC BY-SA 1.0"
