"""Every text with a candidate has a clue of its scan, so that no scan misses a row."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assets.filtered.pii.clues import elements_of, rows_with_clues
from assets.filtered.pii.find_pii import candidates
from assets.filtered.pii.patterns import SCANS
from assets.filtered.pii.scan import Scan

# Classes that Python's regexes lack, as characters of each.
CLASSES = {r"\p{L}": "a-zé日", r"\p{M}": "\u0301", r"\p{N}": "0-9"}
NAMES = [f"{number}-{scan.kind}" for number, scan in enumerate(SCANS)]


def as_python(pattern: str) -> str:
    """Return a pattern of a scan for Python's regexes."""
    for name, characters in CLASSES.items():
        pattern = pattern.replace(name, characters)
    return pattern


def likely_rows(texts: list[str], clues: tuple[str, ...]) -> list[int]:
    """Return the rows with one of the clues."""
    return rows_with_clues(pl.Series(texts, dtype=pl.String), (clues,))[0].tolist()


def found_by_clues(texts: list[str], scan: Scan) -> list[tuple[int, str, list[tuple[int, int]]]]:
    """Return the candidates in the rows with clues."""
    series = pl.Series(texts, dtype=pl.String)
    return candidates(series, scan, rows_with_clues(series, (scan.clues,))[0])


@pytest.mark.parametrize("scan", SCANS, ids=NAMES)
def test_what_the_patterns_match_has_a_clue(scan: Scan) -> None:
    patterns = {as_python(scan.core), as_python(scan.candidate)}
    texts = st.one_of(st.from_regex(pattern, fullmatch=is_whole) for pattern in patterns
                      for is_whole in (True, False))  # fmt: skip

    @settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
    @given(st.lists(texts, min_size=1, max_size=5))
    def check(found: list[str]) -> None:
        found = [text.encode(errors="ignore").decode() for text in found]
        assert found_by_clues(found, scan) == candidates(pl.Series(found), scan)

    check()


@pytest.mark.parametrize("name", ["KEY", "to\u212aen", "\u017fecret", "\u212aey", "TO\u212aEN"])
def test_a_key_is_found_by_a_name_in_letters_that_fold_to_ascii(name: str) -> None:
    text = f'{name} = "{"kX9vQ2mZ7rT4wLp1" * 2}"'
    assigned = next(scan for scan in SCANS if scan.core.startswith("(?i)(?:key|token"))
    assert found_by_clues([text], assigned) == candidates(pl.Series([text]), assigned) != []


def test_a_clue_is_a_pattern_of_bytes() -> None:
    assert likely_rows(["12-34", "1234", "x12-3", "12-"], (r"\d{2}-\d",)) == [0, 2]
    assert likely_rows(["a pwd", "pwdx", "pw d", "密码"], ("pwd.", "密码")) == [0, 1, 3]
    assert likely_rows(["ends pw=", "pw=", "a.b.", "aXbX"], ("pw=.", r"a\.b\.")) == [0, 1, 2]
    assert likely_rows(["a@b", "ab", ""], ("@",)) == [0]


def test_a_clue_does_not_reach_over_the_end_of_a_text() -> None:
    assert likely_rows(["pass", "word", "password"], ("ssword", "asswor")) == [2]


def test_each_scan_has_rows_of_its_own() -> None:
    texts = pl.Series(["abcd wxyz", "wxyz", "none"])
    rows = rows_with_clues(texts, (("abcd",), ("wxyz",), ("abcd", "none")))
    assert [own.tolist() for own in rows] == [[0], [0, 1], [0, 2]]


@given(st.binary(min_size=1, max_size=1))
def test_an_element_allows_what_its_regex_does(byte: bytes) -> None:
    rows = elements_of(r"a[b-d\xa0]\d.")
    for row, pattern in zip(rows, (b"a", rb"[b-d\xa0]", rb"\d", b"."), strict=True):
        is_allowed = re.fullmatch(pattern, byte, re.DOTALL) is not None
        assert row[byte[0]] == np.uint8(is_allowed)
