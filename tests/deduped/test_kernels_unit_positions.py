"""Places of words and of characters in their texts."""

from prelude import example, given, np, pl, settings, st

from assets.deduped.kernels.unit_positions import locate_units
from assets.text.buffers import code_point_entries, text_buffers

Span = tuple[int, int]
texts = st.text("aé中𝒜. \n", max_size=15)


def unit_places(text: str, by_word: bool = True) -> list[Span]:
    """First byte and byte after the last one of each word, or of each character of words."""
    places: list[Span] = []
    at, is_open = 0, False
    for character in text:
        width, is_word, is_han = len(character.encode()), character.isalpha(), character == "中"
        if is_word and is_open and by_word and not is_han:
            places[-1] = (places[-1][0], at + width)
        elif is_word:
            places.append((at, at + width))
        is_open = is_word and not is_han
        at += width
    return places


@settings(max_examples=300)
@given(st.lists(texts, max_size=3), st.booleans(), st.data())
@example(["a中b. é", "中中 a"], True, None)
@example(["a中b. é", "", "中中 a"], False, None)
def test_units_are_located_in_their_texts(
    contents: list[str], by_word: bool, data: st.DataObject | None
) -> None:
    places = {
        (row, unit): place
        for row, text in enumerate(contents)
        for unit, place in enumerate(unit_places(text, by_word))
    }
    wanted = sorted(places)
    if data is not None and places:
        wanted = sorted(data.draw(st.sets(st.sampled_from(wanted))))
    buffers = text_buffers(pl.Series(contents, dtype=pl.String))
    pairs = np.array(wanted, np.int64).reshape(-1, 2)

    located = locate_units(*buffers, code_point_entries(), pairs, by_word)

    assert [tuple(place) for place in located.tolist()] == [places[pair] for pair in wanted]
