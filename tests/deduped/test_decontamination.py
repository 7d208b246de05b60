"""Hits of evaluation items in documents, against a slow and obvious reference."""

import unicodedata

from many_examples import many_examples
from prelude import Any, ValidationError, assert_frame_equal, example, given, pl, pytest, st

from assets.deduped.decontamination.contamination import (
    HITS,
    find_contamination,
    is_contaminated,
    tag_documents,
)
from assets.deduped.decontamination.evaluation_index import (
    ITEMS_PER_NGRAM,
    EvaluationIndex,
    build_index,
)
from resources.settings.decontamination import DecontaminationConfig

QUESTION = (
    "A train leaves the old station at noon, and travels sixty miles an hour. How far has it "
    "gone by half past two?"
)
CHINESE = "机器学习是人工智能的一个分支。深度学习是机器学习的分支！"
TALE = " ".join(f"word{i} and" for i in range(3000))
MODES = ["5-words", "13-words", "8-words", "50-characters"]


def config(**changes: Any) -> DecontaminationConfig:
    return DecontaminationConfig.model_validate(
        {"sets": [{"name": "quiz", "where": "quiz.jsonl"}]} | changes
    )


def items(*texts: str | None, of: str = "quiz") -> pl.DataFrame:
    names = [str(i) for i in range(len(texts))]
    return pl.DataFrame(
        {"set": [of] * len(texts), "item": names, "text": texts},
        schema=dict.fromkeys(("set", "item", "text"), pl.String),
    )


def documents(*texts: str | None) -> pl.DataFrame:
    names = [f"{i:032x}" for i in range(len(texts))]
    return pl.DataFrame({"doc_id": names, "text": pl.Series(texts, dtype=pl.String)})


def index_of(table: pl.DataFrame, used: DecontaminationConfig, bits: int = 64) -> EvaluationIndex:
    return build_index(table, used.ngram, used.min_item_words, key_bits=bits)


def find(docs: pl.DataFrame, table: pl.DataFrame, used: DecontaminationConfig) -> pl.DataFrame:
    return find_contamination(docs, index_of(table, used), used)


def words_of(text: str) -> list[tuple[str, int, int]]:
    """(lower-case word, first byte, byte after it): Latin letters and Han only."""
    words: list[tuple[str, int, int]] = []
    at, is_open = 0, False
    for character in text:
        width = len(character.encode())
        is_single = unicodedata.name(character, "").startswith("CJK UNIFIED")
        is_word = character.isalnum()
        if is_word and is_open and not is_single:
            word, first, _ = words[-1]
            words[-1] = (word + character.lower(), first, at + width)
        elif is_word:
            words.append((character.lower(), at, at + width))
        is_open = is_word and not is_single
        at += width
    return words


def units_of(text: str, used: DecontaminationConfig) -> list[tuple[str, int, int]]:
    if used.ngram.unit == "words":
        return words_of(text)
    characters = []
    for word, first, _ in words_of(text):
        for character in word:
            characters.append((character, first, first + len(character.encode())))
            first += len(character.encode())
    return characters


def ngrams_of(text: str, used: DecontaminationConfig) -> dict[tuple[str, ...], int]:
    """Each n-gram of an item, and its first unit."""
    units = [unit for unit, _, _ in units_of(text, used)]
    if len(words_of(text)) < max(1, used.min_item_words):
        return {}
    size = min(used.ngram.size, len(units))
    starts = reversed(range(len(units) - size + 1))
    ngrams = {tuple(units[i : i + size]): i for i in starts}
    if used.ngram.unit == "characters":
        return ngrams
    return {n: i for n, i in ngrams.items() if len(" ".join((*n, "")).encode()) >= 2.4 * len(n)}


def covered_by(ngrams: dict[tuple[str, ...], int]) -> set[int]:
    return {i for ngram, at in ngrams.items() for i in range(at, at + len(ngram))}


def expected_hits(
    docs: list[str], table: list[str], used: DecontaminationConfig
) -> list[tuple[Any, ...]]:
    """(document, item, n-grams, units, share, start, stop) by comparing every window and n-gram."""
    hits = []
    for row, text in enumerate(docs):
        units = units_of(text, used)
        for number, item in enumerate(table):
            ngrams, length = ngrams_of(item, used), len(units_of(item, used))
            if not units or not ngrams:
                continue
            stretches = []
            for start in range(-length, len(units), length):
                found = {}
                for i in reversed(range(max(0, start), min(len(units), start + 2 * length))):
                    for ngram in ngrams:
                        if tuple(unit for unit, _, _ in units[i : i + len(ngram)]) == ngram:
                            found[ngram] = i
                stretches.append(found)
            best = max(stretches, key=lambda found: len(covered_by(at_item(found, ngrams))))
            covered = len(covered_by(at_item(best, ngrams)))
            if covered >= used.min_item_words:
                first, last = min(best.values()), max(i + len(ngram) for ngram, i in best.items())
                place = units[first][1], units[last - 1][2]
                share = covered / len(covered_by(ngrams))
                hits.append((f"{row:032x}", str(number), len(best), covered, share, *place))
    return hits


def at_item(
    found: dict[tuple[str, ...], int], ngrams: dict[tuple[str, ...], int]
) -> dict[tuple[str, ...], int]:
    return {ngram: ngrams[ngram] for ngram in found}


texts = st.lists(st.sampled_from(["a", "be", "BE,", "é", "中", "中文", "-", "."]), max_size=14).map(
    " ".join
)


@pytest.mark.slow
@given(
    st.lists(texts, max_size=4),
    st.lists(texts, max_size=4),
    st.sampled_from(["words", "characters"]),
    st.integers(1, 5),
    st.integers(1, 4),
)
@example(["a b a b"], ["a a"], "characters", 2, 1)
@example(["a b", "", "b a b a b a"], ["a b a", "b a b"], "words", 3, 2)
@many_examples(150)
def test_hits_equal_the_reference(
    docs: list[str], table: list[str], unit: str, size: int, min_words: int
) -> None:
    used = config(ngram={"unit": unit, "size": size}, min_item_words=min_words)

    columns = ["doc_id", "item", "num_ngrams", "num_units", "item_share", "start", "stop"]
    for bits in (64, 1, 4):  # hashes of a bit collide all the time: the words decide
        index = index_of(items(*table), used, bits)
        found = find_contamination(documents(*docs), index, used)
        assert found.select(columns).rows() == expected_hits(docs, table, used)


@pytest.mark.parametrize("mode", MODES)
def test_a_planted_question_is_found_in_its_place(mode: str) -> None:
    planted = QUESTION.upper().replace(", ", " — ")
    text = f"{TALE} ünd? “{planted}” {TALE}"

    found = find(
        documents(TALE, text), items("an unrelated item of " * 9, QUESTION), config(ngram=mode)
    )

    begin = len(text[: text.index(planted)].encode())
    end = begin + len(planted.rstrip("?").encode())
    row = found.row(0, named=True)
    assert found.height == 1
    assert (row["doc_id"], row["set"], row["item"]) == (f"{1:032x}", "quiz", "1")
    assert (row["start"], row["stop"], row["item_share"]) == (begin, end, 1.0)
    assert row["passage"] == planted.rstrip("?")


@pytest.mark.parametrize("mode", MODES)
def test_a_question_of_scripts_without_spaces_is_found(mode: str) -> None:
    text = f"ไทย 机器 学习 {CHINESE} поезд"

    found = find(documents(text), items(CHINESE), config(ngram=mode))

    assert found["passage"].to_list() == [CHINESE.rstrip("！")]


def test_a_passage_is_cut_at_300_characters_not_bytes() -> None:
    item = "é" * 5 + " " + " ".join(f"ü{i}" for i in range(100, 300))

    found = find(documents(item), items(item), config())

    assert found["passage"][0] == item[:300]
    assert found["stop"][0] == len(item.rstrip().encode())


def test_one_changed_word_in_every_twelve_hides_a_question() -> None:
    words = [f"w{i}" for i in range(40)]
    changed = [f"x{i}" if i % 13 == 12 else word for i, word in enumerate(words)]
    less = [f"x{i}" if i % 14 == 13 else word for i, word in enumerate(words)]

    docs = documents(" ".join(changed), " ".join(less))
    found = find(docs, items(" ".join(words)), config(ngram="13-words"))

    assert found["doc_id"].to_list() == [f"{1:032x}"]
    assert found["num_ngrams"].to_list() == [2]


def test_items_shorter_than_an_ngram_are_whole_or_counted() -> None:
    used = config(ngram="13-words")
    index = index_of(items("one two three four five six seven eight", "too short", "", None), used)

    docs = documents("ONE two-three four five six seven eight!", "too short")
    found = find_contamination(docs, index, used)

    assert index.items["num_ngrams"].to_list() == [1, 0, 0, 0]
    assert index.items["reason"].to_list() == [None, "too_short", "too_short", "too_short"]
    assert found.select("doc_id", "item", "item_share").rows() == [(f"{0:032x}", "0", 1.0)]


@pytest.mark.parametrize(
    ("between", "form"),
    [
        (" ", "soft\u00adware"),
        ("&nbsp;", "software"),
        (" ", "soft-\nware"),
        (" <b>", "software"),
        (" ", "\uff53oftware"),
        ("\u200b ", "software"),
    ],
)
def test_no_form_of_a_text_hides_an_item(between: str, form: str) -> None:
    words = [f"word{i}" for i in range(15)] + ["Software"]
    before, text = "Caf\u00e9 &amp; \u00ad more.\n", between.join([*words[:-1], form])

    found = find(documents(f"{before}{text}\nThe end."), items(" ".join(words)), config())

    start = len(before.encode())
    assert found["num_ngrams"].to_list() == [12]
    assert found.select("start", "stop").rows() == [(start, start + len(text.encode()))]
    assert found["passage"].to_list() == [text]


def test_an_ngram_of_many_items_belongs_to_the_first_of_them() -> None:
    template = "Which of the following statements about the text above is the one that holds"
    table = [f"{template} {i}" for i in range(ITEMS_PER_NGRAM + 20)]
    table += [template]

    used = config(ngram="13-words")
    index = index_of(items(*table), used)
    found = find_contamination(documents(f"{template}: none"), index, used)

    assert found.height == ITEMS_PER_NGRAM
    assert index.items["num_ngrams"].to_list() == [3] * ITEMS_PER_NGRAM + [1] * 20 + [0]
    assert index.items["reason"][-1] == "repeated"


def test_an_item_that_repeats_itself_counts_each_ngram_once() -> None:
    used, item = config(ngram="13-words"), items("na " * 50_000)
    index = index_of(item, used)

    found = find_contamination(documents("na " * 50_000), index, used)

    assert index.ngrams.height == 1
    assert found.select("num_ngrams", "item_share", "start", "stop").row(0) == (1, 1, 0, 38)
    assert index_of(item, config()).items["reason"].to_list() == ["repeated"]


def test_signs_are_in_no_ngram() -> None:
    matrix = "Let A be [[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1], [0, 0, 1, 1]]. "

    found = find(documents(matrix), items(f"{matrix} Which of these is its inverse?"), config())

    assert found.is_empty()


WORDS = [f"word{i}" for i in range(40)]


@pytest.mark.parametrize(
    ("words", "is_enough"),
    [
        ([*WORDS[:16], "and"], True),  # two fifths, cut
        ([*WORDS[:15], "and"], False),
        ([f"x{i}" if i % 10 == 7 else word for i, word in enumerate(WORDS)], True),
        ([f"x{i}" if i % 5 == 2 else word for i, word in enumerate(WORDS)], None),
        ([*WORDS[30:], *WORDS[20:30]], True),  # in another order
        ([*WORDS[:8], *("else " * 200).split(), *WORDS[8:16]], False),  # too far apart
        (WORDS[:8], False),
        (WORDS[:7], None),
    ],
)
def test_a_document_is_contaminated_by_enough_of_an_item(
    words: list[str], is_enough: bool | None
) -> None:
    found = find(documents(f"{TALE} {' '.join(words)} ."), items(" ".join(WORDS)), config())

    enough = found.select(is_contaminated(config())).to_series().to_list()
    assert enough == ([] if is_enough is None else [is_enough])


@pytest.mark.parametrize("label", ["A. ", "1) ", "(a) ", "- "])
def test_choices_are_found_under_other_labels(label: str) -> None:
    choices = [" ".join(WORDS[i : i + 5]) for i in range(0, 40, 5)]
    table = items("\n".join(["What is the name of it, then?", *choices]))

    found = find(documents("\n".join(label + choice for choice in choices)), table, config())

    assert found.select(is_contaminated(config())).to_series().to_list() == [True]


@pytest.mark.parametrize("mode", MODES)
def test_a_document_of_fifty_megabytes(mode: str) -> None:
    text = TALE * (50_000_000 // len(TALE)) + f". {QUESTION}"

    found = find(documents(text), items(QUESTION), config(ngram=mode))

    assert found.select("start", "stop").row(0) == (text.index("A train"), len(text) - 1)


def test_no_items_and_no_documents_give_no_hits() -> None:
    empty = pl.DataFrame(schema=HITS)

    assert_frame_equal(find(documents(QUESTION, None, ""), items(), config()), empty)
    assert_frame_equal(find(documents(), items(QUESTION), config()), empty)
    assert_frame_equal(find(documents(None, "?!"), items(QUESTION), config()), empty)


def test_the_index_depends_on_nothing_but_the_items() -> None:
    table = items(*(f"{QUESTION} {CHINESE} {i}" for i in range(30)))

    first, again = index_of(table, config()), index_of(table, config())

    assert_frame_equal(first.items, again.items)
    assert_frame_equal(first.ngrams, again.ngrams)
    assert_frame_equal(first.filter, again.filter)
    assert_frame_equal(first.ngrams, first.ngrams.sort("is_whole", "key", "item"))


HITS_OF_TWO = pl.DataFrame(
    {
        "doc_id": ["a", "a", "b", "c", "c"],
        "set": ["quiz", "exam", "quiz", "exam", "exam"],
        "num_ngrams": [1, 5, 2, 1, 9],
        "item_share": [0.1, 0.5, 0.9, 1.0, 0.2],
    }
)


@pytest.mark.parametrize(
    ("changes", "ids"),
    [
        ({}, ["a", "b", "c"]),
        ({"min_share": 0, "min_hits": 3}, ["a", "c"]),  # c: the item has no more n-grams
        ({"min_share": 0.7}, ["b", "c"]),
        ({"min_hits": 2, "min_share": 1}, ["c"]),
    ],
)
def test_documents_need_enough_hits_of_one_item(changes: dict[str, Any], ids: list[str]) -> None:
    found = HITS_OF_TWO.filter(is_contaminated(config(**changes)))

    assert found["doc_id"].unique(maintain_order=True).to_list() == ids


def test_tags_name_the_sets() -> None:
    docs = pl.DataFrame({"doc_id": ["c", "x", "a"], "text": ["3", "2", "1"]})

    tagged = tag_documents(docs, HITS_OF_TWO, config(action="tag", min_share=0))

    tags = pl.Series([["exam"], [], ["exam", "quiz"]], dtype=pl.List(pl.String))
    assert_frame_equal(tagged, docs.with_columns(contamination=tags))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ngram": "13 words"}, "not of the form 13-words"),
        ({"ngram": "0-words"}, "greater than or equal to 1"),
        ({"ngram": "999-characters"}, "less than or equal to 200"),
        ({"sets": []}, "at least 1"),
        ({"sets": [{"name": "a", "where": "x"}] * 2}, r"each once, got \['a', 'a'\]"),
        ({"sets": [{"name": "../a", "where": "x"}]}, "match pattern"),
        ({"sets": [{"name": "a", "where": "x", "fields": []}]}, "at least 1"),
        ({"min_share": 1.5}, "less than or equal to 1"),
        ({"max_documents": 10}, "Extra inputs"),
    ],
)
def test_a_wrong_config_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(**changes)


def test_only_the_keys_of_the_index_are_in_its_fingerprint() -> None:
    one = config(ngram="8-words", min_hits=3, min_share=0.5, action="tag")
    other = config(ngram={"unit": "words", "size": 8})

    assert one.indexing() == other.indexing() != config().indexing()
