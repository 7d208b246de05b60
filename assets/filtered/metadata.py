"""Counts of a document's metadata: its URL in lists of domains and words, and missing fields.

Hosts and URLs are compared in normal form (`resources/urls.py`), without a leading "www."; a listed
domain covers its subdomains too. Lists of millions of domains are looked up by hash, once per level
of the host name.
"""

import polars as pl

from assets.text.addresses import url_parts
from resources.settings.filtering.rules import MetadataRules

MAX_LEVELS = 8  # of a deeper host name the last eight are looked up
LAST_LEVELS = r"((?:[^.]+\.){0,7}[^.]+)$"
COLUMNS = ("id", "url", "license", "lang", "text")


def count_metadata(
    documents: pl.DataFrame, rules: MetadataRules, blocked: frozenset[str], allowed: frozenset[str]
) -> pl.DataFrame:
    """Return Int64 columns, one row per document.

    `documents` has the String columns that `required` may name, and meta.

    missing_fields: required fields that are null or empty; blocked_domain: 1 if the domain or the
    whole URL is in the block list; foreign_domain: 1 if there is an allow list and the domain is
    not in it (null without a URL); url_hits: strict substrings and hard words in the URL;
    url_soft_hits: different soft words in it.
    """
    url = pl.col("url").str.to_lowercase()
    words = url.str.replace_all("[^a-z0-9]+", " ")
    lookups = documents.with_columns(
        missing_fields=_count_missing(rules.required),
        url_hits=_count_parts(url, rules.url_substrings) + _count_words(words, rules.url_words),
        url_soft_hits=_count_words(words, rules.url_soft_words),
    )
    urls = documents["url"]
    parts = url_parts(urls if blocked or allowed else urls.clear(len(urls)))
    hosts = parts["host"].str.extract(LAST_LEVELS)
    is_blocked = _in_list(hosts, blocked) | parts["address"].is_in(list(blocked)).fill_null(False)
    is_allowed = _in_list(hosts, allowed)
    is_foreign = pl.when(urls.is_not_null() & (len(allowed) > 0)).then(~is_allowed)
    return lookups.select(
        pl.col("missing_fields", "url_hits", "url_soft_hits").fill_null(0).cast(pl.Int64),
        blocked_domain=is_blocked.cast(pl.Int64),
        foreign_domain=is_foreign.cast(pl.Int64),
    )


def _count_missing(required: tuple[str, ...]) -> pl.Expr:
    missing = [_field(path).fill_null("").str.strip_chars() == "" for path in required]
    return pl.sum_horizontal(missing) if missing else pl.lit(0)


def _field(path: str) -> pl.Expr:
    if path in COLUMNS:
        return pl.col(path)
    inner = path.removeprefix("meta.")
    paths = [f"$.{name}" for name in dict.fromkeys([path, inner])]
    return pl.coalesce(pl.col("meta").str.json_path_match(path) for path in paths)


def _count_parts(url: pl.Expr, parts: tuple[str, ...]) -> pl.Expr:
    if not parts:
        return pl.lit(0)
    return url.str.find_many(list(parts)).list.len()


def _count_words(words: pl.Expr, listed: tuple[str, ...]) -> pl.Expr:
    if not listed:
        return pl.lit(0)
    return words.str.split(" ").list.set_intersection(list(listed)).list.len()


def _in_list(hosts: pl.Series, listed: frozenset[str]) -> pl.Series:
    """Check each host and the domains above it against a list (Boolean); a null host is in none."""
    is_listed = pl.Series([False], dtype=pl.Boolean).new_from_index(0, len(hosts))
    if not listed:
        return is_listed
    domains = pl.Series(sorted(listed))
    rest = hosts
    for _ in range(MAX_LEVELS):
        is_listed |= rest.is_in(domains.implode()).fill_null(False)
        rest = rest.str.extract(r"^[^.]+\.(.+)$")
    return is_listed
