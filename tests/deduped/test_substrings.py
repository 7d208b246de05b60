"""Repeated runs of words: all of them, nothing else, and what a text is without them."""

from prelude import Any, ValidationError, assert_frame_equal, given, pl, pytest, st, time

from assets.deduped.deduped_records import SubstringsNumbers
from assets.deduped.repeats.substrings import (
    candidate_runs,
    cut_spans,
    cut_text,
    distinct_runs,
    fingerprints,
    located_spans,
    longest_spans,
    repeated_words,
    runs_elsewhere,
    shared_picks,
    shared_runs,
)
from assets.deduped.substrings_asset import substrings_markdown
from resources.settings.repeats import SubstringsConfig

Parts = list[list[str]]
texts_of_few_words = st.lists(
    st.lists(st.sampled_from(["a", "b", "ab"]), max_size=14).map(" ".join), max_size=4
)
any_parts = st.lists(texts_of_few_words, min_size=1, max_size=3)
SPAN_SCHEMA = {"doc_id": pl.String, "start": pl.UInt32, "stop": pl.UInt32, "num_words": pl.UInt32}
PASSAGE = " ".join(f"word{i}" for i in range(60))


def documents(*texts: str, first: int = 0) -> pl.DataFrame:
    ids = [f"{first + number:032x}" for number in range(len(texts))]
    return pl.DataFrame(
        {"doc_id": ids, "text": texts}, schema=dict.fromkeys(("doc_id", "text"), pl.String)
    )


def find(
    parts: Parts, config: SubstringsConfig, salts: list[int] | None = None
) -> list[pl.DataFrame]:
    """The spans of each part, as the stage finds them."""
    salts = salts or [0] * len(parts)
    texts = [pl.Series(part, dtype=pl.String) for part in parts]
    picks = [fingerprints(part, config, salt) for part, salt in zip(texts, salts, strict=True)]
    shared = shared_picks(pl.concat(picks))["hash"]
    runs = [
        candidate_runs(part, shared, config, salt) for part, salt in zip(texts, salts, strict=True)
    ]
    shared = shared_runs([distinct_runs(part) for part in runs])
    elsewhere = [runs_elsewhere(shared, number, config.keep_first) for number in range(len(parts))]
    return [
        located_spans(documents(*part), repeated_words(of_part, found, config))
        for part, of_part, found in zip(parts, runs, elsewhere, strict=True)
    ]


def cut(*texts: str, **config: Any) -> list[str]:
    settings = SubstringsConfig(min_words=5, **config)
    table = documents(*texts)
    return cut_spans(table, find([list(texts)], settings)[0], settings)[0]["text"].to_list()


def found_words(parts: Parts, spans: list[pl.DataFrame]) -> list[list[bool]]:
    """Which words of each text lie in its spans; a word is what blanks separate."""
    marked = []
    for part, table in zip(parts, spans, strict=True):
        for number, text in enumerate(part):
            own = table.filter(doc_id=f"{number:032x}")
            edges = list(zip(own["start"], own["stop"], strict=True))
            place, flags = 0, []
            for word in text.split(" ") if text else []:
                flags.append(any(a <= place and place + len(word) <= b for a, b in edges))
                place += len(word) + 1
            marked.append(flags)
    return marked


def repeated_by_definition(parts: Parts, size: int, keep_first: bool) -> list[list[bool]]:
    texts = [text.split() for part in parts for text in part]
    places = [(t, w) for t, text in enumerate(texts) for w in range(len(text) - size + 1)]
    marked = [[False] * len(text) for text in texts]
    for text, word in places:
        run = texts[text][word : word + size]
        for other, at in places:
            is_before = other < text or (other == text and at + size <= word)
            is_after = other > text or (other == text and at - size >= word)
            if (is_before or (is_after and not keep_first)) and texts[other][at : at + size] == run:
                marked[text][word : word + size] = [True] * size
    return marked


@pytest.mark.slow
@given(any_parts, st.integers(3, 6), st.booleans())
def test_what_is_found_equals_the_definition(parts: Parts, size: int, keep_first: bool) -> None:
    config = SubstringsConfig(min_words=size, keep_first=keep_first)

    spans = find(parts, config)

    assert found_words(parts, spans) == repeated_by_definition(parts, size, keep_first)
    for table in spans:
        assert (table["num_words"] >= size).all()
        assert (table["start"] < table["stop"]).all()


@pytest.mark.slow
@given(texts_of_few_words, st.integers(3, 5), st.integers(0, 4))
def test_how_documents_lie_in_parts_does_not_matter(texts: list[str], size: int, at: int) -> None:
    config = SubstringsConfig(min_words=size)

    whole, split = [texts], [texts[:at], texts[at:]]

    assert found_words(whole, find(whole, config)) == found_words(split, find(split, config))


@pytest.mark.slow
@given(texts_of_few_words, st.integers(0, 2**64 - 1))
def test_a_salt_changes_nothing_within_a_source(texts: list[str], salt: int) -> None:
    config = SubstringsConfig(min_words=3)

    assert_frame_equal(find([texts], config, [salt])[0], find([texts], config)[0])


def test_parts_of_other_salts_are_not_compared() -> None:
    config = SubstringsConfig()

    spans = find([[PASSAGE], [PASSAGE], [PASSAGE]], config, [1, 2, 1])

    assert [table.height for table in spans] == [0, 0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "Un  chat, “noir” ÉTAIT là!",
        "机器学习是人工",
        "one\n\ntwo\tthree - four * five",
        "𐐀 ½ x² a\u0301 _b_ 𠀀",
    ],
)
def test_a_run_is_found_whatever_its_case_spacing_and_punctuation(text: str) -> None:
    first, second = f"alpha {text} omega", f"« {text.lower().replace(' ', '  ')} »!"

    spans = find([[first, second]], SubstringsConfig(min_words=4))[0]

    data = second.encode()
    assert spans.height == 1
    left = data[: spans["start"][0]].decode(), data[spans["stop"][0] :].decode()
    assert [part.strip("!* ") for part in left] == ["«", "»"]


def test_a_span_goes_from_its_first_word_to_its_last() -> None:
    texts = ["a b c d e f", 'x, "B c D e." y']

    spans = find([texts], SubstringsConfig(min_words=4))[0]

    expected = pl.DataFrame([(f"{1:032x}", 4, 11, 4)], schema=SPAN_SCHEMA, orient="row")
    assert_frame_equal(spans, expected)


def test_runs_that_overlap_are_one_span() -> None:
    texts = ["a b c d e", "c d e f g", "x a b c d e f g y"]

    spans = find([texts], SubstringsConfig(min_words=3))[0]

    assert spans.select("start", "stop", "num_words").rows() == [(0, 5, 3), (2, 15, 7)]


def test_the_first_occurrence_stays() -> None:
    assert cut("p a b c d e q", "r a b c d e s", "a b c d e") == ["p a b c d e q", "r s", ""]


def test_without_keep_first_all_occurrences_go() -> None:
    assert cut("p a b c d e q", "r a b c d e s", keep_first=False) == ["p q", "r s"]


def test_a_text_that_repeats_itself_keeps_one_run() -> None:
    assert cut("a a a a a a a a a a a") == ["a a a a a"]
    assert cut("a b c d e " * 4) == ["a b c d e"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("one CUT two", "one two"),
        ("one\nCUT\ntwo", "one\ntwo"),
        ("one\n\nCUT two", "one\n\ntwo"),
        ("one (CUT) two", "one () two"),
        ("one CUT, two", "one, two"),
        ("一CUT二", "一 二"),
        ("«CUT»", "«»"),
        ("  CUT two ", "two "),
        (" one  CUT", " one"),
        ("CUT", ""),
        ("CUTCUT é CUT", "é"),
        ("a CUT b CUT c", "a b c"),
    ],
)
def test_what_stands_between_what_is_left(text: str, left: str) -> None:
    data = text.encode()
    starts = [at for at in range(len(data)) if data[at : at + 3] == b"CUT"]

    assert cut_text(text, starts, [at + 3 for at in starts]) == left


def test_changes_count_characters_and_reject_what_shrank_too_much() -> None:
    table = documents("é 12345678", "kept", "", "ab cd")
    spans = pl.DataFrame(
        {"doc_id": table["doc_id"].gather([0, 3, 3]), "start": [3, 0, 3], "stop": [11, 2, 5]}
    )

    kept, changes = cut_spans(table, spans, SubstringsConfig(min_kept_share=0.2))

    assert_frame_equal(kept, table.with_columns(text=pl.Series(["é", "kept", "", ""])))
    expected = {
        "doc_id": table["doc_id"].gather([0, 3]),
        "num_cut": pl.Series([1, 2], dtype=pl.UInt32),
        "cut_chars": pl.Series([9, 5], dtype=pl.UInt32),
        "kept_share": [0.1, 0.0],
        "is_rejected": [True, True],
    }
    assert_frame_equal(changes, pl.DataFrame(expected))


def test_a_document_that_keeps_enough_stays_and_one_that_keeps_nothing_goes() -> None:
    table = documents("a b", "a")
    spans = pl.DataFrame({"doc_id": table["doc_id"], "start": [0, 0], "stop": [1, 1]})

    changes = cut_spans(table, spans, SubstringsConfig(min_kept_share=0))[1]

    assert changes["is_rejected"].to_list() == [False, True]
    assert changes["kept_share"].to_list() == pytest.approx([1 / 3, 0])


def test_nothing_to_cut_and_no_documents() -> None:
    nothing = pl.DataFrame(schema=SPAN_SCHEMA)
    empty = documents()

    kept, changes = cut_spans(empty, nothing, SubstringsConfig())

    assert_frame_equal(kept, empty)
    assert changes.height == 0
    assert find([[], ["", "?!"]], SubstringsConfig())[1].height == 0
    assert longest_spans(empty, nothing) == []


def test_fingerprints_are_those_of_long_texts_only() -> None:
    config = SubstringsConfig(min_words=60)

    picks = fingerprints(pl.Series(["too short", PASSAGE, PASSAGE]), config, 0)

    assert picks.schema == {"hash": pl.UInt64, "count": pl.UInt32}
    assert picks["count"].to_list() == [2]
    assert config.pick_words == 16


def test_a_run_whose_pick_is_unique_is_no_candidate() -> None:
    text = pl.Series([PASSAGE])

    assert candidate_runs(text, pl.Series([7], dtype=pl.UInt64), SubstringsConfig(), 0).height == 0


def test_equal_first_hashes_of_other_runs_are_told_apart() -> None:
    schema = {"hash": pl.UInt64, "second_hash": pl.UInt64}
    runs = [pl.DataFrame([(5, second)], schema, orient="row") for second in (1, 2, 1)]

    shared = shared_runs(runs)

    assert shared.rows() == [(5, 1, 0, 2)]
    assert [len(runs_elsewhere(shared, number, True)) for number in range(3)] == [0, 1, 1]
    assert [len(runs_elsewhere(shared, number, False)) for number in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(
    "texts",
    [["a " * 2_000_000], [PASSAGE] * 20_000, ["a b " * 500_000, "b a " * 500_000]],
    ids=["one word", "copies", "two words"],
)
def test_repetitive_texts_take_linear_time(texts: list[str]) -> None:
    begin = time.process_time()

    spans = find([texts], SubstringsConfig())[0]

    assert time.process_time() - begin < 20  # 1 s; comparing all with all would take hours
    assert spans.height == len(texts) - (len(texts) > 1 and texts[0] == texts[1])


def test_the_longest_spans_are_shown_and_escaped() -> None:
    hostile = "<img src=x> | [link](javascript:1) `x`\n" + PASSAGE
    table = documents("start " + hostile, "then " + hostile, hostile + " " + hostile)
    spans = find([table["text"].to_list()], SubstringsConfig())[0]

    longest = longest_spans(table, spans)
    shown = substrings_markdown(SubstringsNumbers(spans=2, span_bytes=10), 1000, longest + longest)

    assert [(span.times, span.doc_id[-1]) for span in longest] == [(1, "2"), (1, "1")]
    assert longest[0].words == 2 * longest[1].words == 2 * (60 + 7)
    assert "1.00%" in shown and "| 134 | 2 |" in shown
    assert not any(sign in shown for sign in ("<", "[link", "`"))
    assert "x&#62; &#124; &#91;link" in shown


@pytest.mark.parametrize(
    "wrong", [{"min_words": 2}, {"within": "part"}, {"min_kept_share": 2}, {"x": 1}]
)
def test_wrong_config_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SubstringsConfig(**wrong)
