"""URLs in normal form: which spellings are one page, and which are not."""

from prelude import given, st
from tables import cases

from resources.urls import Url, parse_url, without_tracking

PAGE = "https://example.org/a/b~c?id=1"
SAME = {
    "case": "HTTPS://www.Example.ORG/A/b~c?ID=1",
    "no scheme": "example.org/a/b~c?id=1",
    "own port": "https://example.org:443/a/b~c?id=1",
    "port of http": "http://example.org:80/a/b~c?id=1",
    "fragment": f"{PAGE}#top",
    "text fragment": f"{PAGE}#:~:text=a,b",
    "dot segments": "https://example.org/x/../a/./b~c?id=1",
    "escaped dots": "https://example.org/x/%2e%2E/a/b~c?id=1",
    "escapes": "https://example.org/%61/b%7Ec?id=1",
    "dot of the root": "https://example.org./a/b~c?id=1",
    "user info": "https://user:p%40ss@example.org/a/b~c?id=1",
    "slash at the end": f"{PAGE}/",
    "tracking": "https://example.org/a/b~c?utm_source=x&id=1&gclid=2",
    "blanks around it": f" {PAGE}\n",
}
OTHER = {
    "port": "https://example.org:8443/a/b~c?id=1",
    "query": "https://example.org/a/b~c?id=2",
    "delimiter": "https://example.org/a%2Fb~c?id=1",
    "host": "https://m.example.org/a/b~c?id=1",
    "route": f"{PAGE}#!/two",
}


def address(url: str) -> str:
    return parse_url(url).address(("utm_*", "gclid"))


def test_spellings_of_a_page_have_one_address_and_other_pages_another() -> None:
    assert {name: address(url) for name, url in SAME.items()} == dict.fromkeys(SAME, address(PAGE))
    assert address(PAGE) == "example.org/a/b~c?id=1"
    assert not [name for name, url in OTHER.items() if address(url) == address(PAGE)]


@cases("""
    written | host
    MÜNCHEN.de | xn--mnchen-3ya.de
    münchen.de | xn--mnchen-3ya.de
    xn--mnchen-3ya.de | xn--mnchen-3ya.de
    m%C3%BCnchen。de | xn--mnchen-3ya.de
    faß.de | xn--fa-hia.de
    ☃.net | xn--n3h.net
    a_ü.net | xn--a_-yka.net
    r3---sn.example.com | r3---sn.example.com
    [2001:DB8::0001]:443 | [2001:db8::1]
    two words.org | ""
    a..org | ""
""")
def test_a_host_has_one_form(written: str, host: str) -> None:
    assert parse_url(f"https://{written}/").host == host


def test_what_has_no_host_keeps_all_of_it() -> None:
    assert parse_url("urn:isbn:123") == Url("", "", None, "urn:isbn:123", "", "")
    assert parse_url("file:///a/b").address() == "/a/b"
    assert parse_url("") == Url("", "", None, "/", "", "")


def test_tracking_parameters_are_names_or_beginnings() -> None:
    assert without_tracking("utm_id=1&a=utm_id&UTM=2&Ref=3", ("utm_*", "ref")) == "a=utm_id&UTM=2"
    assert without_tracking("utm_id=1", ()) == "utm_id=1"


@given(st.text("aÄ.:/?#@%4E1\u037e \u212a[]", max_size=20))
def test_a_normal_form_is_its_own(text: str) -> None:
    url = parse_url(f"https://a.org/{text}")
    again = f"https://{url.host}{url.place}" + (f"#{url.route}" if url.route else "")
    assert parse_url(again) == url
