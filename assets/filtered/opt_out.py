"""Opt-outs: documents whose site asks not to be trained on: lists, robots.txt, ai.txt, headers.

A listed domain covers those below it, a listed URL itself alone. The newest snapshot of a host's
robots.txt and of its ai.txt count, whenever a document was fetched: an opt-out is retroactive, and
one that is taken back brings the documents back. Agents are those of the config: a document is
opted out if one of them may not fetch its URL or use it for training, by its own group of the file
or, without one, by that of `*`.

A line of a list may have a scheme, a port, "*." before a domain, the dot of the root at its end,
upper case, letters beyond ASCII, and a comment behind a blank. A domain means those below it; a URL
means itself alone.

Groups of robots.txt are found by product token (RFC 9309, 2.2.1): whole, in any case, up to the
first character that no token has ("GPTBot/1.1"). The rules of all groups with an agent's token are
one; only an agent without a group has that of `*`. Paths are compared by Protego: the longest
pattern counts. Statements on training are rules of a group, too, on all paths or on those of a
pattern: `Content-Usage: train-ai=n` (draft-ietf-aipref-attach and -vocab), `Content-Signal:
ai-train=no` (contentsignals.org) and `DisallowAITraining: /` (draft-canel-robots-ai-control). Of
each kind the longest pattern counts; of equal ones, and of the kinds, the one that forbids.
Statements before the first group are those of all agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from assets.text.addresses import url_parts
from resources.urls import domains_above, parse_url

if TYPE_CHECKING:
    from protego import Protego

LINE = re.compile(
    r"\s*(user[ -]?agent|dis+al+ow|diasllow|disallaw|allow|content-usage|content-signal"
    r"|disallowaitraining|allowaitraining)"
    r"(?:\s*:\s*|\s+)([^#]*)",
    re.IGNORECASE,
)
LINE_ENDS = re.compile(r"\r\n?|\n")
TOKEN = re.compile(r"[A-Za-z0-9_-]+")
EVERY_AGENT, NO_AGENT, BEFORE_GROUPS = "*", "?", ""
# Of each kind of statement, what is about training, the more exact first.
ON_TRAINING = {
    "content-usage": ("train-genai", "genai", "train-ai", "ai", "tdm", "bots", "all"),
    "content-signal": ("ai-train",),
}
FORBIDS = ("n", "no", "?0")
AS_FETCHING = {"disallowaitraining": "Disallow", "allowaitraining": "Allow"}


class Rule(NamedTuple):
    """A rule of a group: its field in lower case, and its value."""

    field: str
    value: str


@lru_cache(maxsize=4096)
def forbidding_rules(text: str, agents: Sequence[str]) -> tuple[Protego, ...]:
    """Return rules of a robots.txt, of which each may forbid a path to one of the agents.

    They are asked for the agent "*".
    """
    groups = groups_of(text)
    everywhere = [rule for rule in groups[BEFORE_GROUPS] if is_on_training(rule)]
    tokens = dict.fromkeys(token_of(agent) for agent in agents)
    of_agents = (groups.get(token, groups.get(EVERY_AGENT, [])) for token in tokens)
    different = dict.fromkeys((*rules, *everywhere) for rules in of_agents)
    return tuple(chain.from_iterable(map(parsed, different)))


def parsed(rules: Sequence[Rule]) -> Iterator[Protego]:
    """Yield the rules on fetching, and those of each kind of statement on training, if any."""
    from protego import Protego

    fetching = [f"{rule.field}: {rule.value}" for rule in rules if not is_on_training(rule)]
    disallowed = [f"{AS_FETCHING[f]}: {value}" for f, value in rules if f in AS_FETCHING]
    stated = (training_lines(rules, kind) for kind in ON_TRAINING)
    for lines in (fetching, disallowed, *stated):
        if lines:
            yield Protego.parse("\n".join(["User-agent: *", *lines]))


def is_on_training(rule: Rule) -> bool:
    """Check that a rule is a statement on training, and not on fetching."""
    return rule.field in ON_TRAINING or rule.field in AS_FETCHING


def training_lines(rules: Sequence[Rule], kind: str) -> list[str]:
    """Return the statements of a kind as rules on fetching, one for each pattern of paths."""
    forbidden: dict[str, bool] = {}
    for value in (rule.value for rule in rules if rule.field == kind):
        path, _, statement = value.partition(" ") if value.startswith("/") else ("/", "", value)
        forbidden[path] = forbidden.get(path, False) or forbids_training(kind, statement)
    return [f"{'Disallow' if is_no else 'Allow'}: {path}" for path, is_no in forbidden.items()]


def forbids_training(kind: str, statement: str) -> bool:
    """Check that a statement, as "search=y, train-ai=n", forbids training."""
    members = (member.partition(";")[0].partition("=") for member in statement.lower().split(","))
    values = {name.strip(): value.strip(' \t"') for name, _, value in members}
    stated = [values[name] for name in ON_TRAINING[kind] if name in values]
    return bool(stated) and stated[0] in FORBIDS


def token_of(agent: str) -> str:
    """Return the product token of an agent in lower case; "*" for all agents."""
    name = agent.strip()
    if name.split()[:1] == [EVERY_AGENT]:
        return EVERY_AGENT
    found = TOKEN.match(name)
    return found[0].lower() if found else NO_AGENT


def groups_of(text: str) -> dict[str, list[Rule]]:
    """Return the rules of each token; those before the first group are under BEFORE_GROUPS."""
    groups: dict[str, list[Rule]] = {BEFORE_GROUPS: []}
    tokens, has_rules = [BEFORE_GROUPS], True
    for line in LINE_ENDS.split(text.removeprefix("\ufeff")):
        if not (found := LINE.match(line)):
            continue
        field, value = found[1].lower(), found[2].replace("\t", " ").strip()
        if field.startswith("user"):
            tokens, has_rules = [] if has_rules else tokens, False
            tokens.append(token_of(value))
            groups.setdefault(tokens[-1], [])
        else:
            has_rules = True
            for token in dict.fromkeys(tokens):
                groups[token].append(Rule(field, value))
    return groups


# The fields of `meta` that have a page's headers of these names.
STATED_IN = {"content-usage": "content_usage", "content-signal": "content_signal"}
NO_DOMAIN = "(no registrable domain)"
IS_ADDRESS = re.compile(
    r"\[.*|(?:.*\.)?(?:\d+|0x[\da-f]*)"
)  # of IPv4 is what ends in a number (WHATWG)


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


def registrable_domains(hosts: pl.Series) -> pl.Series:
    """Return the registrable domain of each host (String), NO_DOMAIN where it has none.

    Addresses of IPv4 and IPv6 have none.
    """
    from publicsuffixlist import PublicSuffixList

    suffixes = PublicSuffixList()
    named = (host if host and not IS_ADDRESS.fullmatch(host) else "" for host in hosts)
    domains = [(host and suffixes.privatesuffix(host)) or NO_DOMAIN for host in named]
    return pl.Series("domain", domains, dtype=pl.String)


def count_by_domain(urls: pl.Series) -> pl.DataFrame:
    """Count URLs (String, no nulls) by registrable domain: domain, documents; most first."""
    counted = url_parts(urls).group_by("host").len("documents")
    by_domain = counted.with_columns(registrable_domains(counted["host"])).group_by("domain")
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
