"""Every document is either kept or rejected with all its reasons; the sums always hold."""

from prelude import assert_frame_equal, given, pl, pytest, settings, st

from assets.filtered.filter_documents import count_first_reasons, count_reasons, filter_documents
from resources.settings.filtering.filter_steps import MAX_VALUES
from resources.settings.filtering.filters import FilterConfig

PROSE = (
    "The house of the baker stands by the river, and with it a mill that grinds all day. "
    "Who comes from town has to cross an old bridge, which was built when nobody yet had a car. "
    "In spring the water rises to its arches; then children count the branches floating past."
)
STRICT = FilterConfig.model_validate(
    {
        "language": {"backend": "none"},
        "rules": {
            "gopher_quality": {"min_words": 3, "min_stop_words": 1},
            "gopher_repetition": {},
            "c4": {},
            "fineweb": {"max_short_lines": None},
            "code": {"max_mean_line_length": 500},
        },
    }
)
TEXTS = ["", " \n ", "a", "word", "🙂🙂🙂", "שלום עולם", "日本語日本語。", "a\x00b", "\u0301"]
TEXTS += ["x" * 1_000_000]


def documents(*texts: str, lang: str | None = None) -> pl.DataFrame:
    ids = [f"d{row}" for row in range(len(texts))]
    columns = {"meta": list(range(len(texts))), "lang": [lang] * len(texts)}
    schema = {"meta": pl.Int64, "doc_id": pl.String, "text": pl.String, "lang": pl.String}
    return pl.DataFrame({"doc_id": ids, "text": list(texts), **columns}).select(
        pl.col(name).cast(dtype) for name, dtype in schema.items()
    )


def test_kept_documents_are_normalised_and_keep_their_columns() -> None:
    kept, _ = filter_documents(documents("Cafe\u0301\r\n", "", "x = 1"), FilterConfig())

    assert kept.columns == ["meta", "doc_id", "text", "lang"]
    assert kept.select("meta", "doc_id", "text").rows() == [(0, "d0", "Café"), (2, "d2", "x = 1")]


def test_decisions_hold_reasons_and_scores_of_every_document() -> None:
    config = FilterConfig.model_validate(
        {
            "language": {"backend": "none"},
            "rules": {"length": {"min_chars": 3}, "c4": {}, "language": {"allowed": ["en"]}},
        }
    )

    _, decisions = filter_documents(documents("é{", "long", lang="en"), config)

    expected = {
        "doc_id": ["d0", "d1"],
        "kept": [False, True],
        "reasons": [["length.too_short", "c4.curly_bracket"], []],
        "detected_lang": pl.Series([None, None], dtype=pl.String),
        "lang_score": pl.Series([None, None], dtype=pl.Float64),
        "num_bytes": pl.Series([3, 4], dtype=pl.UInt32),
        "char_count": [2.0, 4.0],
        "lang": ["en", "en"],
        "lorem_ipsum_lines": [0.0, 0.0],
        "curly_bracket_lines": [1.0, 0.0],
    }
    assert_frame_equal(decisions, pl.DataFrame(expected))


@pytest.mark.parametrize(("declared", "expected"), [(None, "en"), ("xx", "xx")])
def test_declared_language_goes_before_the_detected(declared: str | None, expected: str) -> None:
    kept, decisions = filter_documents(documents(PROSE, lang=declared), FilterConfig())

    assert kept["lang"].to_list() == [expected]
    assert decisions["detected_lang"].to_list() == ["en"]


def test_no_rules_keep_everything() -> None:
    config = FilterConfig.model_validate({"rules": {"length": None}})
    kept, decisions = filter_documents(documents(*TEXTS), config)
    assert kept.height == decisions.height == len(TEXTS)
    assert decisions["reasons"].to_list() == [[]] * len(TEXTS)


@pytest.mark.parametrize("config", [FilterConfig(), STRICT], ids=["default", "strict"])
def test_empty_frame_gives_empty_frames_of_the_same_schema(config: FilterConfig) -> None:
    _, some_decisions = filter_documents(documents(PROSE), config)
    kept, decisions = filter_documents(documents(), config)

    assert_frame_equal(kept, documents())
    assert_frame_equal(decisions, some_decisions.clear())
    assert count_reasons(decisions) == count_first_reasons(decisions) == {}


def test_nasty_texts_are_rejected_with_their_first_reason() -> None:
    _, decisions = filter_documents(documents(PROSE, *TEXTS), STRICT)

    first = decisions["reasons"].list.first().to_list()
    assert first[:3] == [None, "length.too_short", "length.too_short"]
    assert first[TEXTS.index("日本語日本語。") + 1] == "gopher_quality.words_too_short"
    assert set(first[3:]) == {"gopher_quality.too_few_words", "gopher_quality.words_too_short"}
    assert "code.line_too_long" in decisions["reasons"][-1]


def test_first_reasons_count_each_rejected_document_once() -> None:
    _, decisions = filter_documents(documents(PROSE, "", "{", "{", "a b c d {"), STRICT)

    assert count_first_reasons(decisions) == {
        "gopher_quality.too_few_words": 2,
        "gopher_quality.words_too_short": 1,
        "length.too_short": 1,
    }
    assert count_reasons(decisions)["c4.curly_bracket"] == 3
    assert count_reasons(decisions)["gopher_quality.too_few_words"] == 3


@pytest.mark.slow
@settings(max_examples=50)
@given(
    st.lists(
        st.sampled_from([PROSE, *TEXTS[:-1], "the {", "\r\n"])
        | st.text(st.characters(exclude_categories=["Cs"])),
        max_size=8,
    )
)
def test_no_document_is_lost_and_filtering_twice_is_once(texts: list[str]) -> None:
    source = documents(*texts)

    kept, decisions = filter_documents(source, STRICT)

    rejected = decisions.filter(~pl.col("kept"))
    assert decisions["doc_id"].to_list() == source["doc_id"].to_list()
    assert kept["doc_id"].to_list() == decisions.filter("kept")["doc_id"].to_list()
    assert sum(count_first_reasons(decisions).values()) == rejected.height
    assert count_reasons(decisions).keys() >= count_first_reasons(decisions).keys()
    assert_frame_equal(filter_documents(kept, STRICT)[0], kept)


EDITING = FilterConfig.model_validate(
    {
        "language": {"backend": "none"},
        "lines": {"c4": {"min_words": 3}},
        "pii": {"kinds": ["email"]},
        "rules": {"length": {"min_chars": 3}, "c4": {"min_sentences": 2}},
    }
)
PAGE = "Home\nWrite to ann@example.org about it.\nMenu About\nOr do not write at all."


def test_line_corrections_and_redaction_change_the_text_that_is_kept() -> None:
    kept, decisions = filter_documents(documents(PAGE, "Home { menu"), EDITING)

    assert kept["text"].to_list() == ["Write to <EMAIL> about it.\nOr do not write at all."]
    assert decisions["num_bytes"].to_list() == [len(kept["text"][0]), 0]
    assert decisions["unfinished_lines"].to_list() == [2.0, 1.0]
    assert decisions["pii_email"].to_list() == [1.0, 0.0]
    assert decisions["reasons"].to_list() == [[], ["length.too_short", "c4.too_few_sentences"]]

    tagging = EDITING.model_copy(update={"pii": EDITING.pii.model_copy(update={"action": "tag"})})
    kept, decisions = filter_documents(documents(PAGE), tagging)
    (span,) = decisions["pii_spans"][0]
    assert kept["text"][0][span["start"] : span["end"]] == "ann@example.org"


@pytest.mark.parametrize("action", ["redact", "tag"])
def test_a_document_with_too_many_values_is_not_kept(action: str) -> None:
    listed = "\n".join(f"ann{number}@example.org" for number in range(MAX_VALUES + 1))
    given = {"language": {"backend": "none"}, "rules": {"length": None}}
    config = FilterConfig.model_validate(given | {"pii": {"action": action}})

    kept, decisions = filter_documents(documents(listed, PROSE), config)

    assert kept["text"].to_list() == [PROSE]
    assert decisions["reasons"].to_list() == [["pii.too_many_values"], []]
    assert decisions["pii_total"].to_list() == [MAX_VALUES + 1, 0]
    assert filter_documents(documents(listed), FilterConfig.model_validate(given))[0].height == 1


def test_fineweb_judges_what_the_line_corrections_leave() -> None:
    lines = {"lines": {"c4": {"min_words": 3}}}
    given = {"language": {"backend": "none"}, "rules": {"length": None, "fineweb": {}}}
    text = "Home\nAbout\n" + PROSE

    _, plain = filter_documents(documents(text), FilterConfig.model_validate(given))
    _, edited = filter_documents(documents(text), FilterConfig.model_validate(given | lines))

    assert plain["short_line_share"].to_list() == [2 / 3]
    assert edited["short_line_share"].to_list() == [0.0]
