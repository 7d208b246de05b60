"""Remove lines by Gutenberg's marks and C4's, RefinedWeb's and copyright rules; count their faults.

C4 and RefinedWeb as published: their line rules edit a document, and their page rules look at the
counts (sentences, curly brackets, lorem ipsum).
Trade-off: C4 joins its lines with "\\n", so paragraphs and indentation are gone from what it edits.
A sentence ends at a run of . ? ! … or another mark of Unicode's Sentence_Terminal, and the quotes
and brackets that close after it, if white space or the line's end follows; marks of scripts that
write without blanks (。！？ and the like) need none. A stretch without a letter or digit is no
sentence; the rest of a line is one. Abbreviations ("Dr. Who") do end one here: C4 itself asks
nltk's punkt, datatrove the tokenizer of the language.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import texts_in
from assets.text.table_rows import replace_rows, table_of
from resources.settings.filtering.filter_steps import C4Lines, LinesConfig, RefinedWebLines

# A search for these in the column lets the kernels look for a phrase in few rows only. They are
# short and ASCII: the search is faster, and half as many rows again match.
C4_PHRASES = r"(?i-u)javascript|lorem ipsum|ms of use|y policy|ie policy|cookies"
REFINEDWEB_PHRASES = r"(?i-u)items in cart|sign-in|read more"


# A notice is one line: at its start a mark (with a year, if the mark is "(c)" or the bare word),
# or a mark with a year further on, or "all rights reserved" at its end.
COPYRIGHT_HINT = (
    r"(?i)©|copyright[\s:]*(?:©|\(c\))|(?:\(c\)|copyright)[\s:,]*(?:19|20)\d\d"
    r"|all rights (?:are )?reserved"
)
MAX_NOTICE_CHARS = 200
# Project Gutenberg's marks: of today, and the end of the "small print" of books before 2004.
# https://www.gutenberg.org/policy/license.html is what follows the last one.
GUTENBERG_HINT = r"(?-u)PROJECT GUTENBERG E|THE SMALL PRINT!"
GUTENBERG_START = (
    r"(?s)\A(?:.*?\n)?[ \t]*\*{1,3} ?(?:START OF TH(?:E|IS) PROJECT GUTENBERG E[^*]{0,300}\*{3}"
    r"|END ?\*? ?THE SMALL PRINT![^\n]*END\*)[ \t]*\n\s*"
)
_END = r"\n\s*End of (?i:the |this )?Project Gutenberg"
GUTENBERG_END = (
    rf"(?s)(?:{_END}[^*]{{0,300}}|\n\s*)\*{{3}} ?END OF TH(?:E|IS) PROJECT GUTENBERG E.*\z"
    rf"|{_END}(?:'s)? E[^\n]*(?:\n[^\n]+)?\s*\z"
)
MAX_GUTENBERG_CHARS = 40_000  # of a header or licence, which have up to 20,000
COPYRIGHT_NOTICE = (
    r"(?i)^[^\p{L}\p{N}©(]*(?:©|copyright[\s:]*(?:©|\(c\)))"
    r"|^[^\p{L}\p{N}©(]*(?:\(c\)|copyright)[\s:,]*(?:19|20)\d\d\b"
    r"|(?:©|\(c\)|copyright)[\s:,]*(?:19|20)\d\d\b"
    r"|(?:^|[^\p{L}'\"“‘\s][\s'\"]*)all rights (?:are )?reserved\P{L}*$"
)


def edit_lines(texts: pl.Series, config: LinesConfig) -> tuple[pl.Series, pl.DataFrame]:
    """Return `texts` (String, no nulls) edited, in order, and their counts (Int64, one row each).

    Counts come from C4's pass, `refinedweb_*` and `copyright_notices` from the text after C4:
    sentences (of the kept lines), lorem_ipsum_lines, curly_bracket_lines, javascript_lines,
    policy_lines, unfinished_lines, few_word_lines, long_word_lines, citations, refinedweb_lines,
    refinedweb_words (removed), line_words (words before any edit), copyright_notices,
    gutenberg_lines (removed before, and in no other count).
    A line counts for the first rule that removes it, a blank one for none; a rule that is off
    still counts its lines of JavaScript or policy.
    """
    from assets.filtered.kernels.line_scan import LineCount

    counts = np.zeros((len(texts), len(LineCount)), np.int64)
    texts, gutenberg_lines = _edit_gutenberg(texts, config.remove_gutenberg)
    texts = _edit_c4(texts, config.c4, counts)
    if config.refinedweb:
        texts = _edit_refinedweb(texts, config.refinedweb, counts)
    frame = table_of(counts, [count.name.lower() for count in LineCount])
    texts, notices = _edit_copyright(texts, config.remove_copyright)
    return texts, frame.with_columns(notices, gutenberg_lines)


def _edit_c4(texts: pl.Series, config: C4Lines | None, counts: NDArray[np.int64]) -> pl.Series:
    from assets.filtered.kernels.c4_lines import C4Settings, edit_c4
    from assets.filtered.kernels.line_scan import character_classes

    lines = config or C4Lines(
        end_marks=None,
        min_words=0,
        max_word_length=0,
        javascript=False,
        policy=False,
        citations=False,
    )
    settings = C4Settings(
        is_on=config is not None,
        has_end_marks=lines.end_marks is not None,
        **lines.model_dump(exclude={"end_marks"}),
    )
    if config is not None:  # C4 and datatrove split where str.splitlines does
        texts = texts.str.replace_all("\u2028", "\n", literal=True)
        texts = texts.str.replace_all("\u2029", "\n", literal=True)
    classes = character_classes(lines.end_marks or ())
    return _run(edit_c4, texts, C4_PHRASES, settings, (classes, counts))


def _edit_refinedweb(
    texts: pl.Series, config: RefinedWebLines, counts: NDArray[np.int64]
) -> pl.Series:
    from assets.filtered.kernels.line_scan import character_classes
    from assets.filtered.kernels.refinedweb_lines import RefinedWebSettings, edit_refinedweb

    settings = RefinedWebSettings(**config.model_dump())
    tables = (character_classes(), counts)
    return _run(edit_refinedweb, texts, REFINEDWEB_PHRASES, settings, tables)


def _run(
    kernel: Callable[..., tuple[NDArray[np.uint8], NDArray[np.int64]]],
    texts: pl.Series,
    phrases: str,
    settings: Any,
    tables: tuple[NDArray[np.uint16], NDArray[np.int64]],
) -> pl.Series:
    """Run a kernel over the Arrow buffers of the column; replace the texts that it changed."""
    from assets.filtered.kernels.line_scan import FLAGGED

    if texts.is_empty():
        return texts
    texts = texts.rechunk()
    _, offsets, data = texts.to_arrow().buffers()
    starts = np.frombuffer(offsets, np.int64)[: len(texts) + 1]
    flags = texts.str.contains(phrases).to_numpy().astype(np.int64) * FLAGGED
    content = np.frombuffer(data or b"", np.uint8)
    edited, ends = kernel(content, starts, flags, settings, *tables)
    changed = pl.Series(ends >= 0).arg_true()
    return replace_rows(texts, changed, texts_in(edited, np.r_[0, ends[ends >= 0]]))


def _edit_gutenberg(texts: pl.Series, removes: bool) -> tuple[pl.Series, pl.Series]:
    """Remove headers and licences of Project Gutenberg, and count their lines (Int64)."""
    counts = pl.zeros(len(texts), pl.Int64, eager=True).alias("gutenberg_lines")
    if not removes:
        return texts, counts
    hinted = texts.str.contains(GUTENBERG_HINT).arg_true()
    before = left = texts.gather(hinted)
    for mark in (GUTENBERG_START, GUTENBERG_END):
        cut = left.str.replace(mark, "")
        is_short = left.str.len_chars() - cut.str.len_chars() <= MAX_GUTENBERG_CHARS
        left = cut.zip_with(is_short & (cut != ""), left)
    lines = before.str.count_matches("\n").cast(pl.Int64) - left.str.count_matches("\n")
    return replace_rows(texts, hinted, left), counts.scatter(hinted, lines)


def _edit_copyright(texts: pl.Series, removes: bool) -> tuple[pl.Series, pl.Series]:
    """Count the notices (Int64), and remove their lines and the blank edges that this leaves."""
    row, line, number = pl.col("row"), pl.col("line"), pl.col("number")
    hinted = texts.str.contains(COPYRIGHT_HINT).arg_true()
    lines = (
        pl.DataFrame({"row": hinted.cast(pl.Int64), "line": texts.gather(hinted).str.split("\n")})
        .explode("line")
        .with_row_index("number")
    )
    notices = lines.filter(line.str.contains(COPYRIGHT_HINT)).filter(
        (line.str.len_chars() <= MAX_NOTICE_CHARS) & line.str.contains(COPYRIGHT_NOTICE)
    )
    by_text = notices.group_by("row", maintain_order=True).len()
    counts = pl.zeros(len(texts), pl.Int64, eager=True)
    counts = counts.scatter(by_text["row"], by_text["len"].cast(pl.Int64)).alias(
        "copyright_notices"
    )
    if not removes or by_text.is_empty():
        return texts, counts
    is_notice = number.is_in(notices["number"].implode())
    rest = (
        lines.filter(row.is_in(by_text["row"].implode()))
        .group_by(row, maintain_order=True)
        .agg(line.filter(~is_notice).str.join("\n"))
    )["line"]
    rest = rest.str.strip_chars_end().str.replace(r"\A\s*\n", "")
    return replace_rows(texts, (counts > 0).arg_true(), rest), counts
