"""Gather the facts about a corpus: keys of pipeline.yaml, and queries over what is published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from assets.bucketed.bucketed_records import BUCKETED
from assets.deduped.deduped_records import DEDUPED
from assets.filtered.filtered_records import FILTERED
from assets.filtered.opt_out import NO_DOMAIN
from assets.mixed.complete_state_files import CompleteState, complete_state
from assets.mixed.mixed_records import MIXED
from assets.raw.raw_records import RAW
from assets.sharded.sharded_records import SHARDED
from assets.tokenized.tokenized_records import TOKENIZED
from corpus_loader.places.files import TAKEDOWNS
from pipeline_defs.commands.share.facts import HUB, Fact, Facts
from pipeline_defs.commands.terminal import one_line
from pipeline_defs.corpus_tables import TABLES, CorpusTables, Manifests
from resources.corpus import Corpus
from resources.settings.buckets import VALIDATION
from resources.settings.disclosure import DisclosureConfig, SourceFacts
from resources.store.records import StageRecords, fingerprint_of
from resources.store.store import typed
from resources.takedowns import count_takedowns

STAGES: tuple[StageRecords[Any, Any], ...] = (RAW, FILTERED, DEDUPED, TOKENIZED, BUCKETED, SHARDED)
QUERIES = Path(__file__).with_name("queries.sql")
NAMED = re.compile(r"^-- (\S+): (.*)\n([^;]+);", re.MULTILINE)
NUM_DOMAINS, OF_SOURCE = "crawled.num_domains", "{source}"
SHARE, SME_SHARE, SME_MOST = 10, 5, 1000  # per cent of all domains, and names at most
LONGEST = 80  # characters of what a record tells
MEANT = {"crawler": "crawl", "generator": "synthetic"}  # key by the provenance that asks for it


def most_named(num_domains: int, *, sme: bool) -> int:
    """Return how many of the largest domains are named: a share, rounded up; of SMEs 1,000."""
    if sme:
        return min(-(-num_domains * SME_SHARE // 100), SME_MOST)
    return -(-num_domains * SHARE // 100)


def gather(corpus: Corpus, state: CompleteState | None = None, *, sme: bool = False) -> Facts:
    """Return the facts about a state, by default the newest complete one."""
    state = state or complete_state(corpus)
    manifests, paths = published_manifests(corpus, state)
    sources = [name for stage, name in manifests if stage == TOKENIZED.name]
    phases = [name for stage, name in manifests if stage == MIXED.name]
    facts, most = [*keys_told(corpus, sources)], 0
    of_state = CorpusTables(corpus, manifests)
    tables = pl.SQLContext({name: of_state[name] for name in TABLES})
    for name, read, form in NAMED.findall(QUERIES.read_text("utf-8")):
        for source in sources if OF_SOURCE in name else [""]:
            query = " ".join(form.format(source=source, none=NO_DOMAIN, most=most).split())
            found = tables.execute(query, eager=True).rows()
            rows = [[shown(cell) for cell in row] for row in found]
            value = rows if "ORDER BY" in query else rows[0][0] or 0
            of = [source] if source and read != MIXED.name else [*sources, *phases]
            keys = ((stage, partition) for stage in read.split() for partition in of)
            used = tuple(path for key in keys if (path := paths.get(key)))
            facts.append(Fact(name.format(source=source), value, used, query))
        if name == NUM_DOMAINS:
            most = most_named(facts[-1].value, sme=sme or corpus.settings.disclosure.sme)
    digest = fingerprint_of([(*key, manifests[key].fingerprint) for key in sorted(manifests)])
    return Facts(digest, tuple(sources), tuple(phases), tuple(facts))


def published_manifests(
    corpus: Corpus, state: CompleteState
) -> tuple[Manifests, dict[tuple[str, str], str]]:
    """Return the manifests of a state that tables are made of, and their paths in the store."""
    wanted: dict[tuple[str, str], StageRecords[Any, Any]] = {
        (stage.name, name): stage for name in state.sources for stage in STAGES
    }
    phases = (name for name in corpus.settings.phase_names() if name != VALIDATION)
    wanted |= {(MIXED.name, name): MIXED for name in phases}
    found = {key: state.manifests[key] for key in wanted if key in state.manifests}
    paths = {key: corpus.store.partition(*key).manifest_path(n) for key, (n, _) in found.items()}
    manifests = {key: typed(manifest, wanted[key]) for key, (_, manifest) in found.items()}
    root = corpus.store.root
    return manifests, {key: str(path.relative_to(root)) for key, path in paths.items()}


def keys_told(corpus: Corpus, sources: Sequence[str]) -> Iterator[Fact]:
    """Yield the keys of pipeline.yaml that are told; None for one that is not."""
    settings, file = corpus.settings, (corpus.config.name,)
    for key in DisclosureConfig.model_fields:
        value = plain(getattr(settings.disclosure, key))
        yield Fact(f"disclosure.{key}", value, file, f"disclosure.{key}")
    for source in sources:
        config = settings.source(source)
        for key in (*SourceFacts.model_fields, "domain"):
            value = plain(getattr(config, key))
            if key == "link" and value is None:  # the page of a data set of the hub
                hub = (place.split("/")[2:4] for place in config.where if place.kind == "hub")
                value = next((f"{HUB}{owner}/{name}" for owner, name in hub), None)
            if value is None and config.provenance not in (None, MEANT.get(key, config.provenance)):
                value = []
            yield Fact(f"sources.{source}.{key}", value, file, f"sources.{source}.{key}")
    redacted = [name for name in sources if settings.filters_for(name).pii is not None]
    yield Fact("corpus.redacted", redacted, file, "filters.pii of each source")
    takedowns = count_takedowns(corpus.store.root)
    yield Fact("corpus.takedowns", takedowns, (TAKEDOWNS,), "number of requests")


def plain(value: Any) -> Any:
    """Return the value of a key as JSON has it, each text one line; None for an empty list."""
    if isinstance(value, tuple):
        return [*map(plain, value)] or None
    return one_line(value) if isinstance(value, str) else value


def shown(cell: Any) -> Any:
    """Return a cell; of what a record tells, the beginning as one line."""
    return one_line(cell)[:LONGEST] if isinstance(cell, str) else cell
