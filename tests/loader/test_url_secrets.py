"""Secrets of URLs: what is recorded, what is shown, and what is sent."""

import base64

from prelude import Path, pytest
from tables import cases

from corpus_loader.places import url_secrets
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.transports import Interrupted
from corpus_loader.places.url_secrets import (
    authorization,
    identity,
    is_torn,
    key_of,
    masked,
    redacted,
    shown,
)


@cases("""
    url                            | keys       | recorded
    https://h/a.jsonl              | ()         | https://h/a.jsonl
    https://h:8/@me/ä b.jsonl      | ()         | https://h:8/@me/ä b.jsonl
    https://me:pw@h/a?token=abc    | ()         | https://h/a
    https://h/a?page=2&token=abc#x | ("page",)  | https://h/a?page=2
    https://h/a?b=1&a=2&b=3        | ("a", "b") | https://h/a?b=1&a=2&b=3
    https://h?token=abc            | ()         | https://h
    https://[::1]:8/a?x            | ()         | https://[::1]:8/a
    https://h/a?p%61ge=2&&         | ("page",)  | https://h/a?p%61ge=2
""")
def test_identity_is_the_url_without_secrets(
    url: str, keys: tuple[str, ...], recorded: str
) -> None:
    assert identity(url, keys) == recorded
    assert identity(recorded, keys) == recorded


@cases("""
    text                                      | safe
    no URL at all: a@b, c?d=e                 | no URL at all: a@b, c?d=e
    https://h/a: HTTP 404                     | https://h/a: HTTP 404
    'https://me:pw@h/a?token=abc', twice      | 'https://h/a?token=***', twice
    (s3://key:pw@bucket/x?sig)                | (s3://bucket/x?***)
    at http://web/http://me:pw@h/b?k=v.       | at http://web/http://h/b?k=***.
    https://me:p/w@h/a?k=v                    | https://***
    https://me:p?w@h/a                        | https://***
    https://h/a?page=2&k=v#frag               | https://h/a?page=2&k=***
    postgresql://me:pw@h/db and HTTPS://x:y@h | postgresql://h/db and HTTPS://h
""")
def test_texts_are_redacted(text: str, safe: str) -> None:
    assert redacted(text, ("page",)) == safe
    assert redacted(safe, ("page",)) == safe


def test_a_whole_url_is_redacted_whatever_it_holds() -> None:
    assert shown("https://me:p w'd@h/a b?token=x y") == "https://h/a b?token=***"
    assert shown("https:/me:pw@h/a?token=abc") == "https:***"
    assert shown("data/a?.jsonl") == "data/a?.jsonl"


def test_only_keys_of_a_query_are_named() -> None:
    assert [key_of(pair) for pair in ("page=2", "a%20b=a%3Db", "bare")] == ["page", "a b", "bare"]


@cases("""
    url                 | torn
    http://me:p/w@h/a   | True
    http://me:p#w@h/a   | True
    http://h:80/@me/a   | False
    http://h:port/a     | False
    http://[::1]:80/@me | False
    http://me:p%2Fw@h/a | False
""")
def test_a_password_with_a_delimiter_is_noticed(url: str, torn: bool) -> None:
    assert is_torn(url) is torn


@pytest.mark.parametrize("kind", [CorpusError, Interrupted])
def test_errors_of_the_loader_hold_no_secrets(kind: type[Exception]) -> None:
    error = kind("https://me:pw@h/a?token=abc failed")
    assert str(error) == "https://h/a?token=*** failed"
    assert error.args == ("https://h/a?token=*** failed",)


def basic(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()


def test_credentials_come_from_the_url_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "netrc"
    file.write_text("machine h login me password from-netrc\n")
    monkeypatch.setenv(url_secrets.NETRC_VARIABLE, str(file))

    assert authorization("https://h:8/a") == basic("me:from-netrc")
    assert authorization("https://a%40b:p%2Fw@h/a") == basic("a@b:p/w")
    assert authorization("https://token@h/a") == basic("token:")
    assert authorization("https://other/a") is None


def test_a_broken_netrc_is_named_without_its_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "netrc"
    file.write_text("machine h\nlogin me pass-word s3cret\n")
    monkeypatch.setenv(url_secrets.NETRC_VARIABLE, str(file))

    with pytest.raises(url_secrets.NetrcError, match=r"netrc, line \d+: no readable") as caught:
        authorization("https://h/a")
    assert "s3cret" not in str(caught.value) and caught.value.__cause__ is None

    monkeypatch.setenv(url_secrets.NETRC_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(url_secrets.NetrcError, match="none: no readable netrc file"):
        authorization("https://h/a")


def test_a_broken_netrc_at_home_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(url_secrets.NETRC_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".netrc"
    assert authorization("https://h/a") is None

    file.write_text("machine h login me password pw\n")
    file.chmod(0o600)
    assert authorization("https://h/a") == basic("me:pw")

    file.write_text("nonsense\n")
    assert authorization("https://h/a") is None


@cases("""
    text | shown
    https://me:pw@a.org/x?page=2 | https://***@a.org/x?page=2
    https://a.org/x?page=2&access_token=s3cret#top | https://a.org/x?page=2&access_token=***#top
    a.org/x;jsessionid=s3cret?X-Amz-Signature=s3cret&id=7
    | a.org/x;jsessionid=***?X-Amz-Signature=***&id=7
    '{"url":"ftp://u@h/?API_KEY=s3cret","n":1}' | '{"url":"ftp://***@h/?API_KEY=***","n":1}'
    https://a.org/?q=tokens&keyword=a=b me@a.org | https://a.org/?q=tokens&keyword=a=b me@a.org
    a = b; token = c | a = b; token = c
""")
def test_what_lets_others_in_is_masked_and_nothing_else(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert masked(shown) == shown
