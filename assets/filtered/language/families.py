"""Languages that a detector confuses, and the tag of a text in another language than its source.

Method: a text is tagged if the detector is sure, the text is long enough to be sure of, and the
answer is of another family than every language of the source. Bosnian, Croatian, Montenegrin and
Serbian are one family here, and so are Norwegian and Danish: lid.176 takes one in four short texts
for a neighbour (docs/quality.md, section 4).
Trade-off: Danish texts in a Norwegian source are not found.
"""

import polars as pl

from assets.text.table_rows import has_characters
from resources.settings.filtering.filter_steps import LanguageConfig

# Close languages, or names of one language, by ISO 639 code; others are families of their own.
FAMILIES = (
    "sr hr bs sh cnr srp hrv bos",
    "no nb nn da",
    "id ms min zsm",
    "zh yue wuu cmn",
    "de als bar",
    "en sco",
    "ar arz arb",
    "az azb",
    "fa prs pes",
    "tl fil",
    "pa pnb",
    "gl pt",
    "cs sk",
)
_FAMILY = {code: line.split()[0] for line in FAMILIES for code in line.split()}
_CYRILLIC = r"\p{Cyrillic}"
_SERBIAN_ONLY, _MACEDONIAN_ONLY = "[ђћЂЋ]", "[ѓќѕЃЌЅ]"
_NEIGHBOURS = ("sh", "hr", "bs", "mk", "sr", "bg", "ru")  # answers for Serbian
_IN_LATIN_TOO = ("sh", "hr", "bs")  # others are right without a letter of only one language


def family_of(langs: pl.Series) -> pl.Series:
    """Return the first code of each language's family (String); null stays null."""
    return langs.replace(_FAMILY)


def is_other_language(
    texts: pl.Series, detected: pl.DataFrame, config: LanguageConfig
) -> pl.Series:
    """Check each text for another language than `config.expected` (Boolean); null: none expected.

    `detected` has lang and lang_score. A text that is too short, that the detector is not sure of,
    or whose language is unknown, is not in another language.
    """
    if not config.expected or config.backend == "none":
        return pl.repeat(None, len(texts), dtype=pl.Boolean, eager=True)
    wanted = {_FAMILY.get(code, code) for code in config.expected}
    is_sure = detected["lang_score"] >= config.certain_score
    text = texts.to_frame("text")
    is_long = text.select(has_characters(pl.col("text"), config.certain_chars)).to_series()
    is_other = ~family_of(detected["lang"]).is_in(sorted(wanted))
    return (is_sure & is_long & is_other).fill_null(False)


def correct_serbian(texts: pl.Series, langs: pl.Series) -> pl.Series:
    """Return languages (String) with the answers for Serbian corrected by its script and letters.

    lid.176 knows Serbo-Croatian (sh), a code withdrawn from ISO 639. In Cyrillic letters sh, hr and
    bs are Serbian, in Latin letters sh is Croatian, since its texts (a Wikipedia) are mostly
    Ijekavian. Only Serbian has ђ and ћ, only Macedonian ѓ, ќ and ѕ.
    """
    rows = langs.is_in(_NEIGHBOURS).fill_null(False).arg_true()
    if rows.is_empty():
        return langs
    text, lang = texts.gather(rows), langs.gather(rows)
    serbian, macedonian = text.str.contains(_SERBIAN_ONLY), text.str.contains(_MACEDONIAN_ONLY)
    is_in_doubt = serbian | macedonian | lang.is_in(_IN_LATIN_TOO)
    doubted = text.filter(is_in_doubt)
    is_cyrillic = doubted.str.count_matches(_CYRILLIC) > doubted.str.count_matches(r"\p{Latin}")
    answers = pl.DataFrame({"l": lang, "s": serbian, "m": macedonian}).filter(is_in_doubt)
    frame = answers.with_columns(is_cyrillic.alias("c"))
    corrected = frame.select(
        pl.when(pl.col("c") & pl.col("s") & ~pl.col("m"))
        .then(pl.lit("sr"))
        .when(pl.col("c") & pl.col("m") & ~pl.col("s") & (pl.col("l") == "sr"))
        .then(pl.lit("mk"))
        .when(pl.col("c") & pl.col("l").is_in(["sh", "hr", "bs"]))
        .then(pl.lit("sr"))
        .when(pl.col("l") == "sh")
        .then(pl.lit("hr"))
        .otherwise("l")
    ).to_series()
    return langs.scatter(rows.filter(is_in_doubt), corrected)
