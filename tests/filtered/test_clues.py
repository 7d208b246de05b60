"""Every candidate is in a window around a clue of its scan, so that no scan misses one."""

from hypothesis import HealthCheck, given, settings
from prelude import np, pl, pytest, re, st

from assets.filtered.kernels.clue_scan import BLOCK
from assets.filtered.pii.candidates import (
    REJECTED,
    candidates,
    check_candidates,
    elements_of,
    windows_of,
)
from assets.filtered.pii.find_pii import SCANS
from assets.filtered.pii.scan import FAR, Scan
from assets.text.buffers import text_buffers

# Classes that Python's regexes lack, as characters of each.
CLASSES = {r"\p{L}": "a-zé日", r"\p{M}": "\u0301", r"\p{N}": "0-9"}
NAMES = [f"{number}-{scan.kind}" for number, scan in enumerate(SCANS)]


def as_python(pattern: str) -> str:
    """Return a pattern of a scan for Python's regexes."""
    for name, characters in CLASSES.items():
        pattern = pattern.replace(name, characters)
    return pattern


def scan_of(clues: tuple[str, ...], held: str = ".", reach: int = FAR) -> Scan:
    """Return a scan of which only the windows count."""
    return Scan("email", "", lambda text, start, end: iter(()), clues, held, reach)


def windows(texts: list[str], scan: Scan) -> list[tuple[int, str]]:
    """Return row and text of the windows of a scan."""
    data, offsets = text_buffers(pl.Series(texts, dtype=pl.String))
    found = next(windows_of(data, offsets, [scan])).tolist()
    return [(row, data[start:end].tobytes().decode()) for row, start, end in found]


def likely_rows(texts: list[str], clues: tuple[str, ...]) -> list[int]:
    """Return the rows with one of the clues."""
    return sorted({row for row, _ in windows(texts, scan_of(clues))})


def places(texts: list[str], scan: Scan, *, whole: bool = False) -> set[tuple[int, int, int]]:
    """Return the candidates in the windows around clues, or in the whole texts."""
    data, offsets = text_buffers(pl.Series(texts, dtype=pl.String))
    all_of_it = np.column_stack([np.arange(len(texts)), offsets[:-1], offsets[1:]])
    own = all_of_it if whole else next(windows_of(data, offsets, [scan]))
    return set(map(tuple, candidates(data, own, scan).tolist()))


def counted(texts: list[str], scan: Scan, found: set[tuple[int, int, int]]) -> list[list[int]]:
    """Return the spans that the check of a scan yields for candidates."""
    data, offsets = text_buffers(pl.Series(texts, dtype=pl.String))
    if not found:
        return []
    checked = check_candidates(data, offsets, scan, np.array(sorted(found)))
    return checked[checked[:, 3] != REJECTED].tolist()


@pytest.mark.parametrize("scan", SCANS, ids=NAMES)
def test_windows_around_clues_have_the_candidates_of_the_whole_text(scan: Scan) -> None:
    pattern = as_python(scan.candidate)
    matches = st.one_of(st.from_regex(pattern, fullmatch=is_whole) for is_whole in (True, False))
    # What stands between two candidates may belong to either, or cut them.
    between = st.text("a1 -.@:\n\"'(=é密\u2003", max_size=4) | st.sampled_from(
        ["x" * 70, " " * 150]
    )
    texts = st.lists(matches | between, max_size=6).map("".join)

    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(st.lists(texts, min_size=1, max_size=4))
    def check(found: list[str]) -> None:
        found = [text.encode(errors="ignore").decode() for text in found]
        near, whole = places(found, scan), places(found, scan, whole=True)
        assert near <= whole
        # Long runs have no clue where no number in them can count.
        assert near == whole or scan.kind in ("phone", "credit_card", "national_id")
        assert counted(found, scan, whole - near) == []

    check()


@pytest.mark.parametrize("name", ["KEY", "to\u212aen", "\u017fecret", "\u212aey", "TO\u212aEN"])
def test_a_key_is_found_by_a_name_in_letters_that_fold_to_ascii(name: str) -> None:
    text = f'{name} = "{"kX9vQ2mZ7rT4wLp1" * 2}"'
    assigned = next(scan for scan in SCANS if scan.candidate.startswith("(?i)(?:key|token"))
    assert places([text], assigned) == places([text], assigned, whole=True) != set()


def test_a_clue_is_a_pattern_of_bytes() -> None:
    assert likely_rows(["12-34", "1234", "x12-3", "12-"], (r"\d{2}-\d",)) == [0, 2]
    assert likely_rows(["a pwd", "pwdx", "pw d", "密码"], ("pwd.", "密码")) == [0, 1, 3]
    assert likely_rows(["ends pw=", "pw=", "a.b.", "aXbX"], ("pw=.", r"a\.b\.")) == [0, 1, 2]
    assert likely_rows(["a@b", "ab", "@", ""], ("@",)) == [0, 2]
    assert likely_rows(["a@b", "-@b", "a@", "@b"], ("[a-z]@[a-z]",)) == [0]


def test_a_clue_does_not_reach_over_the_end_of_a_text() -> None:
    assert likely_rows(["pass", "word", "password", "a@", "b"], ("ssword", "asswor", "@b")) == [2]


def test_a_window_ends_at_bytes_that_no_candidate_has() -> None:
    found = windows(["(see a.b@c.d) or <e@f>,@"], scan_of(("[a-z]@",), "[a-z.@]"))
    assert found == [(0, "a.b@c.d"), (0, "e@f")]


def test_windows_reach_to_whole_characters_and_grow_together() -> None:
    text = "é" * 9 + "1234" + "é" * 3 + "5678" + "é" * 9

    assert windows([text], scan_of((r"\d{4}",), reach=3)) == [(0, "éé123"), (0, "éé567")]
    assert windows([text], scan_of((r"\d{4}",), reach=5)) == [(0, "ééé1234ééé5678é")]


def test_clues_across_the_blocks_of_the_kernel_are_found() -> None:
    for before in range(BLOCK - 5, BLOCK + 2):
        assert windows(["x" * before + "pwd=" + "@"], scan_of(("pwd=",), "[pwd=]")) == [(0, "pwd=")]
        assert windows(["x" * before + "@b"], scan_of(("@b",), "[@b]")) == [(0, "@b")]


@pytest.mark.parametrize("clue", ["pwd=", "[pP][wW][dD].", "[a-z]{4}-\\d{3}", "curl"])
def test_a_clue_is_found_at_even_and_odd_places(clue: str) -> None:
    text = {"pwd=": "pwd=", "curl": "CURL".lower()}.get(clue, "PWD" if "W" in clue else "abcd-123")
    for before in range(9):
        assert likely_rows(["", "é", "-" * before + text, text[:-1]], (clue,)) == [2]


def test_more_clues_than_groups_are_told_apart() -> None:
    words = [f"{letter}{digit}{letter}x" for letter in "abcdefghij" for digit in range(10)]
    data, offsets = text_buffers(pl.Series(["-" * (i % 9) + word for i, word in enumerate(words)]))

    own = list(windows_of(data, offsets, [scan_of((word,)) for word in words]))

    assert [found[:, 0].tolist() for found in own] == [[i] for i in range(len(words))]


def test_matches_have_the_places_where_the_regex_found_them() -> None:
    scan = scan_of(("ab",))._replace(candidate="(?:ab)+c|x")
    text = "ab" * 5 + "-abababc" + "abxab" * 2 + "abc"
    expected = {*((0, 11, 18), (0, 20, 21), (0, 25, 26), (0, 26, 31)), (1, 31, 34)}
    assert places([text, "abc"], scan, whole=True) == expected


def test_each_scan_has_windows_of_its_own() -> None:
    data, offsets = text_buffers(pl.Series(["abcd wxyz", "wxyz", "none"]))
    scans = [scan_of(("abcd",)), scan_of(("wxyz",)), scan_of(("abcd", "none"))]
    rows = [own[:, 0].tolist() for own in windows_of(data, offsets, scans)]
    assert rows == [[0], [0, 1], [0, 2]]


def test_long_lists_have_all_windows_wherever_they_are() -> None:
    dense, sparse = "a@b " * 20_000, "-" * 60_000 + "a@b "
    for text in (dense, sparse + dense, dense + sparse * 9):
        found = windows([text, text], scan_of(("@",), "[ab@]"))
        assert found == [(row, "a@b") for row in range(2) for _ in range(text.count("@"))]


@given(st.binary(min_size=1, max_size=1))
def test_an_element_allows_what_its_regex_does(byte: bytes) -> None:
    rows = elements_of(r"a[b-d\xa0]\d.")
    for row, pattern in zip(rows, (b"a", rb"[b-d\xa0]", rb"\d", b"."), strict=True):
        is_allowed = re.fullmatch(pattern, byte, re.DOTALL) is not None
        assert row[byte[0]] == np.uint8(is_allowed)
