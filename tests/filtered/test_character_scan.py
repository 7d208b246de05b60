"""The kernel of kinds of characters against slow references."""

from prelude import given, np, pl, pytest, re, st, sys

from assets.filtered.kernels.character_scan import dominant_groups, matching_codes
from assets.text.buffers import text_buffers

ODD = st.text(st.sampled_from("aZ 1\n\t\x00\x7fяЯé漢字\u0301😀\U0010ffff"), max_size=12)
LONG = st.tuples(st.integers(0, 130), ODD, st.integers(0, 130)).map(
    lambda parts: "x" * parts[0] + parts[1] + "y" * parts[2]
)


@pytest.mark.parametrize(
    "pattern", ["[a-cé\u4e2d]", "[\U0010fff0-\U0010ffff]", "[\\x00\\x3f\\x40]"]
)
def test_matching_codes_are_those_that_match_alone(pattern: str) -> None:
    every = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    expected = [code for code in every if re.match(pattern, chr(code))]
    assert matching_codes(pattern).tolist() == expected
    some = np.array([*range(60, 70), 97, 0xE9, 0x10FFFF])
    assert matching_codes(pattern, some).tolist() == [c for c in some.tolist() if c in expected]


@given(st.lists(LONG | ODD, max_size=4))
def test_dominant_groups_weigh_letters_by_their_bytes(texts: list[str]) -> None:
    members = {1: "яЯ", 2: "aZxy", 3: "é", 5: "漢字", 7: "😀"}
    groups = np.zeros(0x110000, np.uint8)
    for group, letters in members.items():
        groups[[ord(letter) for letter in letters]] = group
    for first in "az", "AZ":
        groups[ord(first[0]) : ord(first[1]) + 1] = 2

    found = dominant_groups(*text_buffers(pl.Series(texts, dtype=pl.String)), groups)

    for text, group in zip(texts, found.tolist(), strict=True):
        weights = {
            group: sum(len(sign.encode()) for sign in text if sign in letters)
            for group, letters in members.items()
        }
        best = max(weights, key=lambda group: weights[group])
        assert group == (best if weights[best] else 0)
