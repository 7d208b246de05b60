"""Hosts and addresses of columns of URLs: the expressions for plain ones give what `Url` does."""

from prelude import given, pl, st

from assets.text.addresses import PARTS, url_parts
from resources.urls import parse_url

PIECES = [
    *"abK.-_/:?#@%& ;=~+*![]|\\",
    "http://",
    "https://",
    "www.",
    "//",
    "/..",
    "%7e",
    "%2f",
    "ü",
]
PIECES += ["%c3%bc", "utm_x=1", "&", "\u212a", "xn--", "a.org", ":443", "\t", "%", "..", "\u3002"]
URLS = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


@given(st.lists(st.none() | URLS))
def test_columns_have_the_parts_of_each_url(urls: list[str | None]) -> None:
    found = url_parts(pl.Series(urls, dtype=pl.String), ("utm_*",))
    parsed = [None if url is None else parse_url(url) for url in urls]
    assert found["host"].to_list() == [url and url.domain for url in parsed]
    assert found["address"].to_list() == [url and url.address(("utm_*",)) for url in parsed]
    assert dict(found.schema) == PARTS
