"""Gather the facts about a corpus: keys of pipeline.yaml, and queries over what is published.

Each number is the result of the query that `corpus disclose --explain` prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from assets.filtered.opt_out import NO_DOMAIN
from assets.mixed.mixed_records import MIXED
from assets.tokenized.tokenized_records import TOKENIZED
from pipeline_defs.commands.share.facts import Fact, Facts
from pipeline_defs.commands.share.published_tables import Key, newest_manifests, tables_of
from pipeline_defs.commands.terminal import one_line
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.settings.disclosure import DisclosureConfig, SourceFacts
from resources.settings.sources import is_hub_url
from resources.store.records import fingerprint_of

MOST_LICENSES, LONGEST = 100, 80  # of a source; characters of a cell, which a record may tell
OF_STAGE = "SELECT {} FROM manifests WHERE stage = '{}' AND partition = '{{source}}'"
LARGEST = "WHERE source = '{source}' ORDER BY documents DESC,"
OF_SOURCE = {  # name: stages that are read, query
    "records": ("raw", OF_STAGE.format("rows_in", "raw")),
    "documents": ("deduped", OF_STAGE.format("rows_kept", "deduped")),
    "text_bytes": ("deduped", OF_STAGE.format("bytes", "deduped")),
    "tokens": ("tokenized", OF_STAGE.format("tokens", "tokenized")),
    "languages": (
        "tokenized",
        "SELECT language, bytes, tokens FROM languages WHERE source = '{source}' "
        "ORDER BY bytes DESC, language",
    ),
    "licenses": (
        "deduped",
        "SELECT license, SUM(documents) AS documents FROM documents WHERE source = '{source}' "
        f"GROUP BY license ORDER BY documents DESC, license LIMIT {MOST_LICENSES}",
    ),
    "removed": ("filtered deduped", f"SELECT reason, documents FROM removed {LARGEST} reason"),
    "contaminated": (
        "deduped",
        f"SELECT evaluation_set, documents FROM contaminated {LARGEST} evaluation_set",
    ),
    "drawn": (
        "mixed",
        "SELECT phase, tokens, epochs FROM mix WHERE source = '{source}' ORDER BY phase",
    ),
}
LANGUAGES = "SELECT language, SUM(bytes) AS bytes, SUM(tokens) AS tokens FROM languages"
OF_CORPUS = {
    "documents": ("deduped", "SELECT SUM(rows_kept) FROM manifests WHERE stage = 'deduped'"),
    "text_bytes": ("deduped", "SELECT SUM(bytes) FROM manifests WHERE stage = 'deduped'"),
    "tokens": ("tokenized", "SELECT SUM(tokens) FROM manifests WHERE stage = 'tokenized'"),
    "languages": (
        "tokenized",
        f"{LANGUAGES} WHERE NOT is_code GROUP BY language ORDER BY bytes DESC, language",
    ),
    "code_languages": (
        "tokenized",
        f"{LANGUAGES} WHERE is_code GROUP BY language ORDER BY bytes DESC, language",
    ),
    "drawn": (
        "mixed",
        "SELECT phase, SUM(tokens) AS tokens FROM mix GROUP BY phase ORDER BY phase",
    ),
}
OF_A_SITE = f"FROM documents WHERE domain IS NOT NULL AND domain != '{NO_DOMAIN}'"
NUM_DOMAINS = f"SELECT COUNT(DISTINCT domain) {OF_A_SITE}"
WITHOUT_DOMAIN = f"SELECT SUM(documents) FROM documents WHERE domain = '{NO_DOMAIN}'"
LARGEST_DOMAINS = (
    f"SELECT domain, SUM(documents) AS documents, SUM(bytes) AS bytes {OF_A_SITE} "
    "GROUP BY domain ORDER BY bytes DESC, domain LIMIT {most}"
)
HUB = "https://huggingface.co/datasets/"
SHARE, SME_SHARE, SME_MOST = 10, 5, 1000  # per cent of all domains, and names at most


def most_named(num_domains: int, *, sme: bool) -> int:
    """Return how many of the largest domains are named: a share, rounded up; of SMEs 1,000."""
    if sme:
        return min(-(-num_domains * SME_SHARE // 100), SME_MOST)
    return -(-num_domains * SHARE // 100)


class Queries:
    """Queries over the newest state of a corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self.manifests, self.paths = newest_manifests(corpus)
        self.sources = [name for stage, name in self.manifests if stage == TOKENIZED.name]
        if not self.sources:
            raise UsageError(f"Nothing is tokenized yet in {corpus.store}. Run: corpus build")
        self.phases = [name for stage, name in self.manifests if stage == MIXED.name]
        self.tables = pl.SQLContext(tables_of(corpus, self.manifests))

    def ask(self, name: str, stages: str, query: str, source: str | None = None) -> Fact:
        """Return the fact that a query gives: rows if it orders them, else its one cell."""
        rows = self.tables.execute(query, eager=True).rows()
        cells = [[shown(cell) for cell in row] for row in rows]
        value = cells if "ORDER BY" in query else cells[0][0]
        paths = [path for key, path in self.paths.items() if is_read(key, stages, source)]
        return Fact(name, 0 if value is None else value, tuple(paths), query)

    def of_source(self, source: str) -> Iterator[Fact]:
        """Yield the facts about a source that follow from the data."""
        for name, (stages, query) in OF_SOURCE.items():
            yield self.ask(f"sources.{source}.{name}", stages, query.format(source=source), source)

    def of_corpus(self, *, sme: bool) -> Iterator[Fact]:
        """Yield the facts about all sources together."""
        for name, (stages, query) in OF_CORPUS.items():
            yield self.ask(f"corpus.{name}", stages, query)
        yield (number := self.ask("crawled.num_domains", "deduped", NUM_DOMAINS))
        yield self.ask("crawled.without_domain", "deduped", WITHOUT_DOMAIN)
        query = LARGEST_DOMAINS.format(most=most_named(number.value, sme=sme))
        yield self.ask("crawled.domains", "deduped", query)


def is_read(key: Key, stages: str, source: str | None) -> bool:
    """Return whether a query of stages reads a manifest; without a source it is of all."""
    stage, partition = key
    return stage in stages.split() and (source in (None, partition) or stage == MIXED.name)


def gather(corpus: Corpus, *, sme: bool = False) -> Facts:
    """Return the facts about the newest state of what is built."""
    queries = Queries(corpus)
    is_sme = sme or corpus.settings.disclosure.sme
    facts = [*keys_told(corpus, queries.sources), *queries.of_corpus(sme=is_sme)]
    for source in queries.sources:
        facts += queries.of_source(source)
    fingerprints = [(*key, each.fingerprint) for key, each in queries.manifests.items()]
    state = fingerprint_of(sorted(fingerprints))
    return Facts(state, tuple(queries.sources), tuple(queries.phases), tuple(facts))


def keys_told(corpus: Corpus, sources: Sequence[str]) -> Iterator[Fact]:
    """Yield the keys of pipeline.yaml that are told; None for one that is not."""
    settings, file = corpus.settings, (corpus.config.name,)
    for key in DisclosureConfig.model_fields:
        value = plain(getattr(settings.disclosure, key))
        yield Fact(f"disclosure.{key}", value, file, f"disclosure.{key}")
    for source in sources:
        config = settings.source(source)
        for key in (*SourceFacts.model_fields, "license", "domain", "kind"):
            value = plain(getattr(config, key))
            if key == "link" and value is None:  # the page of a data set of the hub
                hub = (place.split("/")[2:4] for place in config.where if is_hub_url(place))
                value = next((f"{HUB}{owner}/{name}" for owner, name in hub), None)
            yield Fact(f"sources.{source}.{key}", value, file, f"sources.{source}.{key}")
    redacted = [name for name in sources if settings.filters_for(name).pii is not None]
    yield Fact("corpus.redacted", redacted, file, "filters.pii of each source")


def plain(value: Any) -> Any:
    """Return the value of a key as JSON has it, each text one line; None for an empty list."""
    if isinstance(value, tuple):
        return [*map(plain, value)] or None
    return one_line(value) if isinstance(value, str) else value


def shown(cell: Any) -> Any:
    """Return a cell: of what a record tells one line."""
    return one_line(cell)[:LONGEST] if isinstance(cell, str) else cell
