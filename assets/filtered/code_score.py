"""Tell source code from prose without a name, and count signals of files of source code.

Method: a line's evidence is a weighted sum of a few signs (a call, an operator between blanks,
words between blanks, a semicolon at the end, an indent); a text's score is the logistic of their
mean. The weights are a logistic regression of lines of source files against lines of novels,
textbooks, articles, reviews, LaTeX and user help (benchmarks/code_accuracy.py fits it).
Trade-off: no grammar. A file that is mostly documentation scores as prose, a page of signatures as
code; tables of data and markup count as code, mathematics in LaTeX as prose.

Signals are the counts behind the filters of StarCoder (arXiv 2305.06161, section 3), RedPajama and
NeMo Curator: comments, keywords, generated files, data files, encoded blocks. Comments need the
document's name (file name, path or language name); without one, they are null.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import text_buffers
from assets.text.table_rows import table_of
from resources.made_once import made_once


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
    from assets.filtered.kernels.code_counts import Count, count_documents
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
    from assets.filtered.kernels import code_counts as kernel
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


if TYPE_CHECKING:
    from assets.filtered.kernels.code_lines import Lexicon

# Classes of bytes, each with its sign: lower and upper case are a and A, other letters é.
_CLASSES = {
    "a": "abcdefghijklmnopqrstuvwxyz",
    "A": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0": "0123456789",
    "_": "_",
    "(": "(",
    ".": ".",
    "=": "=<>+*&|^~%/",
    ")": ")[]{}",
    ";": ";",
    '"': "\"'`",
    ",": ",:?!-",
    "\\": "\\",
    "$": "$@#",
}
_BLANK, _OTHER, _EDGE = " ", "é", "^"  # before a line is its edge
_ALL = 'aA0_(.=);",\\$ é^'
# Weights per byte of pairs of neighbours: classes of the first, of the second.
PAIRS = {
    "a word begins": (" ", "aAé", -17.0),
    "mark": (_ALL, "=);_(", 4.0),
    "call": ("aA0_", "(", 11.0),
    "underscore": (_ALL, "_", 2.0),
    "inner capital": ("a", "A", 15.0),
    "inner dot": (".", "aA_", 25.0),
    "TeX command": ("\\", "aA", -21.0),
    "quote": (_ALL, '"', 17.0),
    "digit": (_ALL, "0", -2.0),
    "punctuation": (_ALL, ".,", -1.0),
    "other letter": (_ALL, "é", -11.0),
}
# Weights of the members of the kernel's `Sign`.
SIGNS = {
    "BIAS": -1.3,
    "KEYWORD": 3.3,
    "INDENT": 2.0,
    "LOWER_CASE": 1.5,
    "SEMICOLON": 3.2,
    "BRACE": 1.0,
    "BRACKET": 0.5,
    "COMMA": 1.0,
    "FULL_STOP": -2.0,
}
_ENDINGS = {"SEMICOLON": ";", "BRACE": "{}", "BRACKET": ")]", "COMMA": ",", "FULL_STOP": ".?!"}
# First words of lines besides KEYWORDS: of shells, SQL and Lua or Ruby.
_FIRST_WORDS = (
    *("ALTER", "CREATE", "DELETE", "DROP", "FROM", "INSERT", "SELECT", "UPDATE", "VALUES", "WHERE"),
    *("done", "echo", "elif", "end", "endfor", "esac", "exit", "export", "fi", "fun", "local"),
    *("my", "print", "printf", "set", "sub", "then", "unset"),
)
SLOPE, MIDDLE = 2.8, 0.7  # of the logistic; MIDDLE: mean evidence at which the score is a half


def score_code(texts: pl.Series) -> pl.DataFrame:
    """Return code_score of each text (no nulls), in order: Float64, near 1 for source code.

    It is 0 for a text without a line.
    """
    return _score(texts, np.nan).to_frame()


def is_code(texts: pl.Series, most: float) -> pl.Series:
    """Check each text for a code_score above `most`, 0 to 1 (Boolean).

    It is read until that is certain, which takes half of the time.
    """
    border = MIDDLE + (np.log(most / (1 - most)) / SLOPE if 0 < most < 1 else np.inf * (most - 0.5))
    return _score(texts, border) > most


def _score(texts: pl.Series, border: float) -> pl.Series:
    from assets.filtered.kernels.code_lines import weigh_texts

    data, starts = text_buffers(texts)
    found = np.zeros((len(texts), 2))
    weigh_texts(starts, data, lexicon(), border, found)
    evidence, lines = pl.col("evidence"), pl.col("lines")
    mean = evidence / lines.clip(lower_bound=1)
    score = 1 / (1 + (-SLOPE * (mean - MIDDLE)).exp())
    columns = dict(zip(("evidence", "lines"), found.T, strict=True))
    table = pl.DataFrame(columns, dict.fromkeys(columns, pl.Float64))
    scored = pl.when(lines > 0).then(score).otherwise(evidence).alias("code_score")
    return table.select(scored).to_series()


@made_once
def lexicon() -> "Lexicon":
    """Return the kernel's tables of the weights above."""
    from assets.filtered.kernels.code_counts import hash_words
    from assets.filtered.kernels.code_lines import Lexicon, Sign

    signs = [SIGNS[sign.name] for sign in Sign]
    endings = np.zeros(256, np.uint8)
    for name, characters in _ENDINGS.items():
        endings[list(characters.encode())] = Sign[name]
    keywords = hash_words(sorted({*KEYWORDS, *_FIRST_WORDS}))
    weights = pair_weights([weight for _, _, weight in PAIRS.values()])
    pairs = weights.astype(np.int8)
    assert (pairs == weights).all(), "the kernel adds whole numbers from -128 to 127"
    return Lexicon(pairs, np.array(signs), endings, keywords)


def _number(name: str) -> int:
    """Return the number of a class."""
    return [_EDGE, *_CLASSES, _BLANK, _OTHER].index(name)


def _byte_classes() -> NDArray[np.uint8]:
    classes = np.full(256, _number(_OTHER), np.uint8)
    classes[: ord(" ") + 1] = _number(_BLANK)
    classes[ord("\n")] = _number(_EDGE)
    for name, characters in _CLASSES.items():
        classes[list(characters.encode())] = _number(name)
    return classes


def pair_weights(weights: list[float]) -> NDArray[np.float64]:
    """Return the weight of every pair of bytes, float64 [65536], from one weight for each of PAIRS.

    That of `first` before `second` is at first + 256 * second.
    """
    table = np.zeros((len(_ALL), len(_ALL)))
    for (firsts, seconds, _), weight in zip(PAIRS.values(), weights, strict=True):
        for first in firsts:
            table[[_number(second) for second in seconds], _number(first)] += weight
    classes = _byte_classes()
    return table[np.ix_(classes, classes)].ravel()
