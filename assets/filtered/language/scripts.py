"""Check that a language is plausible for a text, from the script of most of its letters.

Purpose: to detect a detector's gross errors (a Cyrillic text "in Chinese") without a second model.
Trade-off: scripts are weighed by bytes of UTF-8, so a Han letter weighs as much as three Latin
ones, which is about the ratio of their information. Romanised Russian or Hindi counts as
implausible, and so do Chinese or Korean texts with more code or English terms than own letters: 1 %
of technical documentation.
"""

from functools import cache
from typing import Any

import polars as pl

# Script (Unicode Script property; Kana is two) to the languages of lid.176 and langdetect that are
# or were printed in it; from CLDR's supplemental data and Ethnologue.
LANGUAGES = {
    "Latin": "af als an ast az bar bcl br bs ca cbk ceb co cs cy da de diq dsb en eml eo es et eu"
    " fi fr frr fy ga gd gl gn gom gv hif hr hsb ht hu ia id ie ilo io is it jbo jv kk ku kw la lb"
    " li lmo lt lv mg min ms mt mwl nah nap nds nl nn no oc pam pfl pl pms pt qu rm ro sc scn sco"
    " sh sk sl so sq sr su sv sw tk tl tr tt ug uz vec vep vi vls vo wa war yo",
    "Cyrillic": "av az ba be bg bs bxr ce cv kk krc ku kv ky lez mhr mk mn mrj myv os ro ru rue sah"
    " sh sr tg tk tt tyv ug uk uz xal",
    "Arabic": "ar arz az azb ckb fa kk ku ky lrc ms mzn pa pnb ps sd so tg tk tr tt ug ur uz",
    "Devanagari": "bh dty gom hi hif mai mr ne new sa sd",
    "Bengali": "as bn bpy sa",
    "Han": "ja ko wuu yue zh",
    "Kana": "ja",
    "Hangul": "ko",
    "Hebrew": "he yi",
    "Georgian": "ka xmf",
    "Tibetan": "bo",
    "Mongolian": "bxr mn xal",
    "Armenian": "hy",
    "Ethiopic": "am",
    "Greek": "el",
    "Gujarati": "gu",
    "Gurmukhi": "pa",
    "Kannada": "gom kn",
    "Khmer": "km",
    "Lao": "lo",
    "Malayalam": "ml",
    "Myanmar": "my",
    "Oriya": "or",
    "Sinhala": "si",
    "Tamil": "ta",
    "Telugu": "te",
    "Thaana": "dv",
    "Thai": "th",
}
_PATTERNS = {"Kana": r"\p{Hiragana}\p{Katakana}"}
_OTHER = r"[^\p{Common}\p{Inherited}]"  # characters of one script


def dominant_scripts(texts: pl.Series) -> pl.Series:
    """Return the script (String) of most letters of each text, by bytes; "Other" if not listed.

    A text without letters of a single script has null. Of equal scripts the first listed wins.
    """
    from assets.filtered.kernels.character_scan import dominant_groups
    from assets.text.buffers import text_buffers

    names = pl.Series(texts.name, [None, *LANGUAGES, "Other"], dtype=pl.String)
    groups = dominant_groups(*text_buffers(texts.fill_null("")), _script_numbers())
    return names.gather(pl.Series(groups, dtype=pl.UInt8))


def is_plausible(langs: pl.Series, scripts: pl.Series) -> pl.Series:
    """Check each language (String, ISO 639) against the script in the same row; returns Boolean.

    True for a language that no script lists, and if either is null.
    """
    pairs = {f"{lang} {script}" for script, langs in LANGUAGES.items() for lang in langs.split()}
    known = {pair.split()[0] for pair in pairs}
    is_written = (langs + " " + scripts).is_in(sorted(pairs)) | ~langs.is_in(sorted(known))
    return is_written.fill_null(True)


@cache
def _script_numbers() -> Any:
    """Return the script number of each code point, uint8: place in `LANGUAGES` from 1, or Other."""
    import numpy as np

    from assets.filtered.kernels.character_scan import matching_codes
    from assets.text.kernels.character_classes import NUM_CODES

    letters = matching_codes(r"\p{L}")
    numbers = np.zeros(NUM_CODES, np.uint8)
    numbers[matching_codes(_OTHER, letters)] = len(LANGUAGES) + 1
    for number, script in enumerate(LANGUAGES, start=1):
        names = _PATTERNS.get(script, rf"\p{{{script}}}")
        numbers[matching_codes(f"[{names}]", letters)] = number
    return numbers
