"""Lists of domains and URLs, one a line: what each line means, and which can mean nothing.

A line may have a scheme, a port, "*." before a domain, the dot of the root at its end, upper case,
letters beyond ASCII, and a comment behind a blank. A domain means those below it, whatever the
port; a URL means itself alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from assets.text.addresses import url_parts

COMMENT = r"(?:^|\s+)#.*$"
BLANK = "has a blank in it: one domain or URL is a line"
WILDCARD = "has a wildcard inside, and a URL means one page: list its domain"
NO_HOST = "is no domain or URL"
SUFFIX = "would mean every site below it: a public suffix, or one word"
SHOWN = 3


def parse_entries(lines: Sequence[str], tracking_parameters: Sequence[str] = ()) -> pl.DataFrame:
    """Return the entries of a list: line (from 1), entry, host, address and fault.

    The address of a domain is its host. `fault` says why an entry can match nothing, or is null.
    """
    entries = pl.Series("entry", lines, dtype=pl.String).to_frame().with_row_index("line", 1)
    plain = pl.col("entry").str.replace(COMMENT, "").str.strip_chars()
    named = plain.str.replace(r"^\*?\.", "")
    entries = entries.with_columns(entry=plain, named=named).filter(pl.col("entry") != "")
    entries = entries.hstack(url_parts(entries["named"], tracking_parameters))
    host, address = pl.col("host"), pl.col("address")
    has_only_port = address.str.strip_prefix(host).str.contains(r"^(?::\d+)?$")
    faults = (
        pl.when(pl.col("entry").str.contains(r"\s"))
        .then(pl.lit(BLANK))
        .when(pl.col("named").str.contains("*", literal=True))
        .then(pl.lit(WILDCARD))
        .when(host == "")
        .then(pl.lit(NO_HOST))
    )
    return entries.select(
        "line",
        "entry",
        "host",
        address=pl.when(has_only_port).then(host).otherwise(address),
        fault=faults,
    )


def with_suffix_faults(entries: pl.DataFrame) -> pl.DataFrame:
    """Add the fault of entries that are a public suffix, such as "com" or "co.uk"."""
    from publicsuffixlist import PublicSuffixList

    suffixes = PublicSuffixList(only_icann=True)
    domains = entries.filter(pl.col("address") == pl.col("host"), pl.col("fault").is_null())["host"]
    public = [host for host in domains.unique() if suffixes.is_public(host)]
    is_public = (pl.col("address") == pl.col("host")) & pl.col("host").is_in(public)
    fault = pl.when(is_public).then(pl.lit(SUFFIX)).otherwise("fault")
    return entries.with_columns(fault=fault)


def describe_faults(entries: pl.DataFrame, place: str) -> str:
    """Return "PLACE: line 3: 'com' ..." of the first faults and how many more; "" for none."""
    wrong = entries.filter(pl.col("fault").is_not_null())
    shown = [
        f"line {line}: {entry!r:.80} {fault}"
        for line, entry, fault in wrong.select("line", "entry", "fault").head(SHOWN).iter_rows()
    ]
    more = f"; and {wrong.height - SHOWN:,} more lines" if wrong.height > SHOWN else ""
    return f"{place}: {'; '.join(shown)}{more}" if shown else ""
