"""Records are the same bytes for the same content, and their sums lose nothing."""

import msgspec
from prelude import given, pytest, settings, st

from resources.store.records import (
    FileRecord,
    Manifest,
    PartRecord,
    Stats,
    add_counts,
    add_stats,
    fingerprint_of,
    to_json,
)

FILES = (
    FileRecord("documents", "p.documents.parquet", 2, 90, "aa", "bb"),
    FileRecord("decisions", "p.decisions.parquet", 3, 50, "cc", "dd"),
)
COUNTS = st.dictionaries(st.sampled_from(["a", "b", "é"]), st.integers(0, 100))


def manifest(**about: object) -> Manifest:
    stats = Stats(3, 2, {"too_short": 1}, numbers={"documents": 2})
    part = PartRecord("part", "f" * 32, FILES, stats)
    return Manifest("filtered", "web", "e" * 32, "1", {"rules": None}, (part,), stats, about)


def test_rows_are_conserved_if_the_sum_holds() -> None:
    whole = Stats(rows_in=10, rows_kept=4, rejected={"a": 1, "b": 2}, duplicates=2, quarantined=1)
    assert Stats().is_conserved() and whole.is_conserved()
    assert not Stats(rows_in=10, rows_kept=9).is_conserved()
    assert not Stats(rows_in=10, rows_kept=10, duplicates=1).is_conserved()


def test_file_of_a_kind_or_none() -> None:
    part = PartRecord("part", "f", FILES, Stats())
    assert part.file("decisions") is FILES[1]
    assert part.file("tokens") is None


def test_json_is_sorted_indented_and_read_back() -> None:
    assert to_json({"b": [1], "a": "é"}) == '{\n  "a": "é",\n  "b": [\n    1\n  ]\n}\n'.encode()
    original = manifest(tokenizer="t", scores={"é": 0.5})
    assert msgspec.json.decode(to_json(original), type=Manifest) == original
    with pytest.raises(msgspec.ValidationError, match="unknown field `seconds`"):
        msgspec.json.decode(b'{"rows_in": 1, "seconds": 3}', type=Stats)


def test_fingerprint_ignores_the_order_of_keys_and_sees_everything_else() -> None:
    assert fingerprint_of({"a": 1, "b": 2}) == fingerprint_of({"b": 2, "a": 1})
    parts = [(), (1,), ("1",), (1, 2), ([1, 2],), ({"a": 1},), ({"a": None},), (1.5,), (None,)]
    assert len({fingerprint_of(*part) for part in parts}) == len(parts)


def test_fingerprint_of_known_content() -> None:
    """Another value here means that every part of every user's corpus is computed again."""
    found = fingerprint_of("filtered", "1", {"b": 1.5, "a": None}, ["é"])
    assert found == "169ced144739a68025a108669eeb83ba"


def test_counts_are_summed_and_sorted() -> None:
    assert list(add_counts([{"b": 1}, {}, {"a": 2, "b": 3}]).items()) == [("a", 2), ("b", 4)]
    assert add_counts([]) == {} and add_stats([]) == Stats()
    Stats().rejected["a"] = 1
    assert Stats().rejected == {}  # records share none


def test_extra_sums_counts_and_drops_what_is_none() -> None:
    first = {"documents": 2, "lengths": {"a": 1}, "bucket": "0-128", "mix": {"web": {"weight": 1}}}
    second = {"documents": 3, "lengths": {"a": 1, "b": 2}, "bucket": "0-128", "only_here": 1}
    total = add_stats([Stats(numbers=first), Stats(numbers=second)])
    assert total.numbers == {"documents": 5, "lengths": {"a": 2, "b": 2}, "only_here": 1}


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 100), COUNTS, st.integers(0, 9), st.integers(0, 9))))
def test_sum_of_conserved_stats_is_conserved(
    parts: list[tuple[int, dict[str, int], int, int]],
) -> None:
    all_stats = [
        Stats(kept + sum(rejected.values()) + dup + bad, kept, rejected, dup, bad, 1, 2, 3)
        for kept, rejected, dup, bad in parts
    ]
    total = add_stats(all_stats)
    assert total.is_conserved()
    assert total.rows_in == sum(stats.rows_in for stats in all_stats)
    assert (total.tokens, total.bytes, total.text_bytes) == tuple(len(parts) * n for n in (1, 2, 3))
