"""Encodings of the web: golden values are from encodings.json and indexes.json of the standard."""

from prelude import given, hashlib, pytest, st

from assets.raw.readers.decode_page import ENCODINGS, LABELS, decode, decode_page, encoding_of

TABLE = "d9153e22e1ff538549310364cdcfb22e7aee13578352f4571a187d13857df8d9"
HIGH = bytes.fromhex("8093a4aecae4ff")
OF_HIGH = {
    "ibm866": "АУдо╩ф\xa0",
    "iso-8859-2": "\x80\x93¤ŽĘä˙",
    "iso-8859-3": "\x80\x93¤\ufffdÊä˙",
    "iso-8859-4": "\x80\x93¤ŽĘä˙",
    "iso-8859-5": "\x80\x93ЄЎЪфџ",
    "iso-8859-6": "\x80\x93¤\ufffdتل\ufffd",
    "iso-8859-7": "\x80\x93€\ufffdΚδ\ufffd",
    "iso-8859-8": "\x80\x93¤®\ufffdה\ufffd",
    "iso-8859-8-i": "\x80\x93¤®\ufffdה\ufffd",
    "iso-8859-10": "\x80\x93ĪŪĘäĸ",
    "iso-8859-13": "\x80\x93¤®Źä’",
    "iso-8859-14": "\x80\x93Ċ®Êäÿ",
    "iso-8859-15": "\x80\x93€®Êäÿ",
    "iso-8859-16": "\x80\x93€źÊäÿ",
    "koi8-r": "─⌠╓╝йДЪ",
    "koi8-u": "─⌠єўйДЪ",
    "macintosh": "Äì§Æ\xa0‰ˇ",
    "windows-874": "€“คฎสไ\ufffd",
    "windows-1250": "€“¤®Ęä˙",
    "windows-1251": "Ђ“¤®Кдя",
    "windows-1252": "€“¤®Êäÿ",
    "windows-1253": "€“¤®Κδ\ufffd",
    "windows-1254": "€“¤®Êäÿ",
    "windows-1255": "€“₪®\u05baה\ufffd",
    "windows-1256": "€“¤®تنے",
    "windows-1257": "€“¤®Źä˙",
    "windows-1258": "€“¤®Êäÿ",
    "x-mac-cyrillic": "АУ§Ѓ\xa0д€",
    "x-user-defined": "\uf780\uf793\uf7a4\uf7ae\uf7ca\uf7e4\uf7ff",
}
OF_MANY = {
    "utf-8": ("41 c3a4 f09f9880 ff 41", "Aä😀\ufffdA"),
    "gbk": ("41 80 a2e3 d6ece946bbf9 a6d9 95328236 81 3c 81ff 41", "A€€朱镕基︐𠀀\ufffd<\ufffdA"),
    "gb18030": (
        "41 80 a2e3 d6ece946bbf9 a6d9 95328236 81 3c 81ff 41",
        "A€€朱镕基︐𠀀\ufffd<\ufffdA",
    ),
    "big5": ("41 a145 a1e3 8740 8862 a4a4 ff 41", "A‧～䏰Ê̄中\ufffdA"),
    "euc-jp": ("41 ada1 fcfb 8eb1 8fb0a1 a1c1 ff 41", "A①￢ｱ丂～\ufffdA"),
    "iso-2022-jp": ("41 1b2442 2d21 2141 1b2842 1b284931 1b2842 41", "A①～ｱA"),
    "shift_jis": ("41 8740 fbfc b1 f040 8160 80 a0 41", "A①髙ｱ\ue000～\x80\ufffdA"),
    "euc-kr": ("41 8c63 b9e6 c8fe ff 41", "A똠방힝\ufffdA"),
    "utf-16le": ("4100 3dd800de 4100", "A😀A"),
    "utf-16be": ("0041 d83dde00 0041", "A😀A"),
}


def test_the_table_of_labels_is_that_of_the_standard() -> None:
    rows = "\n".join(f"{label} {name}" for label, name in sorted(ENCODINGS.items()))
    assert hashlib.sha256(rows.encode()).hexdigest() == TABLE
    assert len(ENCODINGS) == 228


@pytest.mark.parametrize("name", [name for name in LABELS if name != "replacement"])
def test_bytes_under_every_label_are_read_as_the_standard_says(name: str) -> None:
    data, text = OF_MANY.get(name) or (HIGH.hex(), OF_HIGH[name])
    for label in (name, *LABELS[name].split()):
        encoding = encoding_of(f" {label.upper()}\n")
        assert encoding is not None
        assert decode(bytes.fromhex(data), encoding) == text


@pytest.mark.parametrize(
    "label", ["", "none", "utf-8,utf-8", "cp65001", "utf-7", "latin-1", "ſjis"]
)
def test_other_labels_are_unknown(label: str) -> None:
    assert encoding_of(label) is None


@given(st.sampled_from(sorted({*LABELS} - {"replacement"})), st.binary(max_size=50))
def test_any_bytes_have_a_text_in_every_encoding(encoding: str, data: bytes) -> None:
    decode(data, encoding).encode()


def page(text: str, head: str = "") -> str:
    return f"<html><head>{head}</head><body><p>{text}</p></body></html>"


RUSSIAN = "Старый рынок у реки"
META = "<meta charset={}>"
CONTENT = '<meta http-equiv="Content-Type" content="text/html; charset={}">'


@pytest.mark.parametrize(
    ("text", "encoding", "label"),
    [
        (page(RUSSIAN), "koi8-r", "KOI8-R"),
        (page(RUSSIAN, META.format("koi8-r")), "cp1251", "windows-1251"),
        (page(RUSSIAN, META.format("koi8-r")), "koi8-r", "none"),
        (page(RUSSIAN, CONTENT.format("koi8-r")), "koi8-r", ""),
        (page(RUSSIAN, META.format("x") + META.format("koi8-r")), "koi8-r", ""),
        (
            page(RUSSIAN, "<!--" + META.format("cp866") + "-->" + META.format("koi8-r")),
            "koi8-r",
            "",
        ),
        (page(RUSSIAN, "<script>'" + META.format("cp866") + "'</script>"), "koi8-r", "koi8-r"),
        (page(RUSSIAN, "<!--" + "x" * 1024 + "-->" + META.format("koi8-r")), "koi8-r", ""),
        ('<?xml version="1.0" encoding="koi8-r"?>' + page(RUSSIAN), "koi8-r", ""),
        (page(RUSSIAN), "utf-16", "koi8-r"),
        (page(RUSSIAN), "utf-8-sig", "koi8-r"),
        (page("漢字かな"), "iso2022-jp", "iso-2022-jp"),
        (page("漢字かな", META.format("iso-2022-jp")), "iso2022-jp", ""),
        (page("漢字かな"), "utf-16-le", "utf-16"),
    ],
)
def test_a_declaration_is_found_where_browsers_look(text: str, encoding: str, label: str) -> None:
    assert decode_page(text.encode(encoding), label) == text


@pytest.mark.parametrize(
    ("text", "encoding", "label"),
    [
        (page(RUSSIAN, META.format("utf-16")), "utf-8", ""),
        (page("plain", META.format("utf-16")), "utf-8", "utf-16"),
        (page("café naïve", "<script>'" + META.format("big5") + "'</script>"), "utf-8", ""),
        (page("© café"), "utf-8", "iso-8859-1"),
        (page(RUSSIAN), "utf-8", "windows-1251"),
        (page("“don’t”"), "cp1252", "utf-8"),
        (page("“don’t”"), "cp1252", "iso-8859-15"),
        (page("朱镕基也来了，他说今天没有时间。"), "gbk", "utf-8"),
        (page("漢字かな交じり文を書くための日本語のページです。"), "shift_jis", "utf-8"),
    ],
)
def test_a_declaration_that_cannot_be_true_is_not_believed(
    text: str, encoding: str, label: str
) -> None:
    assert decode_page(text.encode(encoding), label) == text


def test_two_characters_that_are_utf_8_by_chance_are_what_the_page_says() -> None:
    assert decode_page("<p>联通</p>".encode("gbk"), "gb2312") == "<p>联通</p>"


def test_a_malformed_character_costs_itself() -> None:
    body = page(RUSSIAN).encode() + b"\xd0"
    assert decode_page(body, "utf-8") == page(RUSSIAN) + "\ufffd"


@pytest.mark.parametrize("label", ["hz-gb-2312", "iso-2022-kr"])
def test_a_page_that_browsers_refuse_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match=f"an encoding that is not decoded, one of .*{label}"):
        decode_page(b"<p>~{VPND~}", label)


def test_a_page_that_is_mostly_damage_is_refused() -> None:
    with pytest.raises(ValueError, match=r"40 of 40 characters beyond ASCII .* encoding utf-8"):
        decode_page(b"\xef\xbb\xbf<p>" + b"\xff" * 40)
