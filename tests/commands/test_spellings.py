"""A search without case finds every spelling of a string, and nothing else."""

from unicodedata import normalize

from many_examples import many_examples
from prelude import example, given, pl, pytest, st

from pipeline_defs.commands.look.spellings import folded, spellings

TRICKY = "aAsSßẞſfFiIİıﬁﬃtTﬆʼnŉéÉêệjJǰkKΣσςαΆᾳᾷιΩµК й가각.(*e"
STRINGS = st.text(st.sampled_from(TRICKY), min_size=1, max_size=9)
FORMS = st.sampled_from(
    [str, str.upper, str.lower, str.casefold, str.swapcase, lambda text: normalize("NFD", text)]
)


def is_in(text: str, query: str) -> bool:
    return pl.Series([text]).str.find(spellings(query))[0] is not None


@many_examples(3000)
@given(STRINGS, FORMS, FORMS, FORMS)
@example("fffi", str, str, str)
@example("\u0958", str, str, str)
@example("\u01f0", str.upper, str, str)
def test_every_spelling_is_found(query: str, one: object, other: object, third: object) -> None:
    spelled = query
    for form in (one, other, third):
        spelled = form(spelled)  # type: ignore[operator]
    if folded(spelled) == folded(query):  # İ and ı change under upper and lower
        assert is_in(f"x {spelled} y", query)
        assert is_in(f"x {normalize('NFC', spelled)} y", query)


@many_examples(3000)
@given(STRINGS, st.text(st.sampled_from(TRICKY), max_size=30))
def test_nothing_else_is_found(query: str, text: str) -> None:
    if is_in(text, query):
        assert folded(query) in folded(text)


@pytest.mark.parametrize(
    ("query", "text"), [("cafe", "cafe\u0301"), ("cafe", "café"), ("5 .m", "5 µm"), ("가", "각")]
)
def test_other_letters_are_not_found(query: str, text: str) -> None:
    assert not is_in(text, query)
    assert not is_in(normalize("NFD", text), query)
