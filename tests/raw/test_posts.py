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


def dumped(number: int, **attributes: object) -> str:
    """Return a row as a dump writes it: line ends and quotes of attributes are references."""
    marks = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#xA;", "\t": "&#x9;"}
    escaped = {
        key: "".join(marks.get(sign, sign) for sign in str(value))
        for key, value in attributes.items()
    }
    return row(number, " ".join(f'{key}="{value}"' for key, value in escaped.items()))


ASKED = {"PostTypeId": 1, "CreationDate": "2020-02-03T10:11:12.013", "Score": 3, "Title": "T"}
ANSWERED = {"PostTypeId": 2, "ParentId": 1, "CreationDate": "2020-02-04T10:11:12.013", "Score": 1}
TABLE = """<div class="s-table-container">
<table class="s-table">
<thead>
<tr>
<th>Year</th>
<th style="text-align: right;">Sales</th>
</tr>
</thead>
<tbody>
<tr>
<td>2019</td>
<td style="text-align: right;">12</td>
</tr>
</tbody>
</table>
</div>
"""
BODIES = {
    "code of a language": (
        '<p>Use <code>a &lt; b</code>:</p>\n\n<pre class="lang-py prettyprint-override"><code>'
        "for i in x:\n\tif i:\n        print(&quot;é&quot;)\n\n    # &amp;amp;\n</code></pre>\n",
        'Use a < b:\n\nfor i in x:\n\tif i:\n        print("é")\n\n    # &amp;',
    ),
    "a snippet that runs": (
        "<p>Try:</p>\n\n<p><!-- begin snippet: js hide: false console: true -->\n<!-- language: "
        'lang-js -->\n</p><div class="snippet"><pre class="snippet-code-js lang-js '
        'prettyprint-override"><code>let a = 1;\n</code></pre></div>',
        "Try:\n\nlet a = 1;",
    ),
    "a table": (f"{TABLE}<p>After.</p>\n", "Year\t\tSales\n2019\t\t12\n\nAfter."),
    "formulas": (
        "<p>By Cauchy $x &lt; y$,\n$$\\int_a^b f(x)\\,dx \\le |b-a|$$</p>\n",
        "By Cauchy $x < y$, $$\\int_a^b f(x)\\,dx \\le |b-a|$$",
    ),
    "a spoiler": (
        '<blockquote class="spoiler">\n  <p> The butler did it.</p>\n</blockquote>\n\n<p>Sure?</p>',
        "The butler did it.\n\nSure?",
    ),
    "an image and a link": (
        '<p><a href="https://i.stack.imgur.com/a.png" rel="nofollow noreferrer"><img src="https://'
        'i.stack.imgur.com/a.png" alt="A chart of sales" /></a></p>\n<p>See <a href="https://x.io"'
        ">the manual</a>.</p>",
        "A chart of sales\n\nSee the manual.",
    ),
    "keys, lists and rules": (
        "<p>Press <kbd>Ctrl</kbd>+<kbd>C</kbd>, then<br>\nwait</p>\n\n<hr>\n\n<ol>\n<li>One</li>\n"
        "<li><p>Two</p>\n\n<ul>\n<li>deep</li>\n</ul></li>\n</ol>\n",
        "Press Ctrl+C, then\nwait\n\n  1. One\n\n  2. Two\n\n    • deep",
    ),
    "unusual references": (
        "<p>&#8220;Quoted&#8221; &hellip; &#x1F600; &amp;lt; &lt;3 &amp;nbsp; 𝔘 한국어</p>",
        "“Quoted” … 😀 &lt; <3 &nbsp; 𝔘 한국어",
    ),
}


@pytest.mark.parametrize("kind", BODIES)
def test_the_text_of_a_post_is_what_its_page_shows(tmp_path: Path, kind: str) -> None:
    body, shown = BODIES[kind]
    rows = dumped(1, **ASKED, Body=body), dumped(2, **ANSWERED, Body=body)
    chunk = read(write(tmp_path, "Posts.xml", posts(*rows)))
    assert texts(chunk) == [f"Q: T\n\n{shown}\n\nA: {shown}"]
    assert len(chunk.quarantine) == 0


def test_a_title_is_no_html_and_owners_change_nothing(tmp_path: Path) -> None:
    rows = (
        dumped(1, **ASKED | {"Title": 'Is <b> "bold" & &lt; what?'}, Body="<p>Hm.</p>\n",
               OwnerDisplayName="user28", ClosedDate="2021-01-01T00:00:00.000"),
        dumped(2, **ANSWERED, Body="<p>Yes.</p>\n", CommunityOwnedDate="2020-02-04T10:11:12.013",
               LastEditorDisplayName="user-2"),
    )  # fmt: skip
    chunk = read(write(tmp_path, "Posts.xml", posts(*rows)))
    assert texts(chunk) == ['Q: Is <b> "bold" & &lt; what?\n\nHm.\n\nA: Yes.']


def test_the_score_orders_answers_and_the_accepted_one_has_no_place_of_its_own(
    tmp_path: Path,
) -> None:
    scores = {2: 4, 3: -7, 4: 4, 5: 1, 6: 0}
    rows = [dumped(i, **ANSWERED | {"Score": score}, Body=f"<p>{i}</p>") for i, score
            in scores.items()]  # fmt: skip
    asked = dumped(1, **ASKED | {"Score": -3}, Body="<p>?</p>", AcceptedAnswerId=5)
    chunk = read(write(tmp_path, "Posts.xml", posts(asked, *rows)))
    assert texts(chunk) == ["Q: T\n\n?\n\nA: 2\n\nA: 4\n\nA: 5\n\nA: 6\n\nA: 3"]
    assert json.loads(chunk.documents["meta"][0])["score"] == -3


def test_an_answer_that_shows_nothing_is_no_answer(tmp_path: Path) -> None:
    empty = ["", "<p></p>\n", '<p><img src="https://i.stack.imgur.com/a.png" /></p>']
    rows = [dumped(i, **ANSWERED, Body=body) for i, body in enumerate([*empty, "<p>x</p>"], 2)]
    chunk = read(write(tmp_path, "Posts.xml", posts(dumped(1, **ASKED, Body="<p>?</p>"), *rows)))
    assert texts(chunk) == ["Q: T\n\n?\n\nA: x"]
    assert json.loads(chunk.documents["meta"][0])["answers"] == 1
    assert chunk.left_out == {"empty_post": 3}


def test_other_rows_of_real_dumps_are_counted_or_named(tmp_path: Path) -> None:
    others = [dumped(10 + kind, PostTypeId=kind, CreationDate="2011", Score=0, Body="<p>w</p>")
              for kind in (3, 4, 5, 6, 7, 8)]  # fmt: skip
    orphan = dumped(30, **ANSWERED | {"ParentId": 29}, Body="<p>its question is deleted</p>")
    control = row(31, 'PostTypeId="1" Score="1" Title="T" Body="a &#x1F; b"')
    asked = dumped(1, **ASKED, Body="<p>?</p>")
    chunk = read(write(tmp_path, "Posts.xml", posts(asked, *others, orphan, control)))
    assert texts(chunk) == ["Q: T\n\n?"]
    assert chunk.left_out == {"other_post": 6}
    errors = chunk.quarantine["error"].to_list()
    assert any("its question 29 is not in the file" in error for error in errors)
    assert any("reference to invalid character number" in error for error in errors)


def test_a_question_and_its_answers_have_the_licences_of_their_dates(tmp_path: Path) -> None:
    dates = ("2009-01-01", "2014-01-01", "2023-01-01", "2023-01-02")
    rows = [dumped(1, **ASKED | {"CreationDate": dates[0]}, Body="<p>?</p>")]
    rows += [dumped(i, **ANSWERED | {"CreationDate": date}, Body="<p>!</p>")
             for i, date in enumerate(dates[1:], 2)]  # fmt: skip
    chunk = read(write(tmp_path, "Posts.xml", posts(*rows)))
    assert chunk.documents["license"].to_list() == [
        "CC BY-SA 2.5 AND CC BY-SA 3.0 AND CC BY-SA 4.0"
    ]
