"""Thresholds of FineWeb2 for six languages, and FineWeb's own for English, as data.

Sources: configs/{fra_Latn,deu_Latn,spa_Latn,cmn_Hani,jpn_Jpan,rus_Cyrl}.yml of
github.com/huggingface/fineweb-2 (commits 05e6729 for fr, de, zh and ru, d331bee for es and ja: each
the third version of its file) and fineweb-2-pipeline.py (7ee60b3) there; English: datatrove's
defaults, which examples/fineweb.py uses (FineWeb, arXiv 2406.17557, section 3.6).
A document breaks a rule beyond its maximum or below its minimum, except that 0 switches a rule off.

FineWeb2 leaves out the paragraph rules, Gopher's share of characters in duplicate lines, FineWeb's
short lines and all of C4. The other Gopher limits keep their defaults in every language: 50 to
100,000 words, 0.1 hashes and 0.1 ellipses per word, 0.9 bullet lines, 0.3 ellipsis lines, at least
2 stop words. The language score is GlotLID's (English: fastText's lid.176), not comparable to
another model's.
Words are those of datatrove 0.10: spaCy's (punctuation apart), for Chinese cut by jieba and for
Japanese by Sudachi. The share of a top n-gram counts an n-gram that occurs once.
"""

from typing import NamedTuple


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


class FineWeb2Language(NamedTuple):
    """Limits of one language: shares of 1, lengths in characters; None: rule not applied."""

    language_score: float  # minimum
    duplicate_lines: float  # maximum share of lines that repeat an earlier one
    top_ngrams: tuple[float, float, float]  # n = 2, 3, 4: maximum share of characters
    duplicate_ngrams: tuple[float, float, float, float, float, float]  # n = 5 to 10, the same
    mean_word_length: tuple[float, float]  # minimum, maximum
    alphabetic_words: float  # minimum share; the files call it max_non_alpha_words_ratio
    terminal_lines: float  # minimum share of lines that end in punctuation
    newlines_per_word: float  # maximum
    stop_words: tuple[str, ...]
    duplicate_line_characters: float = 0.1  # maximum share; FineWeb 0.01, changed in the script
    short_lines: float | None = None  # maximum share of lines of up to 30 characters
    duplicate_paragraphs: float | None = None  # maximum share
    duplicate_paragraph_characters: float | None = None  # maximum share
    gopher_duplicate_line_characters: float | None = None  # maximum share, Gopher's table A1
    words: tuple[int, int] = (50, 100_000)  # minimum, maximum
    min_stop_words: int = 2  # distinct ones


FINEWEB2: dict[str, FineWeb2Language] = {
    "en": FineWeb2Language(
        language_score=0.65,
        duplicate_lines=0.3,
        top_ngrams=(0.2, 0.18, 0.16),
        duplicate_ngrams=(0.15, 0.14, 0.13, 0.12, 0.11, 0.1),
        mean_word_length=(3, 10),
        alphabetic_words=0.8,
        terminal_lines=0.12,
        newlines_per_word=0.3,
        stop_words=("the", "be", "to", "of", "and", "that", "have", "with"),
        duplicate_line_characters=0.01,
        short_lines=0.67,
        duplicate_paragraphs=0.3,
        duplicate_paragraph_characters=0.2,
        gopher_duplicate_line_characters=0.2,
    ),
    "fr": FineWeb2Language(
        language_score=0.824,
        duplicate_lines=0.264,
        top_ngrams=(0.161, 0.149, 0.134),
        duplicate_ngrams=(0.15, 0.141, 0.131, 0.121, 0.111, 0.1),
        mean_word_length=(2, 11),
        alphabetic_words=0.812,
        terminal_lines=0.1,
        newlines_per_word=0.185,
        stop_words=_words("de la le et à en l' des du les est d' un une il dans par au"),
    ),
    "de": FineWeb2Language(
        language_score=0.821,
        duplicate_lines=0.263,
        top_ngrams=(0.169, 0.153, 0.137),
        duplicate_ngrams=(0.141, 0.134, 0.126, 0.117, 0.108, 0.098),
        mean_word_length=(0, 15),
        alphabetic_words=0.774,
        terminal_lines=0.0,
        newlines_per_word=0.152,
        stop_words=_words("der und die in von im den des mit das er dem als wurde für"),
    ),
    "es": FineWeb2Language(
        language_score=0.84,
        duplicate_lines=0.252,
        top_ngrams=(0.156, 0.14, 0.125),
        duplicate_ngrams=(0.145, 0.136, 0.127, 0.117, 0.108, 0.099),
        mean_word_length=(3, 14),
        alphabetic_words=0.825,
        terminal_lines=0.182,
        newlines_per_word=0.138,
        stop_words=_words("de la en el y a que del los se por un con una las su"),
    ),
    "zh": FineWeb2Language(
        language_score=0.692,
        duplicate_lines=0.287,
        top_ngrams=(0.256, 0.201, 0.171),
        duplicate_ngrams=(0.198, 0.182, 0.167, 0.154, 0.14, 0.127),
        mean_word_length=(1, 5),
        alphabetic_words=0.735,
        terminal_lines=0.106,
        newlines_per_word=0.178,
        stop_words=_words("的 年 在 月 是 和 日 了 於 · 為 有 被 人 中 为 他 與 後 也 而 由"),
    ),
    "ja": FineWeb2Language(
        language_score=0.886,
        duplicate_lines=0.328,
        top_ngrams=(0.239, 0.196, 0.172),
        duplicate_ngrams=(0.243, 0.225, 0.207, 0.19, 0.175, 0.159),
        mean_word_length=(1, 6),
        alphabetic_words=0.759,
        terminal_lines=0.096,
        newlines_per_word=0.13,
        stop_words=_words("の に を は た て が と で 年 し ・ 月 れ さ"),
    ),
    "ru": FineWeb2Language(
        language_score=0.9,
        duplicate_lines=0.322,
        top_ngrams=(0.184, 0.164, 0.146),
        duplicate_ngrams=(0.168, 0.156, 0.145, 0.133, 0.121, 0.109),
        mean_word_length=(3, 11),
        alphabetic_words=0.713,
        terminal_lines=0.231,
        newlines_per_word=0.139,
        stop_words=_words(
            "в и на с года по году из был к не от что за для его как а он также до после"
        ),
    ),
}
