"""Comments, keywords, generated and data files: literal files, and plain twins of the kernel."""

from prelude import Any, assert_frame_equal, given, pl, pytest, re, settings, st
from tables import cases

from assets.filtered.code_score import KEYWORDS, PUNCTUATION, SYNTAXES, Syntax, count_code

COLUMNS = [
    *("code_lines", "comment_lines", "comment_characters", "indented_lines"),
    *("punctuation_characters", "keyword_words", "code_words", "visible_text_characters"),
    *("long_hex_or_base64_characters", "is_generated", "is_xml_head", "is_data_file"),
]
BLANKS = b" \t\v\f\r"
NAMES = [syntax.names.split()[0] for syntax in SYNTAXES]
PIECES = [
    *("//", "/*", "*/", "#", "--", "--[[", "]]", "{-", "-}", "=begin", "=end", "=cut", "%", "%{"),
    *("%}", ";", "!", "C", "<!--", "-->", "#=", "=#", "#|", "|#", "(*", "*)", "<#", "#>", '"', "'"),
    *(
        '"""',
        "'''",
        "`",
        "\\",
        "\n",
        " ",
        "\t",
        "a",
        "é",
        "漢",
        "😀",
        "\x00",
        "<script>",
        "</Script",
    ),
    *("<style", "</style>", "<", ">", "return", "r", "9", "_", "A1+/" * 16, "=" * 70, ".", ")"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"])
)


def count(text: str, name: str | None = None) -> dict[str, Any]:
    texts, names = pl.Series([text], dtype=pl.String), pl.Series([name], dtype=pl.String)
    return count_code(texts, names).row(0, named=True)


# name, file, comment lines, comments
COMMENTS = [
    ("a.py", 'x = 1  # one\n# two\ns = "# three"\n', 1, ["# one", "# two"]),
    ("a.py", 'def f():\n    """Doc.\n\n    More."""\n    s = """# no"""\n', 2,
     ['"""Doc.\n\n    More."""']),
    ("a.py", "r'''Doc'''\nx = '\\'#' # c", 0, ["'''Doc'''", "# c"]),
    ("a.c", 'int a; /* b\n c */\nchar d = \'"\'; // e "\nchar *f = "/* g */";', 1,
     ["/* b\n c */", '// e "']),
    ("a.c", "// don't\n#include <a.h>\n", 1, ["// don't"]),
    ("a.js", "const a = `// b\n// c`; // d\nlet e = '//';", 0, ["// d"]),
    ("a.go", "r := '\\'' // a\ns := `/* b`\n", 0, ["// a"]),
    ("a.rs", "fn f<'a>(x: &'a str) {} // b 'c'\nlet q = '\"'; // d", 0, ["// b 'c'", "// d"]),
    ("a.java", "/** Doc. */\nclass A { String u = \"http://x\"; }", 1, ["/** Doc. */"]),
    ("a.rb", "a = \"#{b}\"\n=begin\nc\n=end\nd # e", 3, ["=begin\nc\n=end", "# e"]),
    ("a.pl", "my $n = $#a;\n=head1 B\n\nc\n\n=cut\n", 3, ["=head1 B\n\nc\n\n=cut"]),
    ("a.sh", "#!/bin/sh\necho ${#a} \\# 'b # c' # d\n", 1, ["#!/bin/sh", "# d"]),
    ("a.sql", "select '--', 'c:\\' -- a\n/* b */", 1, ["-- a", "/* b */"]),
    ("a.hs", "f' x = x -- a\n{- b -}\ng = '\"' -- c", 1, ["-- a", "{- b -}", "-- c"]),
    ("a.lua", "--[[ a\nb ]]\nc = 1 -- d", 2, ["--[[ a\nb ]]", "-- d"]),
    ("a.el", "; a\n(b \"c\n; d\") ; e", 1, ["; a", "; e"]),
    ("a.f90", "x = 'it''s ! no' ! yes", 0, ["! yes"]),
    ("a.f", "C a\n      CALL B ! c\n", 1, ["C a", "! c"]),
    ("a.m", "A = B' * C'; % d\nfprintf('%s');\n%{\ne\n%}", 3, ["% d", "%{\ne\n%}"]),
    ("a.m", "#import <A/B.h>\n// c\n", 1, ["// c"]),
    ("a.tex", "50\\% of % all\n", 0, ["% all"]),
    ("a.html", "<p>don't</p> <!-- a\nb -->", 1, ["<!-- a\nb -->"]),
    ("a.css", "a { b: url('/*') } /* c */ // d", 0, ["/* c */"]),
    ("a.yml", "a: b#c # d\ne: '# f'", 0, ["# d"]),
    ("Makefile", "# a\nb:\n\techo don't # c", 1, ["# a", "# c"]),
    ("a.jl", "x = A' #= a =# # b", 0, ["#= a =#", "# b"]),
    ("a.exs", 's = """\n# no\n"""\n# yes', 1, ["# yes"]),
    ("a.erl", "f() -> \"%\". % a", 0, ["% a"]),
    ("a.kt", 'val s = """// no\n"""\n// yes', 1, ["// yes"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "lines", "comments"), COMMENTS)
def test_comments_of_a_language(name: str, text: str, lines: int, comments: list[str]) -> None:
    found = count(text, name)
    assert found["comment_characters"] == sum(map(len, comments))
    assert found["comment_lines"] == lines


@pytest.mark.parametrize(
    "name", ["Python", "python", "py", "src/A.PY", "a\\b.py", "x.tar.py", ".py"]
)
def test_names_that_mean_python(name: str) -> None:
    assert count("# a", name)["comment_lines"] == 1


@pytest.mark.parametrize("name", [None, "", "a/", "README", "a.unknown", "data.json", "b.py/x"])
def test_comments_are_null_without_a_known_language(name: str | None) -> None:
    found = count("# a", name)
    assert (found["comment_lines"], found["comment_characters"]) == (None, None)


def test_counts_of_a_small_file() -> None:
    text = "def f(x):\n\n  return x1 + 2x\n\tfor naïve\n if\n \t\n"
    found = count(text)
    assert (found["code_lines"], found["indented_lines"]) == (4, 2)
    assert (found["keyword_words"], found["code_words"]) == (4, 8)
    assert found["punctuation_characters"] == 4


def test_keywords_fit_the_kernel_and_are_unique() -> None:
    assert all(len(word) <= 8 for word in KEYWORDS)
    assert len(set(KEYWORDS)) == len(KEYWORDS)


@pytest.mark.parametrize("word", KEYWORDS)
def test_every_keyword_is_found_in_its_case_and_whole(word: str) -> None:
    assert count(f"{word} {word}z _{word} {word.swapcase()}")["keyword_words"] == 1


def test_no_language_name_means_two_syntaxes() -> None:
    names = [name for syntax in SYNTAXES for name in syntax.names.split()]
    assert len(set(names)) == len(names)


@cases(r"""
    name      | text
    a.go      | "// Code generated by protoc-gen-go. DO NOT EDIT.\n"
    a.py      | "#!/usr/bin/python\n# This file was auto-generated\n"
    a.py      | "# Generated by Django 4.2 on 2023-01-01\n"
    a.js      | "// Generated by CoffeeScript 1.9\n"
    a.c       | "/*\n   automatically generated\n*/\n"
    a.php     | "<?php\n/**\n * @generated\n */"
    a.html    | <!-- AUTOGENERATED -->
    None      | # autogenerated, do not edit
    README.md | "<!-- do not edit: autogenerated -->\n# A"
""")
def test_generated_files(name: str | None, text: str) -> None:
    assert count(text, name)["is_generated"] == 1


@cases(r"""
    name      | text
    a.py      | "# x\n" * 5 + "# auto-generated"
    a.py      | "# " + "x" * 2_000 + "auto-generated"
    a.py      | message = "automatically generated"
    a.py      | # The heat generated by the engine
    a.py      | def generated_by(x): ...
    README.md | "# Generated by a human\n\nThis list is automatically generated."
    None      | Electricity is automatically generated by the dam.
    None      | # Generated by hand
    a.py      | ""
""")
def test_files_that_only_talk_of_it(name: str | None, text: str) -> None:
    assert count(text, name)["is_generated"] == 0


@cases(r"""
    name   | text                           | expected
    a.json | anything                       | 1
    YAML   | anything                       | 1
    a.csv  | a,b                            | 1
    a.py   | '{"a": 1}'                     | 0
    a.md   | '{"a": 1}'                     | 0
    None   | '{"a": 1}'                     | 1
    None   | ' [\n {"a": 1,\n "b": 2}\n]\n' | 1
    None   | "[[1, 2.5],\n[-3e5, 4]]"       | 1
    None   | [1] A reference, and a [link]  | 0
    None   | { we say: so }                 | 0
    None   | {"a": 1} and then prose        | 0
    None   | <?xml version="1.0"?><a/>      | 1
    None   | "[]"                           | 0
    None   | ""                             | 0
""")
def test_data_files(name: str | None, text: str, expected: int) -> None:
    assert count(text, name)["is_data_file"] == expected


@pytest.mark.parametrize(("blanks", "expected"), [(0, 1), (86, 1), (87, 0)])
def test_xml_head_is_within_100_characters(blanks: int, expected: int) -> None:
    assert count("é" * blanks + "<?xml version=1.0?>", "a.svg")["is_xml_head"] == expected


@cases(r"""
    text                                                  | expected
    "<html><p>Two  words\n</p>"                           | "Two words "
    "<SCRIPT>var a = '<b>';</Script >é<style>\nb</style>" | é
    <!-- a > b -->c                                       | c
    "1 < 2 <3"                                            | "1 < 2 <3"
    a<unclosed b                                          | a
    <script>never closed                                  | ""
    ""                                                    | ""
""")
def test_visible_text_of_html(text: str, expected: str) -> None:
    assert count(text, "a.html")["visible_text_characters"] == len(expected)


def test_visible_text_is_null_elsewhere() -> None:
    assert count("<p>a</p>", "a.py")["visible_text_characters"] is None


@cases(r"""
    text                                                             | expected
    a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1 | 64
    a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1b  | 0
    "x" + "\nA1+/b2c3" * 3 + " " + "A1b2c3d/" * 20 + "=="            | 160
    "=" * 100 + "/" * 100                                            | 0
    "a" * 100                                                        | 0
    "usr/a1/" * 20                                                   | 0
    "." + "0f" * 40 + "." + "e9" * 40 + "."                          | 160
""")
def test_encoded_runs(text: str, expected: int) -> None:
    assert count(text)["long_hex_or_base64_characters"] == expected


def test_empty_frame_has_every_column() -> None:
    empty = pl.Series([], dtype=pl.String)
    assert count_code(empty, empty).schema == dict.fromkeys(COLUMNS, pl.Int64)


@pytest.mark.parametrize("name", [*NAMES, None])
def test_odd_texts_give_numbers(name: str | None) -> None:
    for text in ("", "a", "\n", "é" * 500_000, '"' * 100_000, "\\" * 99_999, "'" * 99_999):
        assert count(text, name)["code_lines"] == bool(text.strip())


def test_rows_do_not_depend_on_their_neighbours() -> None:
    texts = pl.Series(["/* open", "// a\nb", "", "x = '"])
    names = pl.Series(["a.c", "a.js", None, "a.py"])
    halves = [count_code(texts[rows], names[rows]) for rows in (slice(0, 1), slice(1, 4))]
    assert_frame_equal(count_code(texts, names), pl.concat(halves))


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.tuples(TEXTS, st.sampled_from([*NAMES, None])), min_size=1, max_size=6))
def test_counts_equal_the_reference(files: list[tuple[str, str | None]]) -> None:
    texts = pl.Series([text for text, _ in files], dtype=pl.String)
    found = count_code(texts, pl.Series([name for _, name in files], dtype=pl.String))
    expected = [count_slowly(text, name) for text, name in files]
    assert found.columns == COLUMNS
    assert found.select(COLUMNS[:9]).to_dicts() == expected


@settings(max_examples=50)
@given(TEXTS, st.sampled_from(NAMES))
def test_parts_are_no_larger_than_the_whole(text: str, name: str) -> None:
    found = count(text, name)
    assert found["comment_characters"] <= len(text)
    assert max(found["comment_lines"], found["indented_lines"]) <= found["code_lines"]
    assert found["keyword_words"] <= found["code_words"]
    assert found["long_hex_or_base64_characters"] <= len(text)
    assert {found["is_generated"], found["is_xml_head"], found["is_data_file"]} <= {0, 1}


def count_slowly(text: str, name: str | None) -> dict[str, int | None]:
    """Count as the kernel does, one obvious line a count, over the bytes of the text."""
    data = text.encode()
    lines = [line for line in data.split(b"\n") if line.strip(BLANKS)]
    words = re.findall(rb"[A-Za-z0-9_\x80-\xff]+", data)
    runs = re.findall(rb"[A-Za-z0-9+/]{64,}", data)
    syntax = SYNTAXES[NAMES.index(name)] if name else None
    spans = comment_spans(data, syntax) if syntax else []
    is_html = syntax is not None and "html" in syntax.traits
    return {
        "code_lines": len(lines),
        "comment_lines": pure_comment_lines(data, spans) if syntax else None,
        "comment_characters": sum(len(data[a:b].decode()) for a, b in spans) if syntax else None,
        "indented_lines": sum(bool(re.match(rb"\t| [ \t\v\f\r]", line)) for line in lines),
        "punctuation_characters": sum(character in PUNCTUATION for character in text),
        "keyword_words": sum(word in [w.encode() for w in KEYWORDS] for word in words),
        "code_words": sum(bool(re.match(rb"[A-Za-z_]", word)) for word in words),
        "visible_text_characters": visible_characters(data) if is_html else None,
        "long_hex_or_base64_characters": sum(len(run) for run in runs if is_encoded(run)),
    }


def is_encoded(run: bytes) -> bool:
    alphanumerics = len(re.findall(rb"[A-Za-z0-9]", run))
    return alphanumerics / len(run) >= 7 / 8 and re.search(rb"[0-9]", run) is not None


def visible_characters(data: bytes) -> int:
    tags = rb"<!--.*?(?:-->|\Z)"
    for element in (b"script", b"style"):
        tags += rb"|<%s.*?(?:>|\Z).*?(?:</%s|\Z).*?(?:>|\Z)" % (element, element)
    visible = re.sub(rb"(?is)" + tags + rb"|<[a-z/!?].*?(?:>|\Z)", b"", data)
    return len(re.sub(rb"[ \t\v\f\r\n]+", b" ", visible).lstrip(b" ").decode())


def pure_comment_lines(data: bytes, spans: list[tuple[int, int]]) -> int:
    inside = bytearray(len(data))
    for start, stop in spans:
        inside[start:stop] = b"\x01" * (stop - start)
    pure = start = 0
    for line in data.split(b"\n"):
        places = [i for i in range(start, start + len(line)) if data[i] not in BLANKS]
        pure += bool(places) and all(inside[i] for i in places)
        start += len(line) + 1
    return pure


def comment_spans(data: bytes, syntax: Syntax) -> list[tuple[int, int]]:
    """Match one pattern after the other at every position; the first that fits takes its bytes."""
    spans, at = [], 0
    patterns = [(kind, re.compile(p, re.S | re.M)) for kind, p in token_patterns(syntax)]
    while at < len(data):
        found = [(kind, hit) for kind, p in patterns if (hit := p.match(data, at))]
        kind, stop = (found[0][0], found[0][1].end()) if found else ("code", at + 1)
        before = data[data.rfind(b"\n", 0, at) + 1 : at]
        is_first = re.fullmatch(rb"[ \t\v\f\r]*[rRuU]?", before) is not None
        if kind == "comment" or (kind == "triple" and "docstring" in syntax.traits and is_first):
            spans.append((at, stop))
        at = stop
    return spans


def token_patterns(syntax: Syntax) -> list[tuple[str, bytes]]:
    traits = syntax.traits.split()
    is_raw = "raw" in traits
    column = b"^" if "line_start" in traits else b""
    before = rb"(?<![^\x00-\x20])" if "after_blank" in traits else b""
    opening, closing = (re.escape(mark.encode()) for mark in syntax.block)
    patterns = [("code", rb"\\[^\n]")] if not is_raw else []
    if opening:
        patterns.append(("comment", column + opening + rb".*?(?:" + closing + rb"|\Z)"))
    for place, mark in enumerate(syntax.lines):
        head = before if place == 0 else column
        patterns.append(("comment", head + re.escape(mark.encode()) + rb"[^\n]*"))
    if "transpose" in traits:
        patterns.append(("code", rb"(?<=[A-Za-z0-9_)\]}'.])'"))
    for quote in syntax.quotes:
        patterns += string_patterns(quote.encode(), traits, is_raw)
    return patterns


def string_patterns(quote: bytes, traits: list[str], is_raw: bool) -> list[tuple[str, bytes]]:
    escape = b"" if is_raw else rb"\\.|"
    if quote == b"'" and "character" in traits:
        return [("code", rb"'(?:\\.[^'\n]{0,9}|[^\\][\x80-\xbf]*)'"), ("code", b"'")]
    triple = rb"%s(?:%s(?!%s).)*(?:%s|\Z)" % (quote * 3, escape, quote * 3, quote * 3)
    is_long = quote == b"`" or (quote == b'"' and "multiline" in traits)
    stops = b"" if is_long else rb"\n"
    inner = rb"[^%s%s%s]" % (quote, stops, b"" if is_raw else rb"\\")
    plain = rb"%s(?:%s%s)*(?:%s|(?=\n)|\\?\Z)" % (quote, escape, inner, quote)
    return [("triple", triple)] * ("triple" in traits) + [("string", plain)]
