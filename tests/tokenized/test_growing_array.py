"""Arrays grow at their end, also beyond the room that was reserved."""

import numpy as np

from assets.tokenized.growing_array import GrowingArray


def test_values_are_appended_and_cast() -> None:
    array = GrowingArray(np.uint16, 3)
    array.extend(np.array([1, 65535], np.uint32))
    array.extend([7])
    assert (array.values.dtype, array.values.tolist()) == (np.uint16, [1, 65535, 7])


def test_more_than_the_capacity_is_kept() -> None:
    array = GrowingArray(np.uint32, 0)
    for number in range(100):
        array.extend([number, number])
    assert array.values.tolist() == [number for number in range(100) for _ in range(2)]


def test_a_truncated_array_goes_on_from_there() -> None:
    array = GrowingArray(np.uint16, 4)
    array.extend([1, 2, 3])
    array.truncate(5)
    array.truncate(1)
    array.extend([4])
    assert array.values.tolist() == [1, 4]


def test_values_are_in_the_array_that_was_given() -> None:
    memory = np.full(9, 5, np.uint16)
    array = GrowingArray(np.uint16, 3, lambda size, dtype: memory.view(dtype)[:size])
    array.extend([1, 2])
    assert memory[:3].tolist() == [1, 2, 5]
    array.extend([3, 4])
    assert (memory[:4].tolist(), array.values.tolist()) == ([1, 2, 5, 5], [1, 2, 3, 4])
