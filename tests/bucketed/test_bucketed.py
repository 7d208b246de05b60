"""Documents become sequences: nothing lost, nothing invented, padding only at the end."""

import base64

from prelude import Any, ValidationError, assert_frame_equal, given, np, pl, pytest, settings, st
from tables import cases

from assets.bucketed.make_sequences import make_sequences
from assets.bucketed.report import BINS, bin_range, readable, report_markdown, shares, warnings_of
from assets.bucketed.sequences import PLACE_COLUMNS, SPAN, count_empty
from assets.report.histograms import bin_of, counted
from resources.settings.buckets import BucketConfig, BucketLayout, bucket_length, bucket_names
from resources.store.records import as_json_object

END = 60_000
SMALL = BucketConfig(mode="buckets", edges=(2, 4))
MODES = {
    "pack": BucketConfig(sequence_length=8),
    "capped": BucketConfig(sequence_length=8, max_documents=2, seed=3),
    "padded": BucketConfig(sequence_length=8, pad_documents_to=2),
    "buckets": SMALL,
    "concat": BucketConfig(mode="concat", sequence_length=8),
    "decompose": BucketConfig(mode="decompose", sequence_length=8, min_length=2),
    "decompose capped": BucketConfig(
        mode="decompose", sequence_length=16, min_length=4, max_documents=2
    ),
}
OF_FOUR = {
    "packed": BucketConfig(sequence_length=4),
    "concat": BucketConfig(mode="concat", sequence_length=4),
    "decomposed": BucketConfig(mode="decompose", sequence_length=4, min_length=2),
    "cut": BucketConfig(sequence_length=4, long_documents="truncate"),
    "small": SMALL,
}
COUNTED_MODES = {
    "overlap": BucketConfig(sequence_length=8, overlap=3),
    "truncate": BucketConfig(sequence_length=8, long_documents="truncate"),
}


def tokenized(*lengths: int, first: int = 0, dtype: type[pl.DataType] = pl.UInt16) -> pl.DataFrame:
    """Documents d0, d1, ... of these lengths; no two tokens of all of them are the same."""
    starts = np.cumsum([first, *lengths])
    columns = {
        "doc_id": [f"d{first + row}" for row in range(len(lengths))],
        "tokens": [list(range(starts[i], starts[i + 1])) for i in range(len(lengths))],
    }
    return pl.DataFrame(columns, schema={"doc_id": pl.String, "tokens": pl.List(dtype)})


def sequences_of(config: BucketConfig, *tables: pl.DataFrame) -> pl.DataFrame:
    return make_sequences(tables, config, END)[0].drop(PLACE_COLUMNS)


def segments_of(sequences: pl.DataFrame) -> list[tuple[str, int, list[int]]]:
    """(document, start, the tokens under the span) of every span, sorted."""
    found = []
    for row in sequences.iter_rows(named=True):
        at = 0
        for span in row["spans"]:
            under = row["tokens"][at : at + span["length"]]
            found.append((span["doc_id"], span["start"], under))
            end = at + span.get("padded_length", span["length"])
            assert set(row["tokens"][at + span["length"] : end]) <= {END}
            at = end
        assert sum(span["length"] for span in row["spans"]) == row["num_tokens"]
        assert set(row["tokens"][at:]) <= {END}
    return sorted(found)


def frame(**columns: list[Any]) -> pl.DataFrame:
    schema = {
        "bucket": pl.UInt8,
        "num_tokens": pl.UInt32,
        "tokens": pl.List(pl.UInt16),
        "spans": pl.List(SPAN),
    }
    return pl.DataFrame(columns, schema=schema)


def span(doc_id: str, start: int, length: int) -> dict[str, Any]:
    return {"doc_id": doc_id, "start": start, "length": length}


def test_names_say_the_lengths() -> None:
    buckets = BucketConfig(mode="buckets")
    decompose = BucketConfig(mode="decompose", sequence_length=512, min_length=128)

    assert bucket_names(buckets) == ["0-128", "129-256", "257-512", "513-1024", "1025-up"]
    assert bucket_names(BucketConfig()) == ["2048"]
    assert bucket_names(BucketConfig(mode="concat", sequence_length=100)) == ["100"]
    assert bucket_names(decompose) == ["128", "256", "512"]
    assert list(map(bucket_length, bucket_names(decompose))) == [128, 256, 512]
    assert bucket_length("2048.validation") == 2048
    assert {*map(bucket_length, bucket_names(buckets))} == {None}


@cases(
    """
    config | lengths | bucket | num_tokens | spans | tokens
    # Packed documents lie side by side in their order.
    packed | (3, 3, 1) | [0, 0] | [4, 3] | d0 0 3, d2 0 1; d1 0 3 | [[0, 1, 2, 6], [3, 4, 5, END]]
    # A long document is split and its rest packed.
    packed | (5, 2) | [0, 0] | [4, 3] | d0 0 4; d0 4 1, d1 0 2 | [[0, 1, 2, 3], [4, 5, 6, END]]
    # Concatenated documents are cut at every length.
    concat | (3, 3) | [0, 0] | [4, 2] | d0 0 3, d1 0 1; d1 1 2 | [[0, 1, 2, 3], [4, 5, END, END]]
    # Decomposed documents and their packed rests.
    decomposed | (5, 5) | [0, 1, 1] | [2, 4, 4] | d0 4 1, d1 4 1; d0 0 4; d1 0 4
    | [[4, 9], [0, 1, 2, 3], [5, 6, 7, 8]]
    # A document a sequence in its bucket, unpadded; edges are inclusive.
    small | (3, 2, 1) | [0, 0, 1] | [2, 1, 3] | d1 0 2; d2 0 1; d0 0 3 | [[3, 4], [5], [0, 1, 2]]
    small | (1, 4, 5) | [0, 1, 2] | [1, 4, 5] | d0 0 1; d1 0 4; d2 0 5
    | [[0], [1, 2, 3, 4], [5, 6, 7, 8, 9]]
    """,
    END=END,
    **OF_FOUR,
)
def test_sequences_of_documents(
    config: BucketConfig, lengths: Any, bucket: Any, num_tokens: Any, spans: str, tokens: Any
) -> None:
    cut = [[each.split() for each in row.split(", ")] for row in spans.split("; ")]
    named = [[span(name, int(start), int(length)) for name, start, length in row] for row in cut]

    expected = frame(bucket=bucket, num_tokens=num_tokens, tokens=tokens, spans=named)
    assert_frame_equal(sequences_of(config, tokenized(*lengths)), expected)


def test_documents_are_filled_up_to_a_multiple() -> None:
    config = BucketConfig(sequence_length=8, pad_documents_to=4)
    sequences, counts = make_sequences([tokenized(3, 9, 4, 1)], config, END)

    rows = sequences.select("num_tokens", "tokens", "spans").rows(named=True)
    assert [row["tokens"] for row in rows] == [
        [0, 1, 2, END, 12, 13, 14, 15],
        [3, 4, 5, 6, 7, 8, 9, 10],
        [11, END, END, END, 16, END, END, END],
    ]
    assert [row["num_tokens"] for row in rows] == [7, 8, 2]
    assert rows[2]["spans"] == [
        span("d1", 8, 1) | {"padded_length": 4},
        span("d3", 0, 1) | {"padded_length": 4},
    ]
    assert counts.padding_tokens == counts.least_padding == 7


@settings(max_examples=60)
@given(st.lists(st.integers(0, 40), max_size=20), st.sampled_from([1, 2, 4, 16]))
def test_padding_of_documents_is_less_than_a_multiple_each(
    lengths: list[int], multiple: int
) -> None:
    config = BucketConfig(sequence_length=16, pad_documents_to=multiple)
    sequences, counts = make_sequences([tokenized(*lengths)], config, END)

    for row in sequences.iter_rows(named=True):
        spans = row["spans"]
        sizes = [each.get("padded_length", each["length"]) for each in spans]
        assert all(size % multiple == 0 for size in sizes) and sum(sizes) <= 16
        assert all(
            0 <= size - each["length"] < multiple for size, each in zip(sizes, spans, strict=True)
        )
    assert counts.least_padding <= counts.padding_tokens
    assert counts.fitting_documents_cut == 0


def test_last_bucket_index_fits_its_type() -> None:
    config = BucketConfig(mode="buckets", edges=tuple(range(1, 256)))
    assert sequences_of(config, tokenized(300))["bucket"].to_list() == [255]


@pytest.mark.parametrize("config", MODES.values(), ids=MODES)
def test_nothing_makes_no_sequences_of_the_same_schema(config: BucketConfig) -> None:
    some = sequences_of(config, tokenized(3))

    for nothing in (tokenized(), tokenized(0, 0)):
        assert_frame_equal(sequences_of(config, nothing), some.clear())


@pytest.mark.parametrize("config", MODES.values(), ids=MODES)
def test_wide_tokens_stay_wide(config: BucketConfig) -> None:
    table = tokenized(3, 10, first=70_000, dtype=pl.UInt32)

    sequences = sequences_of(config, table)

    assert sequences.schema["tokens"] == pl.List(pl.UInt32)
    assert sorted(token for _, _, under in segments_of(sequences) for token in under) == list(
        range(70_000, 70_013)
    )


@settings(max_examples=60)
@given(st.lists(st.integers(0, 40), max_size=20), st.sampled_from(list(MODES.values())))
def test_spans_cover_each_document_once_with_its_own_tokens(
    lengths: list[int], config: BucketConfig
) -> None:
    documents = tokenized(*lengths)
    sequences, counts = make_sequences([documents], config, END)

    rebuilt: dict[str, list[int]] = {}
    for doc_id, start, under in segments_of(sequences):
        assert start == len(rebuilt.setdefault(doc_id, []))
        rebuilt[doc_id] += under
    assert rebuilt == {row[0]: row[1] for row in documents.iter_rows() if row[1]}
    assert sequences["bucket"].is_sorted()
    assert sum(counts.bucket_tokens.values()) == sum(lengths)
    assert counts.tokens_truncated == counts.tokens_overlapped == 0


@settings(max_examples=60)
@given(st.lists(st.integers(0, 40), max_size=20), st.sampled_from(list(COUNTED_MODES.values())))
def test_what_is_repeated_or_cut_off_is_counted(lengths: list[int], config: BucketConfig) -> None:
    documents = tokenized(*lengths)
    sequences, counts = make_sequences([documents], config, END)

    placed = [token for _, _, under in segments_of(sequences) for token in under]
    assert len(placed) - len(set(placed)) == counts.tokens_overlapped
    assert sum(lengths) - len(set(placed)) == counts.tokens_truncated
    tokens = dict(documents.iter_rows())
    for doc_id, start, under in segments_of(sequences):
        assert under == tokens[doc_id][start : start + len(under)]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 40), max_size=20), st.sampled_from(list(MODES.values())))
def test_stored_lengths_and_limits_hold(lengths: list[int], config: BucketConfig) -> None:
    sequences, counts = make_sequences([tokenized(*lengths)], config, END)
    assert sequences["stored_tokens"].to_list() == sequences["tokens"].list.len().to_list()

    for bucket, num_tokens, tokens, spans in sequences.drop(PLACE_COLUMNS).iter_rows():
        assert len(tokens) == (bucket_length(bucket_names(config)[bucket]) or num_tokens)
        assert len(spans) <= (config.max_documents or 100)
    if config.mode in ("pack", "decompose"):
        longer = sum(length > config.sequence_length for length in lengths)
        is_pack = config.mode == "pack"
        assert counts.documents_cut == longer or not is_pack
        assert counts.fitting_documents_cut == 0 or not is_pack


@pytest.mark.parametrize("config", MODES.values(), ids=MODES)
def test_tables_and_chunks_of_a_window_are_one(config: BucketConfig) -> None:
    one = tokenized(3, 9, 0, 20, 1, 7)
    parts = [one[:2], one[2:2], pl.concat([one[2:3], one[3:4]], rechunk=False), one[4:]]

    assert_frame_equal(sequences_of(config, *parts), sequences_of(config, one))


def test_padding_goes_to_the_edge_and_in_the_open_bucket_to_the_longest() -> None:
    counts = make_sequences([tokenized(1, 2, 3, 7, 10)], SMALL, END)[1]

    assert counts.bucket_sequences == {"0-2": 2, "3-4": 1, "5-up": 2}
    assert counts.bucket_tokens == {"0-2": 3, "3-4": 3, "5-up": 17}
    assert counts.bucket_padding == {"0-2": 1, "3-4": 1, "5-up": 3}
    assert counts.padding_tokens == 5


def test_counts_of_a_packed_window() -> None:
    config = BucketConfig(sequence_length=4)
    documents = [tokenized(3, 3, 9, 0)]
    counts = make_sequences(documents, config, END)[1]

    assert count_empty(documents) == 1
    assert {key: n for key, n in as_json_object(counts).items() if isinstance(n, int)} == {
        "padding_tokens": 1,
        "least_padding": 1,
        "documents_cut": 1,
        "fitting_documents_cut": 0,
        "documents_reaching": 1,
        "documents_truncated": 0,
        "tokens_truncated": 0,
        "tokens_overlapped": 0,
        "document_spans": 5,
    }
    assert shares(counts, 4) == {
        "padding_share": 1 / 16,
        "least_padding_share": 1 / 16,
        "documents_cut_share": 0.25,
        "documents_per_sequence": 1.25,
    }
    assert sum(counts.document_lengths.values()) == 4
    assert sum(counts.sequence_documents.values()) == 4


@cases(
    """
    config | lengths   | expected
    # Padding that cannot be avoided is counted.
    packed | (3, 3)    | {"padding_tokens": 2, "least_padding": 2}
    concat | (3, 3)    | {"padding_tokens": 2, "least_padding": 2}
    # Documents as long as a sequence reach it, and the open bucket beyond the last edge.
    packed | (3, 4, 5) | {"documents_reaching": 2}
    small  | (4, 5)    | {"documents_reaching": 1}
    # A cut document as long as a sequence would have fit; without their last token, truncated.
    concat | (3, 4, 5) | {"documents_cut": 2, "fitting_documents_cut": 1}
    cut    | (4, 5, 9) | {"documents_truncated": 2, "tokens_truncated": 6}
    """,
    **OF_FOUR,
)
def test_counts_of_documents(config: BucketConfig, lengths: Any, expected: dict[str, int]) -> None:
    counts = as_json_object(make_sequences([tokenized(*lengths)], config, END)[1])
    assert {key: counts[key] for key in expected} == expected


def test_golden_decomposition() -> None:
    """If this changes, every decomposed corpus is made again: raise the stage's code version."""
    config = BucketConfig(mode="decompose", sequence_length=8, min_length=4)
    sequences = sequences_of(config, tokenized(1, 4, 2, 1, 3, 4, 1, 2, 1))
    expected = [*(["d0", "d3", "d6"], ["d1"], ["d2", "d7"], ["d4", "d8"], ["d5"])]
    assert [[span["doc_id"] for span in spans] for spans in sequences["spans"]] == expected


def test_the_report_is_markdown_with_plots() -> None:
    counts = make_sequences([tokenized(3, 3, 9)], BucketConfig(sequence_length=4), END)[1]
    shown = report_markdown(counts, BucketLayout(BucketConfig(sequence_length=4)))

    assert "| 4 | 4 | 15 | 1 | 6.2500% |" in shown["buckets"]
    assert shown["sequence_plots"].count("](chart:") == 3
    assert "warnings" not in shown


def test_histograms_are_shown_by_ranges_of_whole_numbers() -> None:
    one_each = counted(bin_of(BINS, pl.Series(range(16))))

    names = ["0", "1", "2", "3-4", "5-6", "7-10", "11-14", "15-21"]
    sizes = [1, 1, 1, 2, 2, 4, 4, 1]
    assert list(readable(one_each).items()) == list(zip(names, sizes, strict=True))


@given(st.integers(0, 10**9))
def test_a_number_lies_in_the_range_of_its_bin(number: int) -> None:
    least, greatest = bin_range(bin_of(BINS, pl.Series([number]))[0])
    assert least <= number <= greatest


def test_the_axis_of_documents_in_a_sequence_ends_with_a_whole_number() -> None:
    counts = make_sequences([tokenized(1, 1, 2)], BucketConfig(sequence_length=4), END)[1]
    plots = report_markdown(counts, BucketLayout(BucketConfig(sequence_length=4)))["sequence_plots"]
    encoded = plots.rpartition("(chart:")[2].partition(")")[0]
    assert b'"3-4"' in base64.b64decode(encoded)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (BucketConfig(), "no document reaches 2048 tokens (buckets.sequence_length): the longest"),
        (BucketConfig(mode="buckets"), "no document reaches 1025 tokens (buckets.edges): the lon"),
        (BucketConfig(mode="decompose"), "no document reaches 2048 tokens"),
    ],
)
def test_a_length_that_no_document_reaches_is_said(config: BucketConfig, message: str) -> None:
    counts = make_sequences([tokenized(3, 5)], config, END)[1]

    (warning,) = warnings_of(counts, config)
    assert warning.startswith(message)
    assert "the longest has at most 6. Take" in warning
    assert message in report_markdown(counts, BucketLayout(config))["warnings"]


@pytest.mark.parametrize("mode", ["pack", "concat", "decompose"])
def test_a_document_of_ten_million_tokens(mode: Any) -> None:
    tokens = (pl.int_range(10_000_000, eager=True) % 50_000).cast(pl.UInt16).implode()
    documents = pl.DataFrame({"doc_id": ["d0"], "tokens": tokens})

    sequences, counts = make_sequences([documents], BucketConfig(mode=mode), END)

    assert sequences["num_tokens"].sum() == 10_000_000
    assert sequences.height == (4885 if mode == "decompose" else 4883)
    assert counts.documents_cut == counts.documents_reaching == 1


@pytest.mark.parametrize("edges", [(), (0, 4), (-1,), (4, 4), (4, 2), tuple(range(1, 257))])
def test_bad_edges_are_refused(edges: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="edges"):
        BucketConfig(mode="buckets", edges=edges)


@cases("""
    keys | message
    {"edges": (4,)} | edges has no meaning in mode pack. Remove it, or write `mode: buckets`
    {"mode": "buckets", "seed": 1} | write `mode: pack or decompose`
    {"mode": "concat", "overlap": 1} | overlap has no meaning in mode concat
    {"pad_documents_to": 3} | pad_documents_to is 3, of which sequence_length 2048 is no multiple
    {"overlap": 2048} | overlap 2048 must be less than sequence_length 2048
    {"overlap": 1, "long_documents": "truncate"} | overlap needs `long_documents: split`
    {"extend_rests": True} | Input should be False
    {"mode": "decompose", "min_length": 48}
    | min_length, in mode decompose: must be a power .* Take 32 or 64
    {"mode": "decompose", "sequence_length": 3000}
    | sequence_length, in mode decompose: must be a power
    {"mode": "decompose", "sequence_length": 32} | min_length 64 must not be above
""")
def test_keys_that_contradict_each_other_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        BucketConfig(**keys)


@pytest.mark.parametrize("config", [*MODES.values(), *COUNTED_MODES.values()])
def test_a_dump_holds_what_the_mode_looks_at_and_gives_the_config_back(
    config: BucketConfig,
) -> None:
    dump = config.model_dump(mode="json")

    assert BucketConfig.model_validate(dump) == config
    assert ("edges" in dump) == (config.mode == "buckets")
