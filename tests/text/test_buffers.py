"""Buffers of text columns, converted once or shared."""

from prelude import given, pairwise, pl, st

from assets.text.buffers import shared_buffers, text_buffers

TEXTS = ["a", "", "漢字", "a text of more than twelve bytes", "b", "another text of many bytes"]


def held(texts: pl.Series) -> list[str]:
    data, starts = text_buffers(texts)
    return [data[i:j].tobytes().decode() for i, j in pairwise(starts.tolist())]


def test_buffers_of_a_column_are_made_once_while_they_are_shared() -> None:
    frame = pl.DataFrame({"text": TEXTS})

    with shared_buffers():
        first, second = text_buffers(frame["text"]), text_buffers(frame.clone()["text"])
    third = text_buffers(frame["text"])

    assert first is second
    assert first is not third


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.booleans()), max_size=8))
def test_shared_buffers_are_those_of_the_column(wanted: list[tuple[int, int, bool]]) -> None:
    column = pl.Series(TEXTS)
    with shared_buffers():
        for start, size, is_changed in wanted:
            texts = column.slice(start, size)
            texts = texts.str.to_uppercase() if is_changed else texts
            assert held(texts) == texts.to_list()
            assert held(texts) == texts.to_list()
