"""The ingest ledger: who was first, also when parts change, grow, go and come back."""

import pytest

from assets.deduped.index.ledger import (
    FileRows,
    Ingested,
    LedgerEntry,
    SignedPart,
    continue_ledger,
    extend,
    read_order,
)


def signed(part: str, fingerprint: str = "f", rows: int = 4) -> SignedPart:
    return SignedPart("s", part, fingerprint, rows)


def entry(number: int, part: str, generations: tuple[tuple[int, int], ...]) -> LedgerEntry:
    return LedgerEntry(number, generations, "s", part, "f", generations[-1][0])


def test_a_first_run_numbers_all_in_the_order_of_the_config() -> None:
    kept, added = continue_ledger([], [signed("b"), signed("a")], {}, 0)

    assert kept == []
    assert added == [entry(0, "b", ((4, 1),)), entry(1, "a", ((4, 1),))]


def test_what_is_unchanged_keeps_its_number_and_what_is_new_comes_after() -> None:
    ledger = [entry(0, "b", ((4, 1),)), entry(1, "a", ((4, 1),))]

    kept, added = continue_ledger(ledger, [signed("new"), signed("a")], {}, 2)

    assert kept == ledger[1:]
    assert added == [entry(2, "new", ((4, 2),))]


def test_a_part_that_grew_has_new_rows_of_a_new_generation() -> None:
    ledger = [entry(0, "a", ((4, 1),)), entry(1, "b", ((4, 3),))]

    kept, added = continue_ledger(ledger, [signed("a", "g", 9), signed("b")], {}, 2)

    assert kept == ledger[1:]
    assert added == [LedgerEntry(2, ((4, 1), (9, 4)), "s", "a", "g", 9)]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((("m", 4), ("z", 6)), ((4, 1), (6, 2))),  # a file came behind
        ((("a", 3), ("m", 7)), ((3, 2), (7, 1))),  # before, which renames the part
        ((("a", 1), ("m", 6), ("z", 7)), ((1, 2), (5, 1), (7, 2))),  # and it was appended to
        ((("m", 2),), ((2, 1),)),
        ((("new", 2),), ((2, 2),)),
    ],
)
def test_files_of_a_part_keep_their_generations(
    files: FileRows, expected: tuple[tuple[int, int], ...]
) -> None:
    ledger = [LedgerEntry(0, ((4, 1),), "s", "m-0000", "f", 4, (("m", 4),))]
    now = SignedPart("s", f"{files[0][0]}-0000", "g", files[-1][1], files)

    assert continue_ledger(ledger, [now], {}, 1)[1][0].generations == expected


def test_slices_of_a_file_keep_generations_by_part() -> None:
    ledger = [LedgerEntry(0, ((4, 1),), "s", "m-0000", "f", 4, (("m", 4),))]
    slices = [SignedPart("s", f"m-000{n}", "g", 4, (("m", 4),)) for n in range(2)]

    added = continue_ledger(ledger, slices, {}, 1)[1]

    assert [entry.generations for entry in added] == [((4, 1),), ((4, 2),)]


@pytest.mark.parametrize(
    ("before", "rows", "expected"),
    [
        ((), 5, ((5, 9),)),
        (((4, 1),), 4, ((4, 1),)),
        (((4, 1), (6, 2)), 3, ((3, 1),)),
        (((4, 1), (6, 2)), 5, ((4, 1), (5, 2))),
        (((4, 1), (6, 2)), 7, ((4, 1), (6, 2), (7, 9))),
        (((4, 1),), 0, ()),
    ],
)
def test_rows_keep_their_generations(
    before: tuple[tuple[int, int], ...], rows: int, expected: tuple[tuple[int, int], ...]
) -> None:
    assert extend(before, rows, 9) == expected


def test_the_order_of_another_build_comes_first() -> None:
    order = {("s", "c"): Ingested(0, ((4, 2),)), ("s", "a"): Ingested(1, ((4, 1),))}

    _, added = continue_ledger([], [signed("a"), signed("b"), signed("c")], order, 0)

    assert added == [entry(0, "c", ((4, 2),)), entry(1, "a", ((4, 1),)), entry(2, "b", ((4, 3),))]


def test_parts_under_another_config_keep_their_order_and_generations() -> None:
    ledger = [entry(0, "b", ((4, 2),)), entry(1, "a", ((4, 1),))]

    kept, added = continue_ledger(ledger, [signed("a", "x"), signed("b", "y")], {}, 2)

    assert kept == []
    assert [(e.part, e.generations) for e in added] == [("b", ((4, 2),)), ("a", ((4, 1),))]


def test_an_exported_ledger_is_read_back() -> None:
    content = b'[{"source": "s", "part": "a", "generations": [[4, 1], [9, 2]], "id": 7}]'

    assert read_order("x.json", content) == {("s", "a"): Ingested(0, ((4, 1), (9, 2)))}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'[{"source": "s"}]',
        b"\xff",
        b'[{"source": "s", "part": "a", "generations": [[4, -1]]}]',
        b'[{"source": "s", "part": "a", "holdout_tokens": [500, 1.5]}]',
        b'[{"source": "s", "part": "a", "generations": []}, {"source": "s", "part": "a", '
        b'"generations": []}]',
    ],
)
def test_what_is_no_ledger_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"dedup\.ledger: x\.json .*`corpus duplicates ledger`"):
        read_order("x.json", content)


def test_a_ledger_nested_without_end_is_refused() -> None:
    nested = b'[{"source": "s", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]"
    with pytest.raises(ValueError, match=r"x\.json is no ledger \(maximum recursion"):
        read_order("x.json", nested)
