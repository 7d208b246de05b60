"""Cleanliness of the documents of a cluster, by which `keep: cleanest` ranks them.

Purpose: the copy that stays should be the original, or what is left of it. Two things tell it from
its copies: the others agree with it (kernels/agreement.py), and its text shows no damage. Their
product is the rank, so damage counts by the share of what a text is worth.
Signs of damage occur in clean text, too: code without capitals, manuals with hard line breaks. All
copies of it have them then, in about the same number per word, so that a sign counts by the
logarithm of its rate: a little more or less weighs less than a missing end of the text.
Trade-off: the texts of candidates are read when clusters are decided, and nothing is stored. Exact
verification reads them anyway. Each sign is a regular expression in linear time; those of single
characters are counted together.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.minhash.minhash import sets_and_edges, without_licence
from assets.text.buffers import text_buffers
from assets.text.list_columns import list_series
from resources.settings.dedup import DedupConfig

if TYPE_CHECKING:
    from assets.deduped.kernels.pair_similarity import Evidence

Candidates = tuple[NDArray[np.int64], NDArray[np.int32]]

# Least counted letters, breaks or words: a share of fewer says nothing.
LEAST_LETTERS, LEAST_CHARS = 60, 250
# UTF-8 read as Latin-1 or Windows-1252: a leading byte and its continuation bytes as characters.
_WINDOWS = bytes(sorted({*range(0x80, 0xA0)} - {0x81, 0x8D, 0x8F, 0x90, 0x9D})).decode("cp1252")
_CONTINUATION = f"[\u0080-\u00bf{_WINDOWS}\ufffd]"
MOJIBAKE = (
    rf"[\u00c2-\u00df]{_CONTINUATION}|[\u00e0-\u00ef]{_CONTINUATION}{{2}}"
    rf"|[\u00f0-\u00f4]{_CONTINUATION}{{3}}|\ufffd"
)
ENTITIES = r"&(?:[a-zA-Z]{2,8}|#[0-9]{2,6}|#x[0-9a-fA-F]{2,5});"
TAGS = r"(?i)</?(?:p|br|div|span|a|li|ul|td|tr|em|strong|b|i|h[1-6])(?:\s[^<>]{0,99})?/?>"
HYPHENATED = r"\p{Ll}-[ \t]*\n\s*\p{Ll}"
BROKEN_LINES = r"[\p{Ll},][ \t]*\n+[ \t]*\p{Ll}"  # in mid-sentence
GAPS = r"[^\s.!?|][ \t]{2,}[^\s|]|[ \t]\n|\n{4,}"
# Words of menus and footers, in any case; without blanks, so that broken white space hides none.
PHRASES = [
    *("copyright", "reserved", "privacy", "cookies", "newsletter", "subscribe", "login", "sitemap"),
    *("advertisement", "\u00a9"),
]
CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\u009f\u00ad\u200b]"
# What one pass over the characters counts, and its classes in the order of their bits there.
BY_CHARACTER = {
    "mojibake": MOJIBAKE,
    "controls": CONTROLS,
    "upper": r"\p{Lu}",
    "lower": r"\p{Ll}",
    "titled": r"(?:^|[^\p{L}\p{N}'\u2019])\p{Lu}\p{Ll}",
    "words_lower": r"(?:^|[^\p{L}\p{N}'\u2019])\p{Ll}",
    "words": r"\s\S",
}
CLASSES = (r"\p{Ll}", r"\p{Lu}", r"[\p{L}\p{N}'\u2019]", r"\s", CONTROLS, _CONTINUATION)
CODE_POINTS = 0x40000  # the planes with letters
STEPS = 1024  # of a share; 8 million copies of a text still fit an Int64
PER_WORDS = 200  # words in which an occurrence of a sign weighs 0.3 of its weight
FORM_CHARS = 2000  # from the beginning: case and white space are alike all through a text
LOADING = threading.Lock()  # else threads that ask at the same time would each look at all


def text_facts(texts: pl.Series, num_words: pl.Series, config: DedupConfig) -> pl.DataFrame:
    """Return what `decide` reads of texts: columns of members.

    damage, form_damage Float64, if `keep` asks for the cleanest; shingles List(UInt64), if they are
    compared; edges Array(UInt64), the first and the last shingles, if both.
    """
    from assets.deduped.kernels.agreement import EDGE

    is_ranked = "cleanest" in config.keep
    facts = damage_of(texts, num_words).to_dict() if is_ranked else {}
    if config.compares_shingles:
        compared = without_licence(texts.fill_null(""))
        values, offsets, edges = sets_and_edges(compared, config, EDGE if is_ranked else 0)
        if is_ranked:
            facts["edges"] = pl.Series(edges, dtype=pl.Array(pl.UInt64, 2 * EDGE))
        facts["shingles"] = list_series(values, offsets)
    return pl.DataFrame(facts)


def cleanliness(
    members: pl.DataFrame, evidence: Evidence, candidates: Candidates, row_stops: NDArray[np.int64]
) -> pl.Series:
    """Return agreement times the share of the text without damage, Int64 [n]; the most is best.

    Damage to case and white space decides between equals: it is the last of the digits.

    `members` has the columns of `text_facts`; the other arguments are those of the kernels.
    """
    from assets.deduped.kernels.agreement import EDGE, agreements

    edges = np.zeros((len(members), 2 * EDGE), np.uint64)
    if "edges" in members.columns:
        edges = members["edges"].to_numpy()
    agreed = pl.Series(
        "agreed", agreements(evidence, np.ascontiguousarray(edges), candidates, row_stops)
    )
    sound, in_form = (
        ((1 - members[name]) * STEPS).round().cast(pl.Int64) for name in ("damage", "form_damage")
    )
    return (agreed * sound) * STEPS + in_form


def damage_of(texts: pl.Series, num_words: pl.Series) -> pl.DataFrame:
    """Return damage and form_damage of each text, Float64 of 0 to 0.9; 0 without any sign."""
    text, begin = pl.col("text"), pl.col("begin")
    begins = texts.str.strip_chars().str.slice(0, FORM_CHARS)
    of_texts = count_by_character(texts, in_form=False)
    of_begins = count_by_character(begins, in_form=True)
    counted = pl.DataFrame(
        {
            "text": texts,
            "num_words": num_words,
            "begin": begins,
            **(of_begins | of_texts),
        }
    )
    signs = counted.with_columns(
        entities=text.str.count_matches(ENTITIES),
        tags=text.str.count_matches(TAGS),
        phrases=text.str.find_many(PHRASES, ascii_case_insensitive=True).list.len(),
        is_long=begin.str.len_chars() >= LEAST_CHARS,
        newlines=begin.str.count_matches("\n", literal=True),
        hyphens=begin.str.count_matches(HYPHENATED),
        broken=begin.str.count_matches(BROKEN_LINES),
        gaps=begin.str.count_matches(GAPS) + ~text.str.starts_with(begin),
    )
    return signs.select(damage=_sum_of(_damage_signs()), form_damage=_sum_of(_form_signs()))


def count_by_character(texts: pl.Series, *, in_form: bool) -> dict[str, pl.Series]:
    """Count in each text what the regexes `BY_CHARACTER` do, UInt32; of case only if `in_form`."""
    from assets.deduped.kernels.damage_signs import ANYWHERE, SIGNS, count_signs

    counts = count_signs(*text_buffers(texts), character_classes(), in_form)
    names = SIGNS if in_form else ANYWHERE
    return {name: pl.Series(counts[:, n].astype(np.uint32)) for n, name in enumerate(names)}


def character_classes() -> NDArray[np.uint8]:
    """Return the classes of `damage_signs` by code point, as regexes tell them, uint8."""
    with LOADING:
        return _classes_once()


@cache
def _classes_once() -> NDArray[np.uint8]:
    classes = np.zeros(CODE_POINTS, np.uint8)
    points = np.delete(np.arange(CODE_POINTS, dtype="<u4"), slice(0xD800, 0xE000))  # surrogates
    every = pl.Series([points.tobytes().decode("utf-32-le")])
    for bit, characters in enumerate(CLASSES):
        for run in every.str.extract_all(f"{characters}+").explode():
            classes[ord(run[0]) : ord(run[-1]) + 1] |= 1 << bit
    return classes


def _damage_signs() -> Iterable[pl.Expr]:
    """Yield the damage by encoding, markup and boilerplate: case and white space do not matter."""
    yield 0.15 * _rate("mojibake") + pl.when(pl.col("mojibake") > 0).then(0.15).otherwise(0)
    yield 0.1 * (_rate("entities") + _rate("tags") + _rate("phrases") + _rate("controls"))


def _form_signs() -> Iterable[pl.Expr]:
    """Yield the damage to case, then to white space.

    It decides between documents that are as good otherwise, such as copies of the same words. Else
    a menu, which has capitals and line breaks, would mend a text that never had any.
    """
    letters = pl.col("upper") + pl.col("lower")
    has_case = letters >= LEAST_LETTERS
    of_words = pl.col("titled") / (pl.col("titled") + pl.col("words_lower"))
    is_raised = (pl.col("upper") > pl.col("lower")) | (of_words > 0.8)
    yield pl.when(has_case & is_raised).then(0.5)
    yield pl.when(has_case & (pl.col("upper") == 0)).then(0.4)
    yield pl.when(pl.col("is_long") & (pl.col("newlines") == 0)).then(0.2)
    yield pl.when(pl.col("is_long") & (pl.col("words") < 3 * pl.col("newlines"))).then(0.12)
    yield pl.when(pl.col("newlines") > 0).then(0.16 * pl.col("broken") / pl.col("newlines"))
    yield 0.08 * _rate("hyphens") + 0.04 * _rate("gaps")


def _rate(name: str) -> pl.Expr:
    """Return the logarithm of a sign's rate: 0 without any, 0.8 at one in forty words."""
    rate: pl.Expr = pl.col(name) * PER_WORDS / pl.col("num_words").clip(1)
    return rate.log1p() / math.log(10)


def _sum_of(signs: Iterable[pl.Expr]) -> pl.Expr:
    """Add the signs; one that does not apply counts 0."""
    return pl.sum_horizontal(sign.fill_null(0).fill_nan(0) for sign in signs).clip(0, 0.9).round(6)
