"""Opt-outs: documents whose site asks not to be trained on: lists, robots.txt, ai.txt, headers.

A listed domain covers those below it, a listed URL itself alone. The newest snapshot of a host's
robots.txt and of its ai.txt count, whenever a document was fetched: an opt-out is retroactive, and
one that is taken back brings the documents back. Agents are those of the config: a document is
opted out if one of them may not fetch its URL or use it for training, by its own group of the file
or, without one, by that of `*` (robots.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import polars as pl

from assets.filtered.robots import EVERY_AGENT, forbidding_rules, forbids_training
from assets.text.addresses import url_parts
from resources.urls import domains_above, parse_url

# The fields of `meta` that have a page's headers of these names.
STATED_IN = {"content-usage": "content_usage", "content-signal": "content_signal"}
NO_DOMAIN = "(no registrable domain)"


@dataclass(frozen=True)
class OptOut:
    """Listed domains and URLs, texts of the files of each host, and the agents that count.

    `tracking_parameters` make no other page of a listed URL.
    """

    listed: frozenset[str] = frozenset()
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    agents: tuple[str, ...] = ()
    tracking_parameters: tuple[str, ...] = ()

    @cached_property
    def urls_by_host(self) -> dict[str, list[str]]:
        """Listed URLs by host."""
        by_host: dict[str, list[str]] = {}
        for entry in self.listed:
            host, slash, _ = entry.partition("/")
            if slash:
                by_host.setdefault(host, []).append(entry)
        return by_host

    def among(self, urls: pl.Series) -> OptOut:
        """Return what concerns the hosts of some URLs: all else makes no difference to them."""
        hosts = set(self.parts(urls)["host"]) - {""}
        listed = {name for host in hosts for name in domains_above(host) if name in self.listed}
        listed |= {url for host in hosts for url in self.urls_by_host.get(host, ())}
        files = {host: self.files[host] for host in sorted(hosts & self.files.keys())}
        return OptOut(frozenset(listed), files, self.agents, self.tracking_parameters)

    def parts(self, urls: pl.Series) -> pl.DataFrame:
        """Return the different URLs with their host and address; nulls are left out."""
        different = urls.alias("url").drop_nulls().unique(maintain_order=True)
        return different.to_frame().hstack(url_parts(different, self.tracking_parameters))


def find_opted_out(urls: pl.Series, opt_out: OptOut) -> pl.Series:
    """Return 1 for each URL that is opted out, else 0, Int64; null for null."""
    applied = opt_out.among(urls)
    verdicts = {
        url: int(is_opted_out(url, host, address, applied))
        for url, host, address in opt_out.parts(urls).iter_rows()
    }
    return pl.Series("opted_out", [verdicts.get(url) for url in urls], dtype=pl.Int64)


def find_stated_opt_outs(meta: pl.Series) -> pl.Series:
    """Check which documents' headers, as `raw` keeps them in `meta`, forbid training, Boolean."""
    is_stated = pl.Series([False], dtype=pl.Boolean).new_from_index(0, len(meta))
    for kind, name in STATED_IN.items():
        has_field = meta.str.contains(f'"{name}"', literal=True).fill_null(False)
        if has_field.any():
            values = meta.set(~has_field, None).str.json_path_match(f"$.{name}")
            no = [one for one in values.drop_nulls().unique() if forbids_training(kind, one)]
            is_stated |= values.is_in(no).fill_null(False)
    return is_stated


def is_opted_out(url: str, host: str, address: str, opt_out: OptOut) -> bool:
    """Check one URL."""
    if not host:
        return False
    if address in opt_out.listed or any(name in opt_out.listed for name in domains_above(host)):
        return True
    if host not in opt_out.files:
        return False
    place = parse_url(url).place
    rules = (forbidding_rules(text, opt_out.agents) for text in opt_out.files[host])
    return any(not each.can_fetch(place, EVERY_AGENT) for each in chain.from_iterable(rules))


def count_by_domain(urls: pl.Series) -> pl.DataFrame:
    """Count URLs (String, no nulls) by registrable domain: domain, documents; most first."""
    from publicsuffixlist import PublicSuffixList

    suffixes = PublicSuffixList()
    counted = url_parts(urls).group_by("host").len("documents")
    domains = [(host and suffixes.privatesuffix(host)) or NO_DOMAIN for host in counted["host"]]
    by_domain = counted.with_columns(domain=pl.Series(domains, dtype=pl.String)).group_by("domain")
    return by_domain.agg(pl.col("documents").sum()).sort(
        "documents", "domain", descending=[True, False]
    )


def newest_files(
    snapshots: Mapping[tuple[str, str], Mapping[str, str]],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each host with the newest text of each of its files.

    `snapshots` are texts by date, by host and name of the file.
    """
    by_host: dict[str, list[str]] = {}
    for (host, _), by_date in sorted(snapshots.items()):
        by_host.setdefault(host, []).append(by_date[max(by_date)])
    for host, texts in by_host.items():
        yield host, tuple(texts)
