"""Documents and records in quarantine that a takedown means, and those that it does not."""

import html
import unicodedata

import msgspec
from builders import sentence
from msgspec import UNSET
from prelude import Any, Path, json, pl, pytest

from assets.raw.readers.documents import QUARANTINE_SCHEMA, document_id
from assets.raw.taken_down_files import is_record_wanted
from assets.text.marks import (
    MOST_RUNS,
    RUN_BYTES,
    id_marks,
    passage_marks,
    run_marks,
    single,
    text_marks,
)
from assets.text.takedown_files import (
    hash_of,
    is_copy,
    is_wanted,
    passages_by_text,
    wanted_by,
    with_passages,
    with_runs,
)
from resources.takedowns import (
    URL_FORM,
    Takedown,
    UrlForm,
    count_takedowns,
    id_of,
    path_of,
    read_takedowns,
)

# As commit 2801a437 recorded it, with `corpus takedown --match` of OLD_TEXT.
OLD_TEXT = (
    "Žofie's café served crème brûlée to fifty-one guests, who praised the naïve décor of its "
    "façade and stayed until the déjà-vu of another dawn."
)
OLD_REQUEST = (
    '{"kind":"match","reason":"request 1","near":false,"addresses":[],"domains":[],"ids":"",'
    '"texts":"lgAAAKNw+aoZUx2UpaakZWxYU+o=","passages":"1sPf5t+1McHeforkdB6o452U6DY=","parts":{},'
    '"documents":0}'
)
TEXT = " ".join(sentence(number, 40) for number in range(4))
SHORT = "Two words."


def meant(**given: Any) -> Any:
    return wanted_by([Takedown("url", "why", **given)])


def texts(*values: str) -> Any:
    """Return what means these texts and their passages."""
    series = pl.Series(values)
    joined = {"texts": text_marks(series), "passages": passage_marks(series)}
    return meant(**{name: b"".join(marks) for name, marks in joined.items()})


def documents(*urls: str | None) -> pl.DataFrame:
    ids = [document_id("s", "f", row) for row in range(len(urls))]
    return pl.DataFrame(
        {"doc_id": ids, "url": urls, "text": [f"{number} {TEXT}" for number in range(len(urls))]},
        schema_overrides={"url": pl.String},
    )


def test_a_url_is_meant_with_and_without_scheme_www_and_slash() -> None:
    urls = ["https://www.A.org/x/", "a.org/x", "http://a.org/x/y", "http://b.a.org/x", None]
    wanted = meant(addresses=(hash_of("a.org/x"),))
    assert is_wanted(documents(*urls), wanted).to_list() == [True, True, False, False, False]


def test_a_domain_is_meant_with_those_below_it() -> None:
    urls = ["https://a.org/x", "https://www.b.a.org:8080/", "https://aa.org", "https://org/", None]
    wanted = meant(domains=(hash_of("a.org"),))
    assert is_wanted(documents(*urls), wanted).to_list() == [True, True, False, False, False]


def test_an_id_and_a_text_are_meant_wherever_they_are() -> None:
    table = documents(None, None, None)
    by_id = meant(ids=id_marks([table["doc_id"][2]])[0])
    assert is_wanted(table, by_id).to_list() == [False, False, True]
    by_text = meant(texts=text_marks(pl.Series([f"1, {TEXT.upper()}"]))[0])
    assert is_wanted(table, by_text).to_list() == [False, True, False]


RECORD = json.dumps({"n": [{"body": TEXT.replace(" ", "\n")}], "url": "https://a.org/x"}).encode()
WHOLE = json.dumps({"text": SHORT}).encode()


@pytest.mark.parametrize(
    ("raw", "position", "wanted"),
    [
        (RECORD, "row 9", texts(TEXT)),
        (RECORD[:-40], "row 9", texts(TEXT)),
        (RECORD[: len(RECORD) // 2], "line 9", texts(TEXT)),
        (WHOLE, "row 9", texts(SHORT)),
        (RECORD, "row 9", meant(addresses=(hash_of("a.org/x"),))),
        (RECORD[:-1], "row 9", meant(domains=(hash_of("a.org"),))),
        (b"\xff", "row 3", meant(ids=id_marks([document_id("s", "f", 3)])[0])),
    ],
    ids=["text", "cut", "half", "short", "url", "domain in a cut record", "place"],
)
def test_a_record_in_quarantine_is_meant_by_all_that_it_has(
    raw: bytes, position: str, wanted: Any
) -> None:
    other = json.dumps({"text": sentence(77, 200), "url": "https://other.org/x"}).encode()
    rows = [
        ("s", "f", place, 1, "e", "n", each) for place, each in ((position, raw), ("row 4", other))
    ]
    quarantine = pl.DataFrame(rows, schema=QUARANTINE_SCHEMA, orient="row")
    assert is_record_wanted(quarantine, wanted).to_list() == [True, False]


# As the version before `form` wrote it, for https://www.Example.org/Page/?id=1 and münchen.de.
RECORDED = (
    b'{"kind":"url","reason":"ticket 1","near":false,"addresses":["ba9eebda5527e68d7a366953cf8fb101'
    b'776784cee5464b247cb2e8961dcdaa61"],"domains":["6fb6d0c86af6d7574be461944bcc6bd7ff29ce4239d40e'
    b'ac9730e6e0781d652f"],"ids":"mazFS3w8zRC7fsN7RtN5Jq5idCY=","texts":"CgAAAKovx1KdC31aDHew3+0BBy'
    b's=","passages":"","parts":{"prose":["a-0000"]},"documents":1,"sha256":"56724e9d558699291b7a7b'
    b'ff7380312545a30b9fda2bd6ddb33d0794a0a0745e"}\n'
)


def test_a_request_of_an_earlier_version_means_what_it_meant(tmp_path: Path) -> None:
    path_of(tmp_path, 1).parent.mkdir()
    path_of(tmp_path, 1).write_bytes(RECORDED)
    [takedown] = read_takedowns(tmp_path, count_takedowns(tmp_path))
    assert id_of(takedown) == "9848d6eb97ea653d9a2f1586581bf11f", "part of fingerprints"
    urls = ["http://example.org/page/?ID=1", "https://a.münchen.de/", "https://example.org/page"]
    urls += ["https://example.org:443/%70age/?id=1&utm_source=x#top"]
    found = is_wanted(documents(*urls), wanted_by([takedown]))
    assert found.to_list() == [True, True, False, True]


@pytest.mark.parametrize("tracking", [(), ("ref",)])
def test_urls_are_compared_in_the_form_of_each_request(tracking: tuple[str, ...]) -> None:
    urls = ["https://a.org/x?ref=1", "https://a.org/x", "https://www.xn--mnchen-3ya.de/", "b.org"]
    form = UrlForm(URL_FORM, tracking)
    wanted = meant(
        addresses=(hash_of("a.org/x"),), domains=(hash_of("xn--mnchen-3ya.de"),), form=form
    )
    assert is_wanted(documents(*urls), wanted).to_list() == [bool(tracking), True, True, False]
    assert is_wanted(documents("https://münchen.de./"), wanted).to_list() == [True]


def test_a_text_is_meant_within_more_for_each_of_many_texts() -> None:
    several = [" ".join(sentence(10 * number + k, 60) for k in range(4)) for number in range(1, 9)]
    asked = with_passages(Takedown("domain", "why"), passage_marks(pl.Series([*several, SHORT])))
    frame = documents(*[None] * 4).with_columns(
        text=pl.Series([f"Menu {several[3]} {TEXT}", several[5][:700], several[0][:200], TEXT])
    )
    assert is_wanted(frame, wanted_by([asked])).to_list() == [True, False, False, False]
    earlier = msgspec.structs.replace(asked, copies=UNSET)
    assert not is_wanted(frame, wanted_by([earlier])).any(), "they are not known by text"
    assert passages_by_text(with_passages(asked, [])) == []


def test_a_request_of_an_earlier_version_means_its_text_in_every_form() -> None:
    wanted = wanted_by([msgspec.json.decode(OLD_REQUEST, type=Takedown)])
    copies = [
        OLD_TEXT,
        unicodedata.normalize("NFD", OLD_TEXT),
        OLD_TEXT.replace("e", "e\xad"),
        html.escape(OLD_TEXT).encode("ascii", "xmlcharrefreplace").decode(),
        json.dumps(OLD_TEXT),
    ]
    within = [f"Home\n\n{copy}\n\nImprint" for copy in copies]
    others = [OLD_TEXT[:40], OLD_TEXT.replace("guests", "ghosts").replace("brûlée", "fraîche")]
    table = documents(*[None] * (2 * len(copies) + 2))
    table = table.with_columns(text=pl.Series([*copies, *within, *others]))
    assert is_wanted(table, wanted).to_list() == [True] * (2 * len(copies)) + [False] * 2


def line(number: int) -> str:
    """Return a sentence of 14 words, none of which is in another."""
    words = (str(number * 14 + place + 10_000) for place in range(14))
    return " ".join(word.translate(str.maketrans("0123456789", "abcdefghij")) for word in words)


def changed_every(step: int, text: str) -> str:
    words = enumerate(text.split())
    return " ".join("other" if place % step == step // 2 else word for place, word in words)


def test_a_changed_copy_is_meant_by_the_runs_of_words_that_it_has() -> None:
    sentences = [line(number) for number in range(40)]
    text = " ".join(sentences)
    wanted = wanted_by([with_runs(Takedown("match", "why"), run_marks(pl.Series([text])))])
    numbered = "\n".join(f"{number}  {each}" for number, each in enumerate(sentences))
    half_of_others = " ".join(line(number + 1_000 * (number % 3 > 0)) for number in range(40))
    copies = [text, changed_every(25, text), " ".join(reversed(sentences)), numbered]
    others = [changed_every(5, text), half_of_others, text[: len(text) // 3], ""]
    is_meant = is_copy(pl.Series([*copies, *others]), wanted)
    assert is_meant.to_list() == [True] * 4 + [False] * 4


def test_runs_of_words_are_few_and_of_few_bits() -> None:
    text = " ".join(map(line, range(100)))
    short, long = run_marks(pl.Series(["five words are no runs", text]))
    assert short == b""
    assert len(long) == MOST_RUNS * RUN_BYTES
    assert [*single(long, RUN_BYTES)] == sorted(single(long, RUN_BYTES), key=lambda run: run[::-1])
