"""Mailboxes and messages of several programs and languages."""

import base64
from email.message import EmailMessage

from input_files import COMPRESS, read, texts, write
from prelude import Path, given, json, pytest, settings, st

from assets.raw.readers.formats import tell_format

FROM = "From ann@example.org Tue Jan  2 10:00:00 2001\n"
HEAD = "From: Ann <ann@example.org>\nSubject: Bees\nMessage-ID: <1@example.org>\n"
HEAD += "Date: Tue, 2 Jan 2001 10:00:00 +0100\n"
META = {"id": "1@example.org", "date": "2001-01-02T10:00:00+01:00", "subject": "Bees"}


def mime(kind: str, body: str, *more: str) -> str:
    return "\n".join([f"Content-Type: {kind}", *more, "", body])


def parts(subtype: str, *inner: str, boundary: str = "b") -> str:
    body = "".join(f"--{boundary}\n{each}\n" for each in inner)
    return f'Content-Type: multipart/{subtype}; boundary="{boundary}"\n\n{body}--{boundary}--\n'


def encoded(text: str, charset: str) -> str:
    return base64.encodebytes(text.encode(charset)).decode()


PLAIN, RICH = mime("text/plain", "Bees fly."), mime("text/html", "<p>Bees <b>sing</b>.</p>")
PICTURE = mime("image/png", "aGk=", "Content-Transfer-Encoding: base64")
FILE = mime("text/plain", "x", 'Content-Disposition: attachment; filename="x.txt"')
BASE64 = "Content-Transfer-Encoding: base64"
QP, WORDS = "Content-Transfer-Encoding: quoted-printable", "Grüße, schöne Wörter aus Köln"
FORWARDED = f"Content-Type: message/rfc822\n\nSubject: In\n{PLAIN}"
MESSAGES: dict[str, tuple[str | bytes, str, int]] = {  # content behind HEAD, text, attachments
    "no_mime": ("\nBees fly.\n", "Bees fly.", 0),
    "plain": (PLAIN, "Bees fly.", 0),
    "crlf": (PLAIN.replace("\n", "\r\n"), "Bees fly.", 0),
    "html": (RICH, "Bees sing.", 0),
    "alternative": (parts("alternative", PLAIN, RICH), "Bees fly.", 0),
    "alternative_of_html": (parts("alternative", RICH), "Bees sing.", 0),
    "empty_plain": (parts("alternative", mime("text/plain", ""), RICH), "Bees sing.", 0),
    "related": (parts("related", RICH, PICTURE), "Bees sing.", 1),
    "mixed": (parts("mixed", PLAIN, PICTURE, FILE), "Bees fly.", 2),
    "footer": (parts("mixed", PLAIN, mime("text/plain", "-- list")), "Bees fly.\n\n-- list", 0),
    "nested": (
        parts("mixed", parts("alternative", PLAIN, RICH, boundary="c"), PICTURE), "Bees fly.", 1,
    ),
    "plain_and_html": (parts("mixed", PLAIN, RICH), "Bees fly.\n\nBees sing.", 0),
    "signed": (parts("signed", PLAIN, mime("application/pgp-signature", "x")), "Bees fly.", 1),
    "forwarded": (parts("mixed", mime("text/plain", "See:"), FORWARDED), "See:\n\nBees fly.", 0),
    "quoted_printable": (mime("text/plain; charset=utf-8", "Gr=C3=BC=C3=9Fe=\n!", QP), "Grüße!", 0),
    "base64": (mime("text/plain; charset=utf-8", encoded("Grüße", "utf-8"), BASE64), "Grüße", 0),
    "latin": (mime("text/plain; charset=iso-8859-1", "Grüße").encode("latin-1"), "Grüße", 0),
    "euro": (mime("text/plain; charset=iso-8859-1", "5 €").encode("cp1252"), "5 €", 0),
    "russian": (mime("text/plain; charset=koi8-r", encoded("Пчёлы", "koi8-r"), BASE64), "Пчёлы", 0),
    "japanese": (mime("text/plain; charset=ISO-2022-JP", "蜂が").encode("iso-2022-jp"), "蜂が", 0),
    "chinese": (mime("text/html; charset=gb2312", encoded("<p>蜂</p>", "gbk"), BASE64), "蜂", 0),
    "ascii_that_is_utf8": (mime("text/plain; charset=us-ascii", WORDS), WORDS, 0),
    "unknown_charset": (mime("text/plain; charset=x-unknown", WORDS), WORDS, 0),
    "no_charset": (mime("text/plain", WORDS, "Content-Transfer-Encoding: 8bit"), WORDS, 0),
}  # fmt: skip


def content_of(name: str) -> bytes:
    body = MESSAGES[name][0]
    return HEAD.encode() + (body if isinstance(body, bytes) else body.encode())


@pytest.mark.parametrize("name", MESSAGES)
def test_the_text_of_a_message_is_a_document(tmp_path: Path, name: str) -> None:
    _, text, num_attachments = MESSAGES[name]

    chunk = read(write(tmp_path, f"{name}.eml", content_of(name)))

    assert (texts(chunk), chunk.quarantine["error"].to_list()) == ([text], [])
    assert json.loads(chunk.documents["meta"][0]) == META
    assert chunk.left_out["attachment"] == num_attachments


@pytest.mark.parametrize("name", ["all.mbox", "all.mbx", "all.mbox.gz"])
def test_each_message_of_a_mailbox_is_a_document(tmp_path: Path, name: str) -> None:
    data = b"\n\n".join(FROM.encode() + content_of(each) for each in MESSAGES)

    chunk = read(write(tmp_path, name, COMPRESS["gz"](data) if name.endswith("gz") else data))

    assert texts(chunk) == [text for _, text, _ in MESSAGES.values()]
    assert chunk.documents["origin"].struct.field("row").to_list() == [*range(len(MESSAGES))]
    assert chunk.left_out == {"attachment": sum(number for *_, number in MESSAGES.values())}


def test_only_a_line_with_a_time_behind_a_blank_line_begins_a_message(tmp_path: Path) -> None:
    body = (
        "Hi\nFrom ann@example.org Tue Jan  2 10:00:00 2001\n\nFrom here on.\n>From me\n>>From you"
    )
    takeout = "From 1234@xxx Tue Jan 02 10:00:00 +0000 2001\r\n"
    data = f"{FROM}{HEAD}\n{body}\n\n{takeout}{HEAD}\nTwo.\n"

    chunk = read(write(tmp_path, "a.mbox", data), quotes="keep")

    assert texts(chunk) == [body.replace(">From", "From"), "Two."]
    eml = read(write(tmp_path, "a.eml", f"{HEAD}\nA\n\n{FROM}B\n"))
    assert texts(eml) == [f"A\n\n{FROM}B"]


@pytest.mark.parametrize(
    ("text", "folded", "number"),
    [
        ("Yes.\n\nOn Tue, 2 Jan 2001, Ann wrote:\n> Fly?\n> Far?\n\nBob", "Yes.\n\nBob", 3),
        (
            "On Tue, 2 Jan 2001 at 10:00,\nAnn Lee <a@b.org> wrote:\n\n> Fly?\n>> No\n\nYes.",
            "Yes.",
            4,
        ),
        ("Am 2.1.2001 schrieb Ann:\n> Fly?\nYes.\n> Far?\nNo.", "Yes.\n\nNo.", 3),
        ("Ann Lee writes:\n> Fly?\nYes.", "Yes.", 2),
        ("We have three kinds:\n> a\n> b\nof bees.", "We have three kinds:\n\nof bees.", 2),
        ("One.\nTwo.\nIn 2001 he said:\n> Fly.", "One.\nTwo.", 2),
        ("No quotes, a > b.\n\n\n\nEnd.", "No quotes, a > b.\n\n\n\nEnd.", 0),
        ("> all", "", 1),
    ],
)
def test_quoted_lines_are_folded_and_counted_or_kept(
    tmp_path: Path, text: str, folded: str, number: int
) -> None:
    file = write(tmp_path, "a.eml", f"{HEAD}\n{text}\n")

    fold, keep = read(file), read(file, quotes="keep")

    assert texts(fold) == [folded]
    assert texts(keep) == [text]
    assert json.loads(fold.documents["meta"][0]).get("quoted_lines", 0) == number


def test_headers_are_decoded_and_odd_ones_are_kept(tmp_path: Path) -> None:
    head = "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n =?iso-8859-1?q?_=FC?=\nDate: yesterday\n"

    chunk = read(write(tmp_path, "a.eml", f"{head}\nHi.\n"))

    assert json.loads(chunk.documents["meta"][0]) == {"date": "yesterday", "subject": "Grüße ü"}


def test_a_message_that_is_a_file_is_left_out(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "a.eml", HEAD + PICTURE))

    assert (texts(chunk), chunk.left_out, chunk.rows_in) == ([], {"attachment": 1}, 1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("\nno header at all\n", "it does not begin with a header"),
        (
            f"{HEAD}Content-Type: text/plain; x={'a@b.' * 999}\n\nx",
            "the header 'Content-Type: text/plain",
        ),
        (f"{HEAD}Content-Type: text/plain {'(' * 60}\n\nx", "the header 'Content-Type: text/plain"),
        (
            f"{HEAD}Content-Type: text/plain {'(' * 1900}\n\nx",
            "the header 'Content-Type: text/plain",
        ),
        (HEAD + "Content-Type: multipart/mixed; boundary=b\n\n--b\n" * 60, "more than 50 parts"),
        (f"{HEAD}Content-Type: text/plain; charset=hz-gb-2312\n\n~{{VPND~}}\n", "encoding"),
        (f"{HEAD}\n{'x' * 5000}\n", "message is above max_record_bytes=5,000"),
    ],
)
def test_a_broken_message_is_alone_in_quarantine(tmp_path: Path, content: str, reason: str) -> None:
    good = f"{FROM}{HEAD}\nGood.\n\n"

    chunk = read(
        write(tmp_path, "a.mbox", f"{good}{FROM}{content}\n\n{good}"), max_record_bytes=5000
    )

    [row] = chunk.quarantine.rows(named=True)
    assert texts(chunk) == ["Good."] * 2
    assert (reason in row["error"], row["position"], row["line"]) == (True, "record 1", 9)


def test_a_cut_mailbox_has_the_messages_before(tmp_path: Path) -> None:
    data = b"".join(f"{FROM}{HEAD}\nNumber {i * 7919}.\n\n".encode() for i in range(2000))

    chunk = read(write(tmp_path, "a.mbox.gz", COMPRESS["gz"](data)[:-900]))

    assert len(chunk.documents) > 500
    assert "stream is broken" in chunk.quarantine["error"][-1]


def test_what_the_standard_library_writes_is_read(tmp_path: Path) -> None:
    message = EmailMessage()
    message["Subject"] = "Grüße"
    message.set_content("Bienen fliegen über Köln.\n")
    message.add_alternative("<p>Bienen</p>", subtype="html")
    message.add_attachment(b"x", maintype="application", subtype="pdf", filename="ü.pdf")

    chunk = read(write(tmp_path, "a.eml", bytes(message)))

    assert (texts(chunk), chunk.left_out) == (["Bienen fliegen über Köln."], {"attachment": 1})


@pytest.mark.parametrize("name", ["a.mbox", "b.mbx.zst", "c.EML"])
def test_names_tell_the_format(name: str) -> None:
    assert tell_format(name)[0] == "mbox"


TOKENS = [
    "Content-Type: ",
    "multipart/mixed; boundary=b",
    "text/html",
    "\n",
    "\n\n",
    "--b",
    "--b--",
]
TOKENS += [
    FROM,
    "> ",
    "Subject: x",
    "=?utf-8?q?=FF?=",
    "charset=",
    "Content-Transfer-Encoding: base64",
]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(TOKENS), max_size=25))
def test_any_mail_ends_in_documents_quarantine_or_left_out(
    tmp_path_factory: pytest.TempPathFactory, tokens: list[str]
) -> None:
    data = f"{FROM}{HEAD}{''.join(tokens)}\n\n{FROM}{HEAD}\nEnd.\n"
    chunk = read(write(tmp_path_factory.mktemp("any"), "a.mbox", data))

    assert texts(chunk)[-1] == "End."
    assert chunk.rows_in >= 2
