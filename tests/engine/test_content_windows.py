"""Windows cut by content: whole, bounded, and local under changes."""

from prelude import given, pytest, st

from resources.content_windows import content_windows

pytestmark = pytest.mark.fast

MOST = 100
ITEMS = st.dictionaries(st.text("abcdefgh", max_size=6), st.integers(0, MOST), max_size=60)


def windows_of(items: dict[str, int]) -> list[tuple[str, ...]]:
    names = sorted(items)
    windows = content_windows(names, [items[name] for name in names], MOST)
    return [tuple(names[window]) for window in windows]


def test_borders_are_the_same_in_every_version() -> None:
    names = [f"file-{number}.jsonl" for number in range(10)]
    stops = [window.stop for window in content_windows(names, [30] * 10, MOST)]
    assert stops == [1, 2, 5, 7, 10]
    assert content_windows([], [], MOST) == []


@given(ITEMS)
def test_every_item_is_in_one_window_in_order_that_is_not_larger_than_the_limit(
    items: dict[str, int],
) -> None:
    assert [name for window in windows_of(items) for name in window] == sorted(items)
    for window in windows_of(items):
        assert len(window) == 1 or sum(items[name] for name in window) <= MOST


@given(ITEMS, st.text("abcdefgh", max_size=6), st.integers(0, 150))
def test_an_item_changes_its_own_window_and_those_beside_it(
    items: dict[str, int], name: str, size: int
) -> None:
    items.pop(name, None)
    before, after = windows_of(items), windows_of(items | {name: size})
    assert len(set(before) - set(after)) <= 3
    changed = {other for window in set(after) - set(before) for other in window} - {name}
    assert sum(items[other] for other in changed) <= 3 * MOST


def test_windows_are_half_full_on_average() -> None:
    names = [str(number) for number in range(20_000)]
    windows = content_windows(names, [1] * len(names), MOST)
    assert 0.4 < len(names) / len(windows) / MOST < 0.75
