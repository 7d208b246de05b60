"""A URL and its parts."""

from __future__ import annotations

import pickle

import pytest

from corpus_loader.places.urls import Url
from resources.settings.sources import SourceConfig


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("HTTPS://host/a", "web"),
        ("s3://bucket/a", "object"),
        ("S3://bucket/a", "unknown"),
        ("hf://owner/name", "hub"),
        ("cc://CC-MAIN-2024-10?share=0.1", "crawl"),
        ("rediss://host/stream", "redis"),
        ("kafka://host/topic", "kafka"),
        ("File:///a", "file"),
        ("file:/a", "file"),
        ("ftp://host/a", "unknown"),
        ("a/b.jsonl", "path"),
        ("http:a", "path"),
        ("", "path"),
    ],
)
def test_a_scheme_tells_the_kind_of_place(text: str, kind: str) -> None:
    assert Url(text).kind == kind and Url(text) == text


def test_a_url_is_split_at_its_delimiters() -> None:
    url = Url("https://me:p@ss@host:80/a/b?x=1?y#z?")
    parts = (url.scheme, url.user, url.host, url.path, url.query)
    assert parts == ("https", "me:p@ss", "host:80", "/a/b", "x=1?y")
    assert (Url("a/b").host, Url("s3://b").path) == ("", "")


def test_where_is_parsed_once() -> None:
    source = SourceConfig.model_validate({"name": "s", "where": ["a/*", "hf://owner/name"]})
    assert [place.kind for place in source.where] == ["path", "hub"]
    assert Url(source.where[1]) is source.where[1]
    assert pickle.loads(pickle.dumps(source)).where[1].path == "/name"
    assert source.model_dump_json().count('"hf://owner/name"') == 1
