"""Hosts and addresses of columns of URLs; and the form in which the first takedowns hold them.

Nearly all URLs of a crawl are plain: nothing in them has a second spelling. Their host and address
come from expressions; the others are parsed one by one (`resources/urls.py`, which decides).
"""

from collections.abc import Sequence

import polars as pl

from resources.urls import parse_url

# In lower case. A segment of a path that begins with a dot may be one that is resolved.
PLAIN = (
    r"^(?:https?://)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*"
    r"(?:/(?:[a-z0-9_~!$'()*,;=+&@-][a-z0-9._~!$'()*,;=+&@:-]*)?)*$"
)
FIRST_HOST = r"^(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)?(?:[^/?#@]*@)?([^/?#:@]+)"
LAST_LEVELS = r"((?:[^.]+\.){0,7}[^.]+)\.?$"
PARTS = {"host": pl.String, "address": pl.String}


def url_parts(urls: pl.Series, tracking_parameters: Sequence[str] = ()) -> pl.DataFrame:
    """Return host and address of each URL (String): null for null, the host "" where it is none.

    The host is without a leading "www.", the address as `Url.address` gives it.
    """
    lower = pl.col("url").str.to_lowercase()
    rest = lower.str.strip_prefix("https://").str.strip_prefix("http://")
    plain = (
        urls.alias("url")
        .to_frame()
        .with_columns(
            is_plain=lower.str.contains(PLAIN),
            address=rest.str.strip_prefix("www.").str.strip_chars_end("/"),
        )
        .with_columns(host=pl.col("address").str.extract("^([^/]*)"))
    )
    others = plain.filter(~pl.col("is_plain"))["url"].unique()
    if others.is_empty():
        return plain.select(*PARTS)
    parsed = map(parse_url, others)
    rows = [(url.domain, url.address(tracking_parameters)) for url in parsed]
    found = pl.DataFrame(rows, schema=PARTS, orient="row").with_columns(url=others)
    joined = plain.join(found, on="url", how="left", maintain_order="left", suffix="_parsed")
    is_plain = pl.col("is_plain")
    return joined.select(
        pl.when(is_plain).then(name).otherwise(f"{name}_parsed").alias(name) for name in PARTS
    )


def first_host_of(url: pl.Expr) -> pl.Expr:
    """Return the last levels of the host of a URL in lower case; null if it has none."""
    return url.str.extract(FIRST_HOST).str.extract(LAST_LEVELS).str.strip_prefix("www.")


def first_address_of(url: pl.Expr) -> pl.Expr:
    """Return a URL in lower case without scheme, "www." and slashes at the end."""
    without_scheme = url.str.replace("^[a-z][a-z0-9+.-]*://", "")
    return without_scheme.str.strip_prefix("www.").str.strip_chars_end("/")
