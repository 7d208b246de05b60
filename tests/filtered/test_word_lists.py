"""Listed words are counted as a plain Python reference counts them."""

import pickle
import unicodedata

from prelude import Path, given, json, pl, pytest, settings, st

from assets.filtered import word_lists
from assets.filtered.word_lists import COLUMNS, WordLists, count_listed
from assets.text.buffers import code_point_entries

DATA = Path(word_lists.__file__).parent / "data"
LANGUAGES = json.loads((DATA / "profanity.json").read_text("utf-8"))["languages"]
PROFANITY = {language: tuple(terms) for language, terms in LANGUAGES.items()}
MEDICAL = json.loads((DATA / "medical_vocabulary.json").read_text("utf-8"))["categories"]
LISTS = WordLists(
    stop_words=("the", "of", "don't", "的"),
    profanity={
        "*": ("zut",),
        "en": ("shit", "shits", "bitch", "asshole", "son of a bitch", "of a"),
        "ru": ("сука", "хуй"),
        "zh": ("他妈的",),
    },
    vocabulary={
        "disease": ("heart attack", "heart", "attack of the heart"),
        "who": ("patient", "heart"),
    },
)
SINGLE, WORD = 3 << 25, 1 << 25


def count(text: str, lang: str | None = "en", lists: WordLists = LISTS) -> dict[str, int]:
    frame = count_listed(pl.Series([text]), pl.Series([lang], dtype=pl.String), lists)
    return frame.row(0, named=True)


def profane(text: str, lang: str | None = "en") -> int:
    return count(text, lang, WordLists(profanity=PROFANITY))["profane_words"]


def entry(character: str) -> int:
    point = ord(character)
    if character == "_":
        return 32
    if point < 0x20000:
        return int(code_point_entries()[point])
    return point | SINGLE if point < 0x40000 else 32


def lower(character: str) -> str:
    return chr(entry(character) & 0xFFFFFF)


def is_joined(character: str) -> bool:
    return entry(character) & SINGLE == WORD


def words_of(text: str) -> list[str]:
    words, open_word = [], ""
    for i, character in enumerate(text):
        after = text[i + 1 : i + 2]
        if is_joined(character):
            open_word += lower(character)
        elif character in "'’" and open_word and after and is_joined(after):
            open_word += "'"
        else:
            words += [open_word] if open_word else []
            words += [lower(character)] if entry(character) & SINGLE == SINGLE else []
            open_word = ""
    return words + ([open_word] if open_word else [])


def hits(words: list[str], terms: list[str]) -> list[tuple[str, ...]]:
    """Find the longest terms, left to right, without overlap."""
    listed, found, end = {tuple(words_of(term)) for term in terms}, [], 0
    for i in range(len(words)):
        fitting = [term for term in listed if tuple(words[i : i + len(term)]) == term]
        if fitting and i >= end:
            found.append(max(fitting, key=len))
            end = i + len(found[-1])
    return found


def with_parts(words: list[str], terms: list[str], starts: set[str]) -> list[tuple[str, ...]]:
    found, listed = hits(words, terms), {term for term in terms if len(words_of(term)) == 1}
    known = {term for term in starts if term in ALL_SINGLE or term in ALL_FIRST}
    for word in words:
        if "'" in word and word not in known:
            part = next((part for part in word.split("'")[:2] if part in known), "")
            found += [(part,)] if part in listed else []
    return found


EVERY_TERM = [
    *LISTS.stop_words,
    *(term for group in (LISTS.profanity, LISTS.vocabulary) for v in group.values() for term in v),
]
ALL_SINGLE = {term for term in EVERY_TERM if len(words_of(term)) == 1}
ALL_FIRST = {words_of(term)[0] for term in EVERY_TERM}


def reference(text: str, lang: str | None) -> dict[str, int]:
    words = words_of(text)
    plain = [t for k, v in LISTS.profanity.items() if k in ("*", "en", lang) or not lang for t in v]
    stops = [term[0] for term in with_parts(words, list(LISTS.stop_words), ALL_FIRST)]
    terms = [term for group in LISTS.vocabulary.values() for term in group]
    found = with_parts(words, terms, ALL_FIRST)
    names = {" ".join(term) for term in found}
    return {
        "list_words": len(words),
        "distinct_stop_words": len(set(stops)),
        "stop_words": len(stops),
        "profane_words": len(with_parts(words, plain, ALL_FIRST)),
        "vocabulary_words": sum(map(len, found)),
        "vocabulary_categories": sum(not names.isdisjoint(v) for v in LISTS.vocabulary.values()),
    }


PIECES = [
    *("the", "The", "don't", "don’t", "of", "a", "son of a bitch", "heart", "attack", "patient's"),
    *("sh1t", "SHIT", "shiiit", "shiit", "b*tch", "s#it", "s**t", "a$$h0le", "a$$$$hole", "сука"),
    *("с*ка", "суука", "сууука", "СУУУКА", "s.h.i.t", "s-h-i-t", "s h i t", "他妈的", "的", "s"),
    *(" ", " ", "  ", "\n", "_", "'", "’", "!", "*", "$", ".", "1", "0", "é", "\u0301", "x" * 38),
    *("zut", "l'zut", "zut'the", "漢", "한", "😀", "\U00020000", "—", "İ", "ς", "\x00", "٣"),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join)


@pytest.mark.slow
@settings(max_examples=400)
@given(TEXTS, st.sampled_from(["en", "ru", "zh", "fi", None]))
def test_counts_are_those_of_the_reference(text: str, lang: str | None) -> None:
    assert count(text, lang) == reference(text, lang)


@settings(max_examples=50)
@given(st.lists(st.tuples(TEXTS, st.sampled_from(["en", "ru", None])), max_size=8))
def test_a_row_does_not_depend_on_its_neighbours(rows: list[tuple[str, str | None]]) -> None:
    texts = pl.Series([text for text, _ in rows], dtype=pl.String)
    langs = pl.Series([lang for _, lang in rows], dtype=pl.String)

    assert count_listed(texts, langs, LISTS).to_dicts() == [count(*row) for row in rows]


def test_two_sets_of_lists_are_counted_in_one_pass() -> None:
    others = WordLists(stop_words=("heart",), vocabulary={"own": ("of the", "attack")})
    texts = pl.Series(["Attack of the heart, son of a bitch", "x " * 2045 + "of the heart", ""])
    langs = pl.Series(["en", None, "fr"])

    both, own, other = (
        count_listed(texts, langs, *lists) for lists in ((LISTS, others), (LISTS,), (others,))
    )

    assert both.select(COLUMNS).equals(own)
    assert both["other_stop_words"].to_list() == other["stop_words"].to_list() == [1, 1, 0]
    assert both["other_vocabulary_words"].to_list() == other["vocabulary_words"].to_list()


@pytest.mark.parametrize("size", [2046, 2047, 2048, 2049, 4095])
def test_a_phrase_is_found_across_the_kernels_buffers(size: int) -> None:
    counts = count("x " * (size - 3) + "attack of the heart don't " + "y " * 5)

    assert counts["vocabulary_words"] == 4
    assert counts["list_words"] == size + 7


@pytest.mark.parametrize(
    "text",
    [
        *("as", "a$$ets", "Scunthorpe", "class", "assess", "cocktail", "4ss", "$5", "b@sic", "a*b"),
        *("i++", "x**y", "**kwargs", "*args", "a@host.com", "0x5h17", "utf8", "http://www.x.io"),
        *("a b c d", "U.S.A.F.", "Mississippi", "hmmmm", "s h i", "f.u.c-k", "fuc*"),
        *("C#", "sha1", "1,000", "Dick", "shiitake", "Essex", "Penistone", "analysis",),
        *("Matsushita", "****", "$$$$", "f_u.c.k", "i**e", "f***", "5hit", "f u c king"),
    ],
)  # fmt: skip
def test_ordinary_text_is_not_profane(text: str) -> None:
    assert profane(text) == profane(text, None) == 0


@pytest.mark.parametrize("lang", sorted(PROFANITY))
def test_every_listed_term_is_found_in_its_language(lang: str) -> None:
    assert all(profane(f"a {term}.", lang) >= 1 for term in PROFANITY[lang])


def test_lists_apply_to_their_language_and_english_to_all() -> None:
    assert profane("putain", "fr") == profane("putain", "fr-CA") == profane("putain", None) == 1
    assert profane("putain", "de") == 0
    assert profane("shit", "de") == profane("shit", "fi") == 1
    assert profane("你这个王八蛋去死", "zh") == 1  # without spaces
    assert profane("l'enculé, d’enculé", "fr") == 2  # before and after an apostrophe


def test_the_longest_term_counts_and_its_words_once_and_stop_words_each_time() -> None:
    counts = count("Heart attack! The HEART? An attack of the heart.")
    assert (counts["vocabulary_words"], counts["vocabulary_categories"]) == (7, 2)
    assert count("The patient's heart")["vocabulary_words"] == 2
    counts = count("The the of DON’T don't bathe")
    assert (counts["distinct_stop_words"], counts["stop_words"]) == (3, 5)


@pytest.mark.parametrize("text", ["", " ", "\n", "'", "\u0301", "😀", "\x00", "*", "a_b", "'a'"])
def test_edge_texts(text: str) -> None:
    assert count(text) == reference(text, "en")


def test_no_rows_give_the_columns_and_no_lists_count_words_only() -> None:
    empty = pl.Series([], dtype=pl.String)

    assert count_listed(empty, empty, LISTS).schema == dict.fromkeys(COLUMNS, pl.Int64)
    assert list(count("the shit sh1t", "en", WordLists()).values()) == [3, 0, 0, 0, 0, 0]


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="has 0 words"):
        count("a", "en", WordLists(stop_words=("?",)))
    with pytest.raises(ValueError, match="at most 60"):
        count("a", "en", WordLists(vocabulary={str(i): ("a",) for i in range(61)}))


def test_sixty_categories_are_told_apart() -> None:
    lists = WordLists(vocabulary={f"c{i}": (f"w{i}", "all") for i in range(60)})

    assert count("w0 w59", "en", lists)["vocabulary_categories"] == 2
    assert count("all", "en", lists)["vocabulary_categories"] == 60


def test_lists_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(LISTS)) == LISTS


@pytest.mark.parametrize(
    "piece", ["*", "a*", "a1", "s h i t ", "s.", "a", "sh1t", "'a", "漢", "b*tc ", "é", "a'", "\n"]
)
def test_a_long_text_takes_linear_time(piece: str) -> None:
    counts = count(piece * (5_000_000 // len(piece.encode())))

    assert counts["profane_words"] in (0, counts["list_words"] // 4)


def test_the_lists_are_clean() -> None:
    for terms in [*PROFANITY.values(), *MEDICAL.values()]:
        assert len(terms) == len(set(terms)) >= 25
        assert all(term == unicodedata.normalize("NFC", term).strip() for term in terms)


def test_words_of_two_scripts_with_equal_sums_are_told_apart() -> None:
    listed, other = "\u0430\u0671", "\u0431\u0576"  # 251 a + b is the same of both
    lists = WordLists(vocabulary={"own": (listed,)})
    assert count(f"{listed} {other}", lists=lists)["vocabulary_words"] == 1


def test_a_word_is_the_same_whatever_path_reads_it() -> None:
    word = "antidisestablishmentarianism1"
    lists = WordLists(vocabulary={"own": (word,)})
    texts = [word, f"{word} {'x ' * 99}", f"é {word.upper()} é{' x' * 99}", "a b " * 40 + word]
    assert [count(text, lists=lists)["vocabulary_words"] for text in texts] == [1, 1, 1, 1]
