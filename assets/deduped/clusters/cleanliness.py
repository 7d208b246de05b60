"""Cleanliness of the documents of a cluster, by which `keep: cleanest` ranks them.

Purpose: the copy that stays should be the original, or what is left of it. Two things tell it from
its copies: the others agree with it (kernels/agreement.py), and its text shows no damage. Their
product is the rank, so damage counts by the share of what a text is worth.
Signs of damage occur in clean text, too: code without capitals, manuals with hard line breaks. All
copies of it have them then, in about the same number per character, so that a sign counts by the
logarithm of its rate: a little more or less weighs less than a missing end of the text.
Trade-off: the texts of candidates are read when clusters are decided, and nothing is stored. Exact
verification reads them anyway. Each sign is a pass of a regular expression in linear time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.minhash.minhash import shingle_edges
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
PHRASES = (
    r"(?i)\b(?:all\s+rights\s+reserved|privacy\s+policy|terms\s+of\s+(?:use|service)|cookie\s+policy"
    r"|use[sd]?\s+cookies|skip\s+to\s+(?:main\s+)?content|sign\s+up|log\s?in|subscribe|newsletter|follow\s+us"
    r"|share\s+(?:this|on)|read\s+more|powered\s+by|contact\s+us|site\s?map|back\s+to\s+top|advertisement)\b"
    r"|\u00a9|\(c\)\s*(?:19|20)[0-9]{2}|home\s*[|\u203a\u00bb>]"
)
STEPS = 1024  # of a share; 8 million copies of a text still fit an Int64
PER_CHARS = 1000  # characters in which an occurrence of a sign weighs 0.3 of its weight


def text_facts(texts: pl.Series, config: DedupConfig) -> pl.DataFrame:
    """Return the columns of members that `cleanliness` reads; none if `keep` does not ask for it.

    damage, form_damage Float64; edges Array(UInt64), if shingles are compared: the first and the
    last ones.
    """
    from assets.deduped.kernels.agreement import EDGE

    if "cleanest" not in config.keep:
        return pl.DataFrame()
    facts = damage_of(texts)
    if not config.compares_shingles:
        return facts
    edges = pl.Series(shingle_edges(texts, config, EDGE), dtype=pl.Array(pl.UInt64, 2 * EDGE))
    return facts.with_columns(edges=edges)


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


def damage_of(texts: pl.Series) -> pl.DataFrame:
    """Return damage and form_damage of each text, Float64 of 0 to 0.9; 0 without any sign."""
    text = pl.col("text").str.strip_chars()
    counted = pl.DataFrame({"text": texts}).select(
        chars=text.str.count_matches(r"\S"),
        upper=text.str.count_matches(r"\p{Lu}"),
        lower=text.str.count_matches(r"\p{Ll}"),
        titled=text.str.count_matches(r"(?:^|[^\p{L}\p{N}'\u2019])\p{Lu}\p{Ll}"),
        words_lower=text.str.count_matches(r"(?:^|[^\p{L}\p{N}'\u2019])\p{Ll}"),
        newlines=text.str.count_matches("\n", literal=True),
        words=text.str.count_matches(r"\s\S"),
        mojibake=text.str.count_matches(MOJIBAKE),
        entities=text.str.count_matches(ENTITIES),
        tags=text.str.count_matches(TAGS),
        hyphens=text.str.count_matches(HYPHENATED),
        broken=text.str.count_matches(BROKEN_LINES),
        gaps=text.str.count_matches(GAPS) + (text != pl.col("text")),
        phrases=text.str.count_matches(PHRASES),
        controls=text.str.count_matches(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\u009f\u00ad\u200b]"),
    )
    return counted.select(damage=_sum_of(_damage_signs()), form_damage=_sum_of(_form_signs()))


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
    is_long = pl.col("chars") >= LEAST_CHARS
    yield pl.when(is_long & (pl.col("newlines") == 0)).then(0.2)
    yield pl.when(is_long & (pl.col("words") < 3 * pl.col("newlines"))).then(0.12)
    yield pl.when(pl.col("newlines") > 0).then(0.16 * pl.col("broken") / pl.col("newlines"))
    yield 0.08 * _rate("hyphens") + 0.04 * _rate("gaps")


def _rate(name: str) -> pl.Expr:
    """Return the logarithm of a sign's rate: 0 without any, 1 at one in a hundred characters."""
    rate: pl.Expr = pl.col(name) * PER_CHARS / pl.col("chars")
    return rate.log1p() / math.log(10)


def _sum_of(signs: Iterable[pl.Expr]) -> pl.Expr:
    """Add the signs; one that does not apply counts 0."""
    return pl.sum_horizontal(sign.fill_null(0).fill_nan(0) for sign in signs).clip(0, 0.9)
