"""Rows of bytes in their places against slices."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from assets.sharded.kernels.place_rows import place_rows


@given(st.lists(st.tuples(st.binary(max_size=70), st.integers(0, 3)), max_size=6))
@example([(b"", 0), (bytes(range(1, 65)), 1), (b"\xff", 0)])
def test_rows_are_written_to_their_places_and_nowhere_else(rows: list[tuple[bytes, int]]) -> None:
    content = b"".join(row for row, _ in rows)
    starts = np.cumsum([0, *(len(row) for row, _ in rows)])
    expected, places = bytearray(), []
    for row, gap in rows:
        expected += b"." * gap
        places.append(len(expected))
        expected += row
    expected += b"."
    target = np.full(len(expected), ord("."), np.uint8)

    place_rows(target, np.array(places, np.int64), np.frombuffer(content, np.uint8), starts)

    assert target.tobytes() == bytes(expected)
