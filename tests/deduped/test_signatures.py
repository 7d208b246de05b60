"""One row per document and its sorted keys: columns, types, nulls, hashes."""

from datetime import UTC, datetime, timedelta
from itertools import combinations

import xxhash
from polars.testing import assert_frame_equal, assert_frame_not_equal
from prelude import Any, example, given, json, pl, pytest, settings, st

from assets.deduped.minhash.meta_fields import field_values, times_of
from assets.deduped.minhash.signatures import columns_read, signatures
from resources.settings.dedup import DedupConfig

CONFIG = DedupConfig(bands=2, rows=3, ngram=2)


def documents(*texts: str | None, **columns: list[Any]) -> pl.DataFrame:
    ids = [f"d{number}" for number in range(len(texts))]
    schema = dict.fromkeys(("doc_id", "text", *columns), pl.String)
    return pl.DataFrame({"doc_id": ids, "text": texts, **columns}, schema)


def changed(**changes: Any) -> DedupConfig:
    return CONFIG.model_copy(update=changes)


def facts(*texts: str | None, config: DedupConfig = CONFIG) -> pl.DataFrame:
    return signatures(documents(*texts), config)[0]


def keys_of(keys: pl.DataFrame, row: int) -> set[int]:
    return set(keys.filter(row=row)["key"])


def test_schemas_are_the_same_with_and_without_rows() -> None:
    config = changed(fields=("url",))
    expected = {
        "doc_id": pl.String,
        "num_chars": pl.UInt32,
        "num_words": pl.UInt32,
        "text_hash": pl.Binary,
        "field_00": pl.Binary,
        "group": pl.UInt64,
        "quality": pl.Float64,
        "date": pl.Int64,
        "signature": pl.Array(pl.UInt32, 6),
    }

    empty = signatures(documents(url=[]), config)
    some = signatures(documents("a", None, url=["u", None]), config)

    assert dict(empty[0].schema) == dict(some[0].schema) == expected
    assert dict(empty[1].schema) == dict(some[1].schema) == {"key": pl.UInt64, "row": pl.UInt32}


def test_counts_are_characters_and_words() -> None:
    result = facts("Zwei Wörter", "", None, "汉字")

    assert result["num_chars"].to_list() == [11, 0, 0, 2]
    assert result["num_words"].to_list() == [2, 0, 0, 2]


def test_blank_texts_match_nothing() -> None:
    result, keys = signatures(documents("", " \n", None), CONFIG)

    assert result.select("text_hash", "signature").null_count().row(0) == (3, 3)
    assert keys.is_empty()


@pytest.mark.parametrize("exact_text", ["whole", "whitespace", "words"])
def test_a_text_without_words_has_a_hash_but_no_bands(exact_text: str) -> None:
    texts = documents("?!", "...", "?! \n", "\u2003")

    result, keys = signatures(texts, changed(exact_text=exact_text))

    assert result["signature"].null_count() == 4
    assert result["text_hash"].null_count() == 1
    assert result["text_hash"].n_unique() == (4 if exact_text == "whole" else 3)
    assert sorted(keys["row"]) == [0, 1, 2]


@given(
    st.text() | st.lists(st.sampled_from([" ", "\n", "a", "\u2003", "\u3000", "é"])).map("".join)
)
@example("\u200b \ue000\u2028")
@settings(max_examples=50)
def test_text_hash_is_xxh3_of_the_text_with_whitespace_folded(text: str) -> None:
    folded = " ".join(text.split()).encode()

    result = facts(text)["text_hash"].to_list()

    assert result == [xxhash.xxh3_128_digest(folded) if folded else None]


@pytest.mark.parametrize(
    ("exact_text", "hashed"),
    [("whole", " It's\tA  test "), ("whitespace", "It's A test"), ("words", "it s a test")],
)
def test_what_of_a_text_must_be_equal(exact_text: str, hashed: str) -> None:
    result = facts(" It's\tA  test ", config=changed(exact_text=exact_text))

    assert result["text_hash"].to_list() == [xxhash.xxh3_128_digest(hashed.encode())]


def test_words_are_equal_as_they_are_shingled() -> None:
    config = changed(exact_text="words", lowercase=False, punctuation="keep")

    result = facts("It's  a", "It's a", "it's a", "Its a", config=config)["text_hash"]

    assert [result[0] == other for other in result] == [True, True, False, False]


def test_case_and_punctuation_do_not_change_the_signature() -> None:
    result, keys = signatures(documents("One two, three!", "ONE\ttwo -- three"), CONFIG)

    assert result["signature"][0].to_list() == result["signature"][1].to_list()
    assert len(keys_of(keys, 0) & keys_of(keys, 1)) == CONFIG.bands


@pytest.mark.parametrize(("off", "column"), [("exact", "text_hash"), ("near", "signature")])
def test_what_is_turned_off_is_null_and_has_no_key(off: str, column: str) -> None:
    whole, all_keys = signatures(documents("one two three"), CONFIG)

    result, keys = signatures(documents("one two three"), changed(**{off: False}))

    assert_frame_equal(result, whole.with_columns(pl.lit(None, whole[column].dtype).alias(column)))
    assert keys.height == {"exact": CONFIG.bands, "near": 1}[off]
    assert set(keys["key"]) < set(all_keys["key"])


def test_keys_are_sorted_and_equal_only_where_something_is() -> None:
    texts = ["one two three", "one  two three", "one two four", "", "?!", "six seven", "One two 3"]

    result, keys = signatures(documents(*texts * 5), CONFIG)

    assert_frame_equal(keys, keys.sort("key", "row"))
    bands = [[each[:3], each[3:]] if each else [] for each in result["signature"].to_list()]
    for a, b in combinations(range(len(texts)), 2):
        equal = sum(x == y for x, y in zip(bands[a], bands[b], strict=False))
        equal += (result["text_hash"][a] or a) == (result["text_hash"][b] or b)
        assert len(keys_of(keys, a) & keys_of(keys, b)) == equal
        assert keys_of(keys, a) == keys_of(keys, a + 7)


def test_an_equal_value_of_another_kind_is_no_equal_key() -> None:
    frame = documents("one", "two", url=["u", "one"], id=["one", "u"])

    _, keys = signatures(frame, changed(fields=("url", "id"), near=False))

    assert keys["key"].n_unique() == 6


def test_fields_are_compared_without_surrounding_whitespace() -> None:
    urls = ["http://a", " http://a\n", "http://A", "", " \t", None]

    result, keys = signatures(documents(*"abcdef", url=urls), changed(fields=("url",), near=False))

    values = result["field_00"].to_list()
    assert values[0] == values[1] == xxhash.xxh3_128_digest(b"http://a")
    assert values[2] != values[0]
    assert values[3:] == [None] * 3
    assert keys["key"].is_duplicated().sum() == 2
    assert keys.height == 6 + 3


def test_fields_of_meta_are_read_by_their_path() -> None:
    metas = [
        '{"a": {"b": "é\\n"}}',
        '{"a.b": "é"}',
        '{"a": {"b": 1.5}}',
        '{"a": {"b": null}}',
        '{"a": 3}',
        None,
    ]

    result, _ = signatures(documents(*"abcdef", meta=metas), changed(fields=("meta.a.b",)))

    expected = [xxhash.xxh3_128_digest(value.encode()) for value in ("é", "é", "1.5")]
    assert result["field_00"].to_list() == [*expected, None, None, None]


@pytest.mark.parametrize("name", ["it's", 'a "b"', "ä-ö", "a b", "]", "*", "$", "@type"])
def test_a_field_of_meta_can_have_any_name(name: str) -> None:
    frame = documents("a", meta=[json.dumps({"other": 1, name: "value"})])

    assert field_values(frame, f"meta.{name}").to_list() == ["value"]


def test_an_object_of_meta_goes_before_a_name_with_a_dot() -> None:
    frame = documents("a", meta=['{"a.b": "name", "a": {"b": "object"}}'])

    assert field_values(frame, "meta.a.b").to_list() == ["object"]


def test_broken_meta_has_no_fields() -> None:
    metas = ["", "{", "[1]", '"a"', '{"a": NaN}', '{"a":' + "[" * 500]

    assert field_values(documents(*"abcdef", meta=metas), "meta.a").to_list() == [None] * 6


def test_a_group_is_a_combination_of_values() -> None:
    frame = documents(
        *["one two"] * 5,
        source=["a", "ab", "a", "a", "a"],
        meta=['{"s": "bc"}', '{"s": "c"}', '{"s": ""}', "{}", '{"s": "bc"}'],
    )

    result, keys = signatures(frame, changed(within=("source", "meta.s")))

    assert result["group"].n_unique() == 4
    assert result["group"][0] == result["group"][4] != 0
    assert keys.group_by("key").agg("row").filter(pl.col("row").list.len() > 1)[
        "row"
    ].to_list() == [[0, 4]] * (1 + CONFIG.bands)
    assert result["signature"].n_unique() == 1


def test_without_groups_all_are_in_group_0() -> None:
    assert facts("a", "b")["group"].to_list() == [0, 0]


def test_dates_are_microseconds_or_the_number_given() -> None:
    dates = {
        "1970-01-01": 0,
        "1970-01-01T00:00:01Z": 1_000_000,
        " 1970-01-01T01:00:00.5+01:00 ": 500_000,
        "0001-01-01": -62_135_596_800_000_000,
        "1700000000": 1_700_000_000,
        "-2.5": -3,
        "2024-05": 1_714_521_600_000_000,
        "tomorrow": None,
        "2024-13-01": None,
        "nan": None,
        "1e300": None,
        "": None,
    }
    metas = [f'{{"d": "{date}"}}' for date in dates]
    frame = documents(*"abcdefghijklmn", meta=[*metas, '{"d": 12}', None])

    result, _ = signatures(frame, changed(date_field="meta.d"))

    assert result["date"].to_list() == [*dates.values(), 12, None]


@given(st.lists(st.text() | st.datetimes(timezones=st.timezones()).map(str) | st.none()))
@settings(max_examples=50)
def test_any_text_is_a_date_or_none(texts: list[str | None]) -> None:
    times = times_of(pl.Series(texts, dtype=pl.String))

    for text, time in zip(texts, times, strict=True):
        if text is not None and time is not None and ":" in text:
            expected = datetime.fromisoformat(text.strip())
            naive = expected if expected.tzinfo else expected.replace(tzinfo=UTC)
            assert time == (naive - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def test_quality_of_meta_is_a_finite_number() -> None:
    metas = ['{"q": 0.5}', '{"q": " -2 "}', '{"q": "good"}', '{"q": "inf"}', '{"q": true}', "{}"]

    result, _ = signatures(documents(*"abcdef", meta=metas), changed(quality_field="meta.q"))

    assert result["quality"].to_list() == [0.5, -2, None, None, None, None]


def test_quality_can_be_a_score() -> None:
    scores = pl.DataFrame({"doc_id": ["d2", "rejected", "d0", "d3"], "clean": [2, 9, None, 1]})

    result, _ = signatures(documents(*"abcd"), changed(quality_field="clean"), scores)

    assert result["quality"].to_list() == [None, None, 2, 1]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"fields": ("link",)}, "no field 'link'.*Name one of doc_id, text, or meta"),
        ({"within": ("meta.a",)}, "no text column 'meta'"),
        ({"date_field": "meta.a"}, "no field 'meta.a'"),
        ({"quality_field": "clean"}, "no score 'clean'.*given: other"),
    ],
)
def test_a_field_that_is_not_there_is_named(changes: dict[str, Any], told: str) -> None:
    scores = pl.DataFrame({"doc_id": ["d0"], "other": [1.0]})

    with pytest.raises(ValueError, match=told):
        signatures(documents("a"), changed(**changes), scores)


def test_a_score_without_scores_is_told() -> None:
    with pytest.raises(ValueError, match=r"scores given: none"):
        signatures(documents("a"), changed(quality_field="clean"))


def test_columns_read_are_those_that_the_config_names() -> None:
    config = changed(fields=("url", "meta.a"), within=("lang",), date_field="meta.d")

    assert columns_read(CONFIG) == ["doc_id", "text"]
    assert columns_read(changed(quality_field="clean")) == ["doc_id", "text"]
    assert columns_read(changed(quality_field="meta.q")) == ["doc_id", "text", "meta"]
    assert columns_read(config) == ["doc_id", "text", "url", "meta", "lang"]


def test_rows_do_not_depend_on_their_neighbours() -> None:
    texts = [f"text {number} of many, many" for number in range(600)]

    together, keys = signatures(documents(*texts), CONFIG)

    alone, own_keys = signatures(documents(*texts)[599:], CONFIG)
    assert_frame_equal(together[599:], alone)
    assert keys_of(keys, 599) == keys_of(own_keys, 0)


def test_another_seed_gives_other_signatures_and_the_same_text_hash() -> None:
    one, other = (facts("one two three", config=changed(seed=seed)) for seed in (1, 2))

    assert_frame_not_equal(one, other)
    assert_frame_equal(one.drop("signature"), other.drop("signature"))


@pytest.mark.parametrize("shingle", ["words", "characters"])
def test_a_megabyte_of_one_word_is_one_word(shingle: str) -> None:
    result = facts("é" * 500_000, "x " * 500_000, config=changed(shingle=shingle))

    assert result["num_words"].to_list() == [1, 500_000]


def test_a_word_of_50_megabytes_is_signed_like_any_other() -> None:
    result, keys = signatures(documents("x" * 50_000_000, "y"), CONFIG)

    assert result["num_chars"].to_list() == [50_000_000, 1]
    assert result["num_words"].to_list() == [1, 1]
    assert keys.height == 2 * (1 + CONFIG.bands)
