"""Count listed words in each text: stop words, profanity, and the vocabulary of a domain.

A *word* is a maximal run of letters, digits and marks; an apostrophe (' or ’) between two of them
belongs to it, an underscore does not. Han, kana, Thai, Lao, Khmer and Myanmar characters are words
of their own, so that a list entry in these scripts is a phrase of them. Words are compared in lower
case, one code point for each. A *term* is one word or a phrase of up to 16, with anything between
its words; in each list the longest term at a place counts, and terms of a list do not overlap. A
word with an apostrophe that begins no term counts by its first listed part, before or after the
first apostrophe ("patient's", "l'enculé").

Trade-off: no stemming and no morphology, and no spellings in disguise ("sh1t", "f*ck"): lists name
the forms.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import code_point_entries, text_buffers
from assets.text.table_rows import table_of

if TYPE_CHECKING:
    from assets.filtered.kernels.term_table import Tables

EVERY_LANGUAGE = "*"
LEAKING_LANGUAGE = "en"  # English words turn up in texts of every language
COLUMNS = (
    "list_words",
    "distinct_stop_words",
    "stop_words",
    "profane_words",
    "vocabulary_words",
    "vocabulary_categories",
)
OTHER_COLUMNS = ("stop_words", "vocabulary_words", "vocabulary_categories")
MAX_LISTS = 60  # one bit of a 64-bit integer each

Groups = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class WordLists:
    """Lists of terms to look up."""

    stop_words: tuple[str, ...] = ()
    profanity: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # language or "*" to terms
    vocabulary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # category to terms


NO_LISTS = WordLists()


def count_listed(
    texts: pl.Series, langs: pl.Series, lists: WordLists, others: WordLists | None = None
) -> pl.DataFrame:
    """Count the listed words of each text (String, no nulls); `langs`: language code or null.

    Out, Int64, one row per text:

    list_words: words in all. distinct_stop_words, stop_words: listed ones, each once or each time.
    profane_words: terms of the text's language, of English and of "*"; of all lists if the language
    is null. A phrase counts as one.
    vocabulary_words: words that belong to a term. vocabulary_categories: those with a hit.
    other_stop_words, other_vocabulary_words: those of `others`, in the same pass, which takes half
    the time of two. other_vocabulary_categories: a bit for each one with a hit, by their names.
    Of a language code the part before "-" or "_" counts. ValueError: a term of no word or of more
    than 16, or more than 60 languages or categories.
    """
    from assets.filtered.kernels.listed_words import count_words

    tables = (_tables_of(lists), _tables_of(others or NO_LISTS))
    data, offsets = text_buffers(texts.rechunk())
    bits = _language_bits(langs, sorted(lists.profanity))
    counts = count_words(data, offsets, _character_table(), tables, bits)
    frame = table_of(counts[:, 0], COLUMNS)
    frame = frame.with_columns(pl.col(COLUMNS[-1]).bitwise_count_ones().cast(pl.Int64))
    if others is None:
        return frame
    places = {f"other_{name}": COLUMNS.index(name) for name in OTHER_COLUMNS}
    return frame.hstack([pl.Series(name, counts[:, 1, i]) for name, i in places.items()])


def _tables_of(lists: WordLists) -> "Tables":
    return _tables(lists.stop_words, _groups(lists.profanity), _groups(lists.vocabulary))


def _groups(lists: Mapping[str, Iterable[str]]) -> Groups:
    if len(lists) > MAX_LISTS:
        raise ValueError(f"{len(lists)} lists of words given, at most {MAX_LISTS} fit. Merge some.")
    return tuple((name, tuple(lists[name])) for name in sorted(lists))


def _language_bits(langs: pl.Series, languages: list[str]) -> NDArray[np.uint64]:
    """Return bits of the lists for each text, uint64 [n]; all if its language is unknown."""
    every = sum(
        1 << i for i, name in enumerate(languages) if name in (EVERY_LANGUAGE, LEAKING_LANGUAGE)
    )
    own = {name: every | 1 << i for i, name in enumerate(languages)}
    lang = pl.col("lang").cast(pl.String)
    base = lang.str.to_lowercase().str.extract(r"^([^-_]*)")
    applied = base.replace_strict(own, default=every, return_dtype=pl.UInt64)
    unknown = pl.lit((1 << len(languages)) - 1, pl.UInt64)
    bits = pl.when(lang.is_null()).then(unknown).otherwise(applied)
    return langs.to_frame("lang").select(bits).to_series().to_numpy().astype(np.uint64)


@cache
def _character_table() -> NDArray[np.uint32]:
    """Return deduplication's table of characters, without the underscore and with apostrophes."""
    from assets.filtered.kernels.term_table import APOSTROPHE
    from assets.text.kernels.words import BLANK

    table = code_point_entries() & np.uint32(0x7FFFFFF)
    table[ord("_")] = BLANK
    table[[ord("'"), ord("’")]] = BLANK | APOSTROPHE
    return table


@lru_cache(maxsize=8)
def _tables(stop_words: tuple[str, ...], profanity: Groups, vocabulary: Groups) -> "Tables":
    """Build the kernel's tables, once per set of lists."""
    from assets.filtered.kernels.term_table import FILTER_BITS, PREFIX, Tables

    terms = list(_entered_terms(stop_words, profanity, vocabulary))
    size = 1 << (4 * sum(len(words) for words, *_ in terms) + 4).bit_length()
    tables = Tables(
        keys=np.zeros(size, np.uint64),
        kinds=np.zeros(size, np.uint8),
        stop_ids=np.full(size, -1, np.int64),
        profane=np.zeros(size, np.uint64),
        vocabulary=np.zeros(size, np.uint64),
        bits=np.zeros((1 << FILTER_BITS) // 8, np.uint8),
        num_stop_words=len(stop_words),
        max_words=max((len(words) for words, *_ in terms), default=0),
    )
    for words, stop_id, profane, category in terms:
        slots = _enter_term(words, tables)
        tables.kinds[slots[:-1]] |= PREFIX
        if stop_id >= 0:
            tables.stop_ids[slots[-1]] = stop_id
        tables.profane[slots[-1]] |= np.uint64(profane)
        tables.vocabulary[slots[-1]] |= np.uint64(category)
    return tables


Entered = tuple[list[np.uint64], int, int, int]


def _entered_terms(
    stop_words: tuple[str, ...], profanity: Groups, vocabulary: Groups
) -> Iterator[Entered]:
    """Yield the word hashes of each term, its stop word number (or -1), language and category."""
    for number, words in enumerate(_hashed(stop_words)):
        yield words, number, 0, 0
    for i, (_, terms) in enumerate(profanity):
        yield from ((words, -1, 1 << i, 0) for words in _hashed(terms))
    for i, (_, terms) in enumerate(vocabulary):
        yield from ((words, -1, 0, 1 << i) for words in _hashed(terms))


def _hashed(terms: tuple[str, ...]) -> Iterator[list[np.uint64]]:
    from assets.filtered.kernels.listed_words import word_hashes
    from assets.filtered.kernels.term_table import MAX_TERM_WORDS

    normal = pl.Series([unicodedata.normalize("NFC", term) for term in terms], dtype=pl.String)
    hashes, offsets = word_hashes(*text_buffers(normal), _character_table())
    for term, start, stop in zip(terms, offsets[:-1], offsets[1:], strict=True):
        if not 0 < stop - start <= MAX_TERM_WORDS:
            raise ValueError(
                f"{term=} has {stop - start} words, a listed term has 1 to {MAX_TERM_WORDS}. "
                "Shorten or remove it."
            )
        yield list(hashes[start:stop])


def _enter_term(words: list[np.uint64], tables: "Tables") -> list[int]:
    """Enter a term and its beginnings; return their slots."""
    from assets.filtered.kernels.term_table import chained, enter

    key = words[0]
    slots = [enter(key, tables.keys, tables.bits, True)]
    for word in words[1:]:
        key = np.uint64(chained(key, word))
        slots.append(enter(key, tables.keys, tables.bits, False))
    return slots
