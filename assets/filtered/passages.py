"""Passages of a text that break a rule, and the windows of a long text that show them.

For people who look at a handful of documents: plain Python; the scores themselves come from the
kernels. Positions are characters. A rule about the text as a whole (too short, too few stop words)
has no passage.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import polars as pl

from assets.filtered.line_edits import edit_lines
from assets.filtered.page_scores import PAGE_SCORES, score_pages
from assets.filtered.pii.find_pii import find_pii
from assets.filtered.rules.rules import Rule
from assets.filtered.score_counts import FilterData
from assets.filtered.word_lists import WordLists, count_listed
from corpus_loader.permutation import derive_key, mix64
from resources.settings.filtering.filter_steps import LinesConfig, PiiConfig, RefinedWebLines

Span = tuple[int, int]
Finder = Callable[[str, Rule], Iterable[Span]]

MAX_CHARS = 2_000_000  # searched: n-grams of more would take many seconds
MIN_CONTEXT = 40  # characters shown on each side of a passage, if there is room
# As kernels.text_scores: white space separates, a Han or kana character is a word.
UNSPACED = r"\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
UNSPACED += r"\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
TOKEN = re.compile(r"\S+")
LINE = re.compile(r"[^\n]+")
LEAST_PIECE = 200  # characters
PIECE = re.compile(r"\S.{0,400}\S*", re.DOTALL)
ELLIPSES = ("...", "…")
POLICY = "terms of use|privacy policy|cookie policy|uses cookies|use of cookies|use cookies"


def offending_spans(text: str, rule: Rule) -> list[Span]:
    """Return (start, stop) of each passage that breaks the rule, ascending, without overlaps."""
    find = FINDERS.get(rule.score)
    return merge_spans(find(text[:MAX_CHARS], rule)) if find else []


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Sort the spans, join those that overlap, drop the empty ones."""
    merged: list[Span] = []
    for start, stop in sorted(span for span in spans if span[0] < span[1]):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def windows(length: int, spans: Sequence[Span], width: int) -> list[Span]:
    """Choose at most `width` of a text's `length` characters to show, around the spans.

    Without spans, the beginning; of more spans than fit, the first ones.
    """
    if length <= width or not spans:
        return merge_spans([(0, min(length, width))])
    spans = spans[:width]
    context = MIN_CONTEXT
    shown = _widen(length, spans, context)
    while True:
        context *= 2
        wider = _widen(length, spans, context)
        if sum(stop - start for start, stop in wider) > width:
            break
        shown = wider
    return _cut(shown, width)


def _widen(length: int, spans: Sequence[Span], context: int) -> list[Span]:
    return merge_spans(
        (max(0, start - context), min(length, stop + context)) for start, stop in spans
    )


def _cut(shown: Sequence[Span], width: int) -> list[Span]:
    """Keep the first `width` characters of the windows."""
    kept: list[Span] = []
    for start, stop in shown:
        kept.append((start, min(stop, start + width)))
        width -= kept[-1][1] - start
    return merge_spans(kept)


def sample_keys(doc_ids: pl.Series, seed: int) -> pl.Series:
    """Return a key, UInt64, per document id (hex): sorted by it, documents are in random order.

    The first 64 bits of an id are a hash already; they are mixed with the seed.
    """
    hashes = doc_ids.str.slice(0, 16).str.to_integer(base=16, dtype=pl.UInt64, strict=False)
    keys = hashes.fill_null(0).to_numpy() ^ np.uint64(derive_key(seed, "sample"))
    return pl.Series("key", mix64(keys), dtype=pl.UInt64)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (start, line) of the non-blank lines, without the white space around them."""
    for match in LINE.finditer(text):
        line = match.group()
        stripped = line.strip()
        if stripped:
            yield match.start() + len(line) - len(line.lstrip()), stripped


def _paragraphs(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, stop, content) of the runs of lines between blank ones."""
    run: list[tuple[int, str]] = []
    start = 0
    for raw_line in [*text.split("\n"), ""]:
        line = raw_line.strip()
        if line:
            run.append((start + len(raw_line) - len(raw_line.lstrip()), line))
        elif run:
            stop = run[-1][0] + len(run[-1][1])
            yield run[0][0], stop, "\n".join(line for _, line in run)
            run = []
        start += len(raw_line) + 1


def _copies(segments: Iterable[tuple[int, int, str]], is_first_one_too: bool) -> Iterator[Span]:
    """Yield the spans of segments whose content came before, or of all that are not unique."""
    segments = list(segments)
    counts = Counter(content for _, _, content in segments)
    seen: set[str] = set()
    for start, stop, content in segments:
        if content in seen or (is_first_one_too and counts[content] > 1):
            yield start, stop
        seen.add(content)


def _copied_lines(is_first_one_too: bool) -> Finder:
    return lambda text, _: _copies(
        ((start, start + len(line), line) for start, line in _lines(text)), is_first_one_too
    )


def _copied_paragraphs(is_first_one_too: bool) -> Finder:
    return lambda text, _: _copies(_paragraphs(text), is_first_one_too)


def _ngrams(text: str, size: int) -> list[tuple[int, int, tuple[str, ...]]]:
    words = [(match.start(), match.end(), match.group()) for match in WORD.finditer(text)]
    content = [word for _, _, word in words]
    return [
        (words[i][0], words[i + size - 1][1], tuple(content[i : i + size]))
        for i in range(len(words) - size + 1)
    ]


def _copied_ngrams(size: int, *, only_top: bool) -> Finder:
    """Find all copies of repeated n-grams, or of the most frequent: the longest of equal ones."""

    def find(text: str, _: Rule) -> Iterator[Span]:
        ngrams = _ngrams(text, size)
        counts = Counter(ngram for _, _, ngram in ngrams)
        top = max(counts, key=lambda ngram: (counts[ngram], len("".join(ngram))), default=())
        return (
            (start, stop)
            for start, stop, ngram in ngrams
            if counts[ngram] > 1 and (ngram == top or not only_top)
        )

    return find


def _matches(pattern: str) -> Finder:
    compiled = re.compile(pattern, re.IGNORECASE | re.ASCII)
    return lambda text, _: (match.span() for match in compiled.finditer(text))


def _lines_where(is_bad: Callable[[str], bool]) -> Finder:
    return lambda text, _: (
        (start, start + len(line)) for start, line in _lines(text) if is_bad(line)
    )


def _bullet_lines(text: str, rule: Rule) -> Iterable[Span]:
    from assets.text.kernels.character_classes import BULLETS

    return _lines_where(lambda line: line[0] in BULLETS)(text, rule)


def _short_lines(text: str, rule: Rule) -> Iterable[Span]:
    from assets.filtered.kernels.text_words import SHORT_LINE_CHARS

    return _lines_where(lambda line: len(line) <= SHORT_LINE_CHARS)(text, rule)


def _unfinished_lines(text: str, rule: Rule) -> Iterable[Span]:
    from assets.text.kernels.character_classes import TERMINAL_MARKS

    return _lines_where(lambda line: line[-1] not in TERMINAL_MARKS)(text, rule)


def _longer_than_threshold(pattern: re.Pattern[str]) -> Finder:
    def find(text: str, rule: Rule) -> Iterator[Span]:
        if rule.direction != "above" or not isinstance(rule.threshold, float | int):
            return iter(())
        limit = rule.threshold
        spans = (match.span() for match in pattern.finditer(text))
        return (span for span in spans if span[1] - span[0] > limit)

    return find


def _words_without_letters(text: str, _: Rule) -> Iterator[Span]:
    words = WORD.finditer(text)
    return (word.span() for word in words if not any(map(str.isalpha, word.group())))


def _personal_data(text: str, _: Rule) -> Iterator[Span]:
    counts = find_pii(pl.Series([text]), PiiConfig(action="tag"))[1]
    return ((span["start"], span["end"]) for span in counts["pii_spans"][0])


def listed_words(text: str, rule: Rule, data: FilterData) -> list[Span]:
    """Return the spans of single words in the lists that the rule looks at; phrases have none."""
    column = LISTED.get(rule.score)
    if column is None:
        return []
    words = [match.span() for match in TOKEN.finditer(text[:MAX_CHARS])]
    tokens = pl.Series([text[start:stop] for start, stop in words], dtype=pl.String)
    lists = WordLists(profanity=data.profanity, vocabulary=data.vocabulary)
    unknown = pl.Series([None] * len(tokens), dtype=pl.String)
    counts = count_listed(tokens, unknown, lists)[column].to_list()
    return merge_spans(span for span, count in zip(words, counts, strict=True) if count)


# Scores of words in lists, and the count that is above 0 for a listed word.
LISTED = {
    "profanity_density": "profane_words",
    "profane_words": "profane_words",
    "vocabulary_density": "vocabulary_words",
}


def _corrected_lines(count: str, config: LinesConfig) -> Finder:
    """Find the lines in which the line corrections count something."""

    def find(text: str, _: Rule) -> Iterator[Span]:
        lines = list(_lines(text))
        texts = pl.Series([line for _, line in lines], dtype=pl.String)
        counts = edit_lines(texts, config)[1][count]
        spans = ((start, start + len(line)) for start, line in lines)
        return (span for span, number in zip(spans, counts, strict=True) if number)

    return find


def _worst_piece(text: str, rule: Rule) -> Iterator[Span]:
    """Find the piece that breaks a rule on the form of a page most by itself.

    What is left at the end is too short to be judged alone: a footer is not what a page is like.
    """
    pieces = [match.span() for match in PIECE.finditer(text)]
    if len(pieces) > 1 and pieces[-1][1] - pieces[-1][0] < LEAST_PIECE:
        pieces[-2:] = [(pieces[-2][0], pieces[-1][1])]
    texts = pl.Series([text[start:stop] for start, stop in pieces], dtype=pl.String)
    scores = score_pages(texts)[rule.score]
    worst = scores.arg_max() if rule.direction == "above" else scores.arg_min()
    return iter(() if worst is None else [pieces[worst]])


def _last_line(text: str, _: Rule) -> Iterable[Span]:
    return [(start, start + len(line)) for start, line in _lines(text)][-1:]


# By score; what is not here is shown from its beginning.
FINDERS: dict[str, Finder] = {
    **dict.fromkeys(PAGE_SCORES, _worst_piece),
    "truncated_pages_score": _last_line,
    "duplicate_line_share": _copied_lines(False),
    "duplicate_line_char_share": _copied_lines(False),
    "duplicate_char_share": _copied_lines(False),
    "repeated_line_share": _copied_lines(True),
    "repeated_line_char_share": _copied_lines(True),
    "duplicate_paragraph_share": _copied_paragraphs(False),
    "duplicate_paragraph_char_share": _copied_paragraphs(False),
    "repeated_paragraph_share": _copied_paragraphs(True),
    "repeated_paragraph_char_share": _copied_paragraphs(True),
    **{f"top_{n}_gram_char_share": _copied_ngrams(n, only_top=True) for n in (2, 3, 4)},
    **{f"duplicate_{n}_gram_char_share": _copied_ngrams(n, only_top=False) for n in range(5, 11)},
    "mean_word_length": _longer_than_threshold(WORD),
    "hash_ratio": _matches("#"),
    "ellipsis_ratio": _matches(r"\.\.\.|…"),
    "bullet_line_share": _bullet_lines,
    "ellipsis_line_share": _lines_where(lambda line: line.endswith(ELLIPSES)),
    "alphabetic_word_share": _words_without_letters,
    "lorem_ipsum_lines": _matches("lorem ipsum"),
    "curly_bracket_lines": _matches(r"\{"),
    "javascript_lines": _matches("javascript"),
    "policy_lines": _matches(POLICY),
    "copyright_notices_left": _corrected_lines("copyright_notices", LinesConfig()),
    "removed_word_share": _corrected_lines(
        "refinedweb_words", LinesConfig(refinedweb=RefinedWebLines())
    ),
    "pii_total": _personal_data,
    "pii_density": _personal_data,
    "encoded_share": _matches("[A-Za-z0-9+/]{64,}"),
    "terminal_line_share": _unfinished_lines,
    "short_line_share": _short_lines,
    "longest_line": _longer_than_threshold(LINE),
    "mean_line_length": _longer_than_threshold(LINE),
    "alphanumeric_share": _matches(r"(?u:[^\w\s]|_)+"),
}
