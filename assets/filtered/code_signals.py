"""Signals of source code: comments, keywords, generated files, data files, encoded blocks.

Purpose: the counts behind StarCoder's filters (arXiv 2305.06161, section 3; bigcode-dataset) and
the code rules of RedPajama and NeMo Curator; the thresholds are the rules' business.
Trade-off: comments are found without a grammar, by the marks and strings of the language in the
document's name (file name, path or language name); without one, comments are null.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from assets.text.table_rows import table_of


def _words(text: str) -> list[str]:
    return text.split()


class Syntax(NamedTuple):
    """Comment marks and strings of languages; `traits` are names of the kernel's `Trait`."""

    names: str  # extensions, file names and language names, in lower case
    lines: tuple[str, ...] = ()  # marks of comments that run to the end of the line, at most 3
    block: tuple[str, str] = ("", "")
    quotes: str = "\"'"
    traits: str = ""


_SLASHES, _STARS, _ANGLES = ("//",), ("/*", "*/"), ("<!--", "-->")
SYNTAXES = (
    Syntax("py pyi pyw pyx pxd python python3 cython bzl bazel build starlark", ("#",),
           traits="triple docstring"),
    Syntax("c h c++ cc cpp cxx hh hpp hxx cu cuh c# cs csharp java cuda objective-c objc mm glsl "
           "proto protobuf", _SLASHES, _STARS, traits="character"),
    Syntax("js mjs cjs jsx javascript ts mts cts tsx typescript jsonc json5", _SLASHES, _STARS,
           "\"'`"),
    Syntax("go golang", _SLASHES, _STARS, "\"'`", "character"),
    Syntax("rs rust zig v verilog sv systemverilog", _SLASHES, _STARS, traits="character"),
    Syntax("swift kt kts kotlin scala sc dart groovy gradle", _SLASHES, _STARS,
           traits="triple character"),
    Syntax("php php3 php4 php5 phtml hcl tf terraform", ("//", "#"), _STARS),
    Syntax("css", (), _STARS),
    Syntax("scss less sass", _SLASHES, _STARS),
    Syntax("rb ruby rake gemspec rakefile gemfile podfile cr crystal", ("#",), ("=begin", "\n=end"),
           traits="after_blank line_start"),
    Syntax("pl pm t perl", ("#",), ("=", "\n=cut"), traits="after_blank line_start"),
    Syntax("sh bash zsh ksh fish shell shellscript", ("#",), traits="after_blank"),
    Syntax("yaml yml r tcl awk gitignore properties conf cfg nix", ("#",), traits="after_blank"),
    Syntax("toml ex exs elixir", ("#",), traits="triple"),
    Syntax("jl julia", ("#",), ("#=", "=#"), traits="triple character"),
    Syntax("mk mak make makefile gnumakefile dockerfile docker cmake", ("#",), quotes="",
           traits="after_blank"),
    Syntax("ps1 psm1 psd1 powershell", ("#",), ("<#", "#>"), traits="after_blank"),
    Syntax("sql psql plsql pgsql mysql vhd vhdl ada adb ads", ("--",), _STARS, traits="raw"),
    Syntax("hs lhs haskell elm purs purescript agda", ("--",), ("{-", "-}"), traits="character"),
    Syntax("lua", ("--",), ("--[[", "]]")),
    Syntax("lisp cl el scm ss rkt clj cljs cljc edn common-lisp scheme racket clojure "
           "emacs-lisp", (";",), ("#|", "|#"), '"', "multiline"),
    Syntax("f90 f95 f03 f08 fortran", ("!",), traits="raw"),
    Syntax("f for ftn f77", ("!", "C", "c"), traits="raw line_start"),
    Syntax("m matlab octave", ("%",), ("%{", "%}"), traits="raw transpose line_start"),
    Syntax("tex latex sty cls ltx bib", ("%",), quotes=""),
    Syntax("erl hrl erlang", ("%",)),
    Syntax("ml mli ocaml", (), ("(*", "*)"), traits="character"),
    Syntax("fs fsi fsx f# pas pascal delphi", _SLASHES, ("(*", "*)"), traits="character"),
    Syntax("xml xsd xsl xslt svg rss plist xaml wsdl", (), _ANGLES, ""),
    Syntax("html htm xhtml vue svelte", (), _ANGLES, "", "html"),
)  # fmt: skip

# Rare in prose where there is a choice, at most eight bytes long, in the case of the languages.
KEYWORDS = _words("""
and async await bool break case catch char class const continue def default delete do double elif
else elsif end endif enum except export extends extern false final finally float fn for foreach from
func function goto if impl import include int lambda let local long match module mut new nil None
null package private public pub raise require rescue return self short signed sizeof static std
string struct super switch template this throw throws trait true True False try typedef typeof
undef union unless unsigned use using val var virtual void volatile where while yield
""")
PUNCTUATION = "{}[]()<>;:=+-*/%&|!^~,.#@\\'\"`$?"

DATA_NAMES = _words("""
json jsonl ndjson geojson topojson json5 jsonc yaml yml csv tsv xml xsd svg rss plist toml ini
properties po pot lock ipynb
""")
PROSE_NAMES = _words("md markdown rst txt text adoc asciidoc org readme license changelog")

# CodeParrot looks for the first two in the first five lines; the others head tools' own output.
_GENERATED = (
    r"(?i-u:auto-?generated|automatically generated|@generated\b|do not edit|do not modify"
    r"|(?:file|code) (?:is|was|has been) generated|code generated by)"
)
_GENERATED_BY = r"(?i-u:(?:file |code |this )*generated (?:by|from|with|using)\b)"
_COMMENT_START = (
    r"(?m)^[ \t]*(?:#+|//+|/\*+|\*+|--+|;+|%+|!+|<!--|\{-|\(\*|\x22{3}|'{3}|REM\b)[ \t!]*"
)
_PROSE_COMMENT_START = r"(?m)^[ \t]*(?:<!--|\.\. )[ \t]*"
_FIRST_LINES = r"\A(?:[^\n]*\n){0,4}[^\n]*"
_HEAD_CHARACTERS = 2_000
_XML_CHARACTERS = 100  # StarCoder, section 3.1

_OBJECTIVE_C = r"(?m)^[ \t]*(?:#import|#include|@interface|@implementation|@protocol)\b"


def count_code(texts: pl.Series, names: pl.Series) -> pl.DataFrame:
    """Return one row per text (String, no nulls) named by `names` (String; null: unknown).

    Int64 columns, named as the members of the kernel's `Count`, then is_generated, is_xml_head and
    is_data_file (0 or 1). Lines are non-blank ones; comment_lines hold nothing but comment;
    comment_characters include the marks, and docstrings of Python. comment_lines and
    comment_characters are null without a known language, visible_text_characters except for HTML.
    """
    keys = _name_keys(names)
    chosen = _choose_syntax(texts, keys)
    counts = _run_kernel(texts, chosen)
    is_known = chosen >= 0
    is_html = is_known & chosen.is_in([row for row, s in enumerate(SYNTAXES) if "html" in s.traits])
    is_prose = keys.is_in(PROSE_NAMES).fill_null(False)
    is_data = keys.is_in(DATA_NAMES).fill_null(False)
    is_xml = texts.str.slice(0, _XML_CHARACTERS).str.contains("<?xml version=", literal=True)
    is_free = ~(is_known | is_prose | is_data)  # an unknown name: look at the content
    is_data |= is_free & (is_xml | _looks_like_json(texts, is_free, counts["code_lines"]))
    return counts.with_columns(
        _null_unless("comment_lines", is_known),
        _null_unless("comment_characters", is_known),
        _null_unless("visible_text_characters", is_html),
        is_generated=_is_generated(texts, is_known, is_prose).cast(pl.Int64),
        is_xml_head=is_xml.cast(pl.Int64),
        is_data_file=is_data.cast(pl.Int64),
    )


def _null_unless(column: str, mask: pl.Series) -> pl.Expr:
    return pl.when(mask).then(pl.col(column)).alias(column)


def _name_keys(names: pl.Series) -> pl.Series:
    """Return the key of a name: "a/B.Py" is "py", "src/Makefile" "makefile", "C++" "c++"."""
    base = names.str.to_lowercase().str.extract(r"([^/\\]*)$").str.replace_all(" ", "-")
    is_special = base == "cmakelists.txt"
    return base.str.extract(r"([^.]*)$").set(is_special.fill_null(False), "cmake")


@cache
def _syntax_of() -> dict[str, int]:
    return {name: row for row, syntax in enumerate(SYNTAXES) for name in syntax.names.split()}


def _choose_syntax(texts: pl.Series, keys: pl.Series) -> pl.Series:
    """Return the place of each text's language in SYNTAXES, -1 for none; `.m` has two languages."""
    known = _syntax_of()
    chosen = keys.replace_strict(known, default=-1, return_dtype=pl.Int64).fill_null(-1)
    rows = (keys == "m").fill_null(False).arg_true()
    if rows.is_empty():
        return chosen
    return chosen.scatter(
        rows.filter(texts.gather(rows).str.contains(_OBJECTIVE_C)), known["objective-c"]
    )


def _run_kernel(texts: pl.Series, chosen: pl.Series) -> pl.DataFrame:
    from assets.filtered.kernels.code_counts import count_documents
    from assets.filtered.kernels.code_syntax import Count
    from assets.text.buffers import text_buffers

    data, starts = text_buffers(texts)
    counts = np.zeros((len(Count), len(texts)), np.int64)
    actions, marks, traits, classes, keywords = _tables()
    syntaxes = (chosen.to_numpy(writable=True), actions, marks, traits)
    count_documents(starts, data, syntaxes, (classes, keywords), counts)
    return table_of(counts.T, [count.name.lower() for count in Count])


@cache
def _tables() -> tuple[Any, ...]:
    """Return the kernel's tables: actions, marks and traits of SYNTAXES; classes, keywords."""
    from assets.filtered.kernels import code_syntax as kernel
    from assets.filtered.kernels.code_counts import byte_classes, hash_words

    size = len(SYNTAXES)
    actions = np.full((size, 256), kernel.CODE, np.uint8)
    marks = np.zeros((size, kernel.MARKS, kernel.MARK_BYTES), np.uint8)
    traits = np.zeros(size, np.int64)
    for row, syntax in enumerate(SYNTAXES):
        actions[row, list(b"\t\v\f\r ")] = kernel.BLANK
        actions[row, ord("\n")] = kernel.NEWLINE
        actions[row, ord("\\")] = kernel.ESCAPE
        actions[row, list(syntax.quotes.encode())] = kernel.QUOTE
        places = (*range(len(syntax.lines)), kernel.OPEN, kernel.CLOSE)
        for place, mark in zip(places, (*syntax.lines, *syntax.block), strict=True):
            marks[row, place, : len(mark)] = list(mark.encode())
            if mark and place != kernel.CLOSE:
                actions[row, ord(mark[0])] = kernel.MARK
        traits[row] = sum(kernel.Trait[name.upper()] for name in syntax.traits.split())
    return actions, marks, traits, byte_classes(PUNCTUATION), hash_words(KEYWORDS)


def _is_generated(texts: pl.Series, is_code: pl.Series, is_prose: pl.Series) -> pl.Series:
    """Check that a comment among the first five lines names a tool as the author.

    In a code file the marker may follow anything but a string, an assignment or a call, as a block
    comment needs no mark on its inner lines; "generated by" must begin its comment, since prose has
    it too. In prose only a comment of Markdown or reStructuredText counts.
    """
    heads = texts.str.slice(0, _HEAD_CHARACTERS)
    rows = heads.str.contains(r"(?i-u:generated|do not edit|do not modify)").arg_true()
    if rows.is_empty():
        return pl.repeat(False, len(texts), eager=True)
    head = heads.gather(rows).str.extract(f"({_FIRST_LINES})")
    in_code, in_prose = is_code.gather(rows), is_prose.gather(rows)
    after_mark = head.str.contains(rf"{_COMMENT_START}[^\n]*{_GENERATED}")
    in_line = head.str.contains(rf"(?m)^[^\"'=(\n]*{_GENERATED}")
    begins = head.str.contains(_COMMENT_START + _GENERATED_BY)
    after_prose_mark = head.str.contains(rf"{_PROSE_COMMENT_START}[^\n]*{_GENERATED}")
    has_marker = (
        (after_mark & ~in_prose) | (in_code & (in_line | begins)) | (in_prose & after_prose_mark)
    )
    return pl.repeat(False, len(texts), eager=True).scatter(rows, has_marker)


def _looks_like_json(texts: pl.Series, is_free: pl.Series, lines: pl.Series) -> pl.Series:
    """Check that a text is in brackets, with a key in every other line or numbers only."""
    rows = (is_free & texts.str.contains(r"\A\s*[{\[]")).arg_true()
    if rows.is_empty():
        return pl.repeat(False, len(texts), eager=True)
    inside = texts.gather(rows).str.strip_chars_end()
    pairs = inside.str.count_matches(r'"[ \t]*:').cast(pl.Int64)
    has_pairs = (pairs > 0) & (2 * pairs >= lines.gather(rows))
    is_numbers = inside.str.contains(r"\A[\s\d.,eE+\-\[\]]*\z") & inside.str.contains(r"\d")
    is_json = inside.str.contains(r"[}\]]\z") & (has_pairs | is_numbers)
    return pl.repeat(False, len(texts), eager=True).scatter(rows, is_json)
