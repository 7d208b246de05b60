"""Exactly the lines and paragraphs that a plain Python count finds are cut."""

from many_examples import many_examples
from prelude import Any, Counter, ValidationError, assert_frame_equal, given, np, pl, pytest, re, st

from assets.deduped.kernels import line_units as kernels
from assets.deduped.repeats.repeated_lines import (
    Unit,
    add_counts,
    collect_lines,
    count_lines,
    cut_repeated,
    repeated_markdown,
)
from resources.exchange import rows_with
from resources.settings.repeats import RepeatedLinesConfig

HEADER = "Home | News | About us"
ASCII_SPACE = " \t\n\v\f\r"
PIECES = [
    "\n",
    "\n\n",
    "\r\n",
    " ",
    "\t",
    "a",
    "A b",
    "a  b",
    "line",
    "é",
    "\u00a0",
    "日本",
    "İ",
    "x\vy\f",
    "\x0e\x08",
    "",
]
TEXTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), max_size=6)
CONFIGS = st.builds(
    RepeatedLinesConfig,
    min_count=st.integers(2, 3),
    min_chars=st.integers(1, 4),
    min_kept_share=st.sampled_from([0, 0.5]),
    fold_whitespace=st.booleans(),
    lowercase=st.booleans(),
)
UNITS = st.sampled_from(["lines", "paragraphs"])


def documents(*texts: str | None) -> pl.DataFrame:
    ids = [f"{number:032x}" for number in range(len(texts))]
    return pl.DataFrame(
        {"doc_id": ids, "text": texts}, schema={"doc_id": pl.String, "text": pl.String}
    )


def repeated_in(texts: pl.Series, config: RepeatedLinesConfig, unit: Unit) -> pl.DataFrame:
    """Both rounds over one part."""
    counts = count_lines(texts, config, unit)
    hashes = counts.filter(pl.col("count") >= config.min_count)["hash"]
    found = collect_lines(texts, hashes, config, unit)
    return found.filter(pl.col("count") >= config.min_count).with_columns(unit=pl.lit(unit))


def cut(
    *texts: str | None, unit: Unit = "lines", **keys: Any
) -> tuple[list[str | None], pl.DataFrame]:
    """What is left of texts of which the config finds its own repeats, and the changes."""
    config = RepeatedLinesConfig(**({"min_count": 2, "min_chars": 5} | keys))
    frame = documents(*texts)
    kept, changes = cut_repeated(frame, repeated_in(frame["text"], config, unit), config, unit)
    assert kept["doc_id"].to_list() == frame["doc_id"].to_list()
    return kept["text"].to_list(), changes


def plain_units(text: str, unit: Unit) -> list[list[str]]:
    """The lines of each unit; a blank line between paragraphs is one of its own."""
    units: list[list[str]] = []
    was_text = False
    for line in text.split("\n"):
        is_text = bool(line.strip(ASCII_SPACE))
        if unit == "paragraphs" and is_text and was_text:
            units[-1].append(line)
        else:
            units.append([line])
        was_text = is_text
    return units


def plain_key(lines: list[str], config: RepeatedLinesConfig) -> str | None:
    """What a unit is compared by, None if it is left alone."""
    text = "\n".join(lines)
    if not text.strip(ASCII_SPACE):
        return None
    text = text.lower() if config.lowercase else text
    key = (
        " ".join(re.split(f"[{ASCII_SPACE}]+", text)).strip(" ") if config.fold_whitespace else text
    )
    return key if len(key) >= config.min_chars else None


def plain_cut(text: str, repeated: set[str], config: RepeatedLinesConfig, unit: Unit) -> str:
    kept: list[str] = []
    has_gone = False
    for lines in plain_units(text, unit):
        is_tail = unit == "paragraphs" and has_gone and not "".join(lines).strip(ASCII_SPACE)
        has_gone = is_tail or plain_key(lines, config) in repeated
        kept += [] if has_gone else lines
    return "\n".join(kept)


@pytest.mark.slow
@many_examples(300)
@given(TEXTS, CONFIGS, UNITS)
def test_everything_equals_plain_python(
    texts: list[str], config: RepeatedLinesConfig, unit: Unit
) -> None:
    series = pl.Series(texts, dtype=pl.String)
    keys = [{plain_key(lines, config) for lines in plain_units(text, unit)} for text in texts]
    counts = Counter(key for each in keys for key in each if key is not None)
    expected = {key: count for key, count in counts.items() if count >= config.min_count}

    hashes = count_lines(series, config, unit)
    repeated = repeated_in(series, config, unit)
    kept, changes = cut_repeated(documents(*texts), repeated, config, unit)

    assert sorted(hashes["count"].to_list()) == sorted(counts.values())
    assert hashes["hash"].is_sorted() and hashes["hash"].is_unique().all()
    assert dict(repeated.select("text", "count").iter_rows()) == expected
    left = [plain_cut(text, set(expected), config, unit) for text in texts]
    assert kept["text"].to_list() == left
    changed = [i for i in range(len(texts)) if keys[i] & set(expected)]
    assert changes["doc_id"].to_list() == [f"{i:032x}" for i in changed]
    assert changes["cut_chars"].to_list() == [len(texts[i]) - len(left[i]) for i in changed]
    assert changes["is_rejected"].to_list() == [
        not left[i].strip() or len(left[i]) / len(texts[i]) < config.min_kept_share for i in changed
    ]


def test_a_repeated_line_goes_and_the_rest_stays_as_it_was() -> None:
    left, changes = cut(
        f"{HEADER}\n\n  one \t text\n",
        f"another\n{HEADER}\nof two lines",
        f"ends so\n{HEADER}",
        "none",
    )

    assert left == ["\n  one \t text\n", "another\nof two lines", "ends so", "none"]
    assert changes["num_cut"].to_list() == [1, 1, 1]
    assert changes["cut_chars"].to_list() == [len(HEADER) + 1] * 3
    assert changes["kept_share"][2] == pytest.approx(7 / 30)
    assert not changes["is_rejected"].any()


def test_a_repeated_paragraph_goes_with_the_blank_lines_after_it() -> None:
    licence = "/* Licensed to you\n * as it is */"

    left, _ = cut(
        f"{licence}\n\n\nint main();\n",
        "one\n \n/* Licensed  to you\r\n* as it is */\r\n\r\ntwo\nthree",
        f"ends\n\n{licence}\n",
        "/* Licensed to you\n\n * as it is */",
        unit="paragraphs",
    )

    assert left == [
        "int main();\n",
        "one\n \ntwo\nthree",
        "ends\n",
        "/* Licensed to you\n\n * as it is */",
    ]


def test_crlf_is_white_space_if_that_is_folded() -> None:
    texts = (f"{HEADER}\r\none\r\n", f"{HEADER}\ntwo\n")

    assert cut(*texts)[0] == ["one\r\n", "two\n"]
    assert cut(*texts, fold_whitespace=False)[0] == list(texts)


def test_case_counts_unless_folded() -> None:
    texts = ("ÀLL Rights İ Σ\none", "àll rights i̇ σ\ntwo")

    assert cut(*texts)[0] == list(texts)
    assert cut(*texts, lowercase=True)[0] == ["one", "two"]


def test_documents_that_shrink_too_much_are_rejected() -> None:
    texts = (
        HEADER,
        f"{HEADER}\n",
        f"{HEADER}\na",
        f"{HEADER}\n" + "text of its own, and more of it",
    )

    left, changes = cut(*texts, min_kept_share=0.1)
    assert left == ["", "", "a", "text of its own, and more of it"]
    assert changes["is_rejected"].to_list() == [True, True, True, False]
    _, changes = cut(*texts, min_kept_share=0)
    assert changes["is_rejected"].to_list() == [True, True, False, False]


def test_empty_and_null_texts_stay() -> None:
    left, changes = cut("", None, HEADER, HEADER, "")

    assert left == ["", None, "", "", ""]
    assert changes["doc_id"].to_list() == [f"{2:032x}", f"{3:032x}"]
    assert cut()[0] == [] and cut()[1].is_empty()
    assert cut("", None)[0] == ["", None]


def test_other_columns_and_unchanged_documents_are_the_same() -> None:
    frame = documents("a long line\nb", "c").with_columns(url=pl.Series(["u", None]))
    config = RepeatedLinesConfig(min_chars=1)
    repeated = pl.DataFrame({"unit": ["paragraphs", "lines"], "text": ["c", "a long line"]})

    kept, _ = cut_repeated(frame, repeated, config, "lines")
    same, changes = cut_repeated(frame, repeated.clear(), config, "lines")

    assert_frame_equal(kept, frame.with_columns(text=pl.Series(["b", "c"])))
    assert_frame_equal(same, frame)
    assert changes.is_empty()


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_collisions_cut_nothing_that_is_not_repeated(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_units = kernels.find_units

    def few_bits(*arguments: Any) -> Any:
        hashes, *rest = find_units(*arguments)
        return np.where(hashes == 0, 0, 1 + (hashes >> np.uint64(32)) % np.uint64(1 << bits)), *rest

    texts = [f"{HEADER}\nnumber {i}\nnumber {i} again\n" for i in range(50)]
    config = RepeatedLinesConfig(min_count=2, min_chars=5)
    expected = cut(*texts)
    monkeypatch.setattr(kernels, "find_units", few_bits)

    assert count_lines(pl.Series(texts), config, "lines").height <= 1 << bits
    left, changes = cut(*texts)

    assert left == expected[0] == [f"number {i}\nnumber {i} again\n" for i in range(50)]
    assert_frame_equal(changes, expected[1])


@pytest.mark.slow
def test_one_line_of_50_megabytes() -> None:
    line = "abcde fghij " * (50_000_000 // 12)
    texts = (f"{line}\none", f"two\n{line}")

    assert cut(*texts)[0] == ["one", "two"]
    assert cut(line, line + "x")[0] == [line, line + "x"]


@pytest.mark.slow
def test_ten_million_newlines() -> None:
    blank = "\n" * 10_000_000

    assert cut(f"{blank}{HEADER}", HEADER, unit="paragraphs")[0] == [blank[1:], ""]


@given(
    st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=5),
    st.sampled_from([0, 1 << 30]),
)
def test_counts_add_up_in_any_pieces(parts: list[list[str]], held_bytes: int) -> None:
    config = RepeatedLinesConfig(min_chars=1)
    tables = [count_lines(pl.Series(part, dtype=pl.String), config, "lines") for part in parts]
    everything = pl.Series([text for part in parts for text in part], dtype=pl.String)

    total = add_counts(
        [tables[0].clear(), *tables] if tables else [count_lines(everything, config, "lines")],
        held_bytes,
    )

    assert_frame_equal(total, count_lines(everything, config, "lines"))


def test_no_table_is_measured_again_with_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[int] = []
    estimated_size = pl.DataFrame.estimated_size

    def counted(table: pl.DataFrame) -> int | float:
        measured.append(id(table))
        return estimated_size(table)

    monkeypatch.setattr(pl.DataFrame, "estimated_size", counted)
    table = count_lines(pl.Series(["a"]), RepeatedLinesConfig(min_chars=1), "lines")
    tables = [table.clone() for _ in range(100)]

    assert add_counts(tables, 1 << 30)["count"].to_list() == [100]
    assert len(measured) == len(set(measured)) < 100


def test_the_threshold_is_a_count_and_a_share() -> None:
    config = RepeatedLinesConfig(min_count=4, min_share=0.1)

    assert [config.threshold(n) for n in (0, 30, 40, 41, 100)] == [4, 4, 4, 5, 10]


def test_the_report_shows_texts_as_text() -> None:
    table = pl.DataFrame({"text": ["<b>|[x](y)\n", "é" * 101], "count": [1234, 2]})

    lines = repeated_markdown(table).split("\n")

    assert lines[2].startswith("| 1,234 |") and not re.search(r"[<\[(]", lines[2])
    assert lines[3] == f"| 2 | {'é' * 100}… |"


def test_a_document_that_keeps_just_enough_stays() -> None:
    documents = pl.DataFrame({"doc_id": ["a"], "text": ["ab\nc"]})
    repeated = pl.DataFrame({"unit": ["lines"], "text": ["c"]})
    config = RepeatedLinesConfig(min_count=2, min_chars=1, min_kept_share=0.5)

    kept, changes = cut_repeated(documents, repeated, config, "lines")

    assert kept["text"].to_list() == ["ab"]
    assert changes.select("kept_share", "is_rejected").rows() == [(0.5, False)]


def test_rows_are_found_by_hash_in_a_sorted_table() -> None:
    table = pl.DataFrame(
        {"hash": [1, 3, 3, 8, 9], "text": list("abcde")}, schema_overrides={"hash": pl.UInt64}
    )

    def rows_of(*hashes: int) -> str:
        return "".join(rows_with(table, pl.Series(hashes, dtype=pl.UInt64))["text"])

    assert rows_of(3, 9) == rows_of(9, 3, 3) == "bce"  # two texts of one hash
    assert rows_of(0, 2, 4, 10) == rows_of() == ""
    assert rows_of(2, 8, 9, 100) == "de"


@pytest.mark.parametrize(
    "keys", [{"min_count": 1}, {"min_share": 1.5}, {"min_chars": 0}, {"lines": 1}]
)
def test_wrong_keys_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(keys))):
        RepeatedLinesConfig.model_validate(keys)
