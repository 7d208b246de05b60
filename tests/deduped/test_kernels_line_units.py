"""Lines and paragraphs of texts against split and join."""

from prelude import example, given, np, pairwise, pl, settings, st

from assets.deduped.kernels.line_units import drop_units, find_units
from assets.text.buffers import text_buffers
from assets.text.kernels.hashing import hash_bytes

SPACES = " \t\n\v\f\r"
texts = st.lists(st.text("\n\n\t\r\v aé中\x08\x0e\u00a0", max_size=12), max_size=3)


def plain_units(text: str, by_paragraph: bool) -> list[str]:
    """Lines, or runs of lines that are not blank and single blank lines."""
    units: list[str] = []
    was_text = False
    for line in text.split("\n"):
        is_text = bool(line.strip(SPACES))
        if by_paragraph and is_text and was_text:
            units[-1] += f"\n{line}"
        else:
            units.append(line)
        was_text = is_text
    return units


def compared(unit: str, folds: bool, min_chars: int) -> bytes:
    if not unit.strip(SPACES):
        return b""
    form = " ".join("".join(" " if c in SPACES else c for c in unit).split(" ")) if folds else unit
    form = " ".join(filter(None, form.split(" "))) if folds else form
    return form.encode() if len(form) >= min_chars else b""


@settings(max_examples=300)
@given(texts, st.booleans(), st.booleans(), st.integers(0, 4))
@example(["a\n\n b\n", "", "\n"], True, True, 1)
@example(["é中", "aa "], False, False, 3)
@example([" a \t b "], False, True, 3)
def test_units_have_the_hash_of_their_compared_form(
    contents: list[str], by_paragraph: bool, folds: bool, min_chars: int
) -> None:
    units = [(row, u) for row, text in enumerate(contents) for u in plain_units(text, by_paragraph)]
    forms = [compared(unit, folds, min_chars) for _, unit in units]
    zero = np.uint64(0)

    buffers = text_buffers(pl.Series(contents, dtype=pl.String))
    hashes, rows, data, ends = find_units(*buffers, by_paragraph, folds, min_chars)

    assert rows.tolist() == [row for row, _ in units]
    assert [data[a:b].tobytes() for a, b in pairwise(ends)] == forms
    assert hashes.tolist() == [
        int(hash_bytes(np.frombuffer(form, np.uint8), zero, np.uint64(len(form)))) if form else 0
        for form in forms
    ]


@settings(max_examples=300)
@given(texts, st.booleans(), st.data())
@example(["a\n\n\nb\n", "c"], True, None)
def test_the_other_units_remain(
    contents: list[str], by_paragraph: bool, data: st.DataObject | None
) -> None:
    units = [plain_units(text, by_paragraph) for text in contents]
    count = sum(map(len, units))
    flags = st.lists(st.booleans(), min_size=count, max_size=count)
    dropped = [True] * count if data is None else data.draw(flags)
    left, of_unit = [], iter(dropped)
    for of_text in units:
        kept, drops = [], False
        for unit in of_text:
            is_tail = by_paragraph and drops and not unit.strip(SPACES)
            drops = next(of_unit) or is_tail
            kept += [] if drops else [unit]
        left.append("\n".join(kept))

    buffers = text_buffers(pl.Series(contents, dtype=pl.String))
    out, offsets = drop_units(*buffers, by_paragraph, np.array(dropped, np.bool_))

    assert [out[a:b].tobytes().decode() for a, b in pairwise(offsets)] == left
