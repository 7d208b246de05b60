"""Lists of prose near the body, which the extractor takes for navigation."""

from prelude import given, pytest, st

from assets.raw.readers.html_child import deepen_lists
from assets.raw.readers.page_child import page_text

TEXT = "<p>A paragraph of some length that says what there is to be said about a soup.</p>"
ITEMS = "<li>Two onions</li><li>One litre of <a href=x>stock</a> of the day before</li>"
LINKS = "<li><a href=/>Home <b>page</b></a></li><li><a href=/about>About us</a></li>"


@pytest.mark.parametrize(
    ("page", "is_kept"),
    [
        (f"<UL class=x>{ITEMS}</UL>", True),
        (f"<main><div><ul>{ITEMS}</ul></div></main>", True),
        (f"<!-- <ul> --><script>'<ul>'</script><ul>{ITEMS}</ul>", True),
        (f"<ul>{LINKS}</ul><ul>{ITEMS}</ul>", True),
        (f"<ul>{ITEMS}<li>Or else:<ul><li>water</li></ul></li></ul>", True),
        (f"<nav><ul>{ITEMS}</ul></nav>", False),
        (f"<ul class=menu>{ITEMS}</ul>", False),
        (f"<footer><ul>{ITEMS}</ul></footer>", False),
    ],
)
def test_a_list_of_prose_is_main_text_wherever_it_is(page: str, is_kept: bool) -> None:
    text = page_text(f"<html><body>{TEXT}{page}{TEXT}</body></html>".encode())
    assert ("Two onions" in text, "stock of the day" in text) == (is_kept, is_kept)


def test_a_list_of_links_is_no_main_text() -> None:
    text = page_text(f"<html><body><ul>{LINKS}</ul>{TEXT}{TEXT}</body></html>".encode())
    assert "Home" not in text and "a soup" in text


def test_only_outermost_lists_that_are_not_mostly_links_are_nested_deeper() -> None:
    page = f"<ul>{LINKS}</ul><ul>{ITEMS}</ul><ul>{ITEMS}"
    assert deepen_lists(page) == (
        f"<ul>{LINKS}</ul><div><div><div><ul>{ITEMS}</ul></div></div></div><ul>{ITEMS}"
    )


PIECES = ["<ul>", "</ul>", "<ul ", "<a href=x>", "</a>", "<script>", "<!--", "-->", "text ", "<b>"]


@given(st.lists(st.sampled_from(PIECES)))
def test_a_page_only_gains_elements(pieces: list[str]) -> None:
    deep = deepen_lists("".join(pieces))
    bare = deep.replace("<div><div><div>", "").replace("</div></div></div>", "")
    assert bare == "".join(pieces)
