"""The documents of a window that are held out of training, a group of their own, or like those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from assets.bucketed.bucketed_records import HELD_OUT, LEAKAGE, SHARES, LeakageManifest
from assets.bucketed.groups import Groups
from assets.bucketed.held_out_shares import askers_of
from assets.deduped.index.ledger import PartKey
from resources.corpus import Corpus
from resources.settings.buckets import VALIDATION
from resources.store.published import PublishedFile
from resources.store.store import StoreError
from resources.tasks import GLOBAL


@dataclass(frozen=True)
class Decisions:
    """Files of which documents of some parts are held out, and digests of those that are."""

    files: tuple[PublishedFile, ...]
    held_ids: tuple[str, ...]  # "" for none

    @property
    def groups(self) -> tuple[str, ...]:
        """The group of the documents that are held out, none if none are."""
        return (VALIDATION,) if any(self.held_ids) else ()


def decided_parts(corpus: Corpus, source: str) -> Mapping[str, Decisions] | None:
    """Return which documents of each part of a source are held out; None without `holdout`."""
    if not corpus.settings.holds_out:
        return None
    manifest = corpus.store.newest(HELD_OUT, GLOBAL)
    decided = {}
    for part in manifest.parts:
        numbers = part.stats.numbers
        if numbers.source == source:
            file = corpus.store.part_file(manifest, part, "decisions")
            decided[numbers.part] = Decisions((file,), (numbers.held_ids,))
    return decided


def count_released(corpus: Corpus, source: str) -> int:
    """Return how many documents were held out of a source before `holdout` was taken away."""
    if corpus.settings.holds_out:
        return 0
    manifest = corpus.store.newest_or_none(HELD_OUT, GLOBAL)
    numbers = [part.stats.numbers for part in manifest.parts] if manifest else []
    return sum(each.held for each in numbers if each.source == source)


def decisions_on(
    source: str, decided: Mapping[str, Decisions] | None, names: Sequence[str]
) -> Decisions | None:
    """Return the decisions on the documents of some parts, None without `holdout`.

    Raises StoreError if there are none on a part.
    """
    if decided is None:
        return None
    if missing := [name for name in names if name not in decided]:
        raise StoreError(
            f"held_out[{GLOBAL}] has no decisions on the part {missing[0]!r} of "
            f"tokenized[{source}]. Materialize `deduped` and `tokenized` for {source!r}, then "
            "`held_out`."
        )
    of_parts = [decided[name] for name in names]
    return Decisions(
        tuple(file for each in of_parts for file in each.files),
        tuple(digest for each in of_parts for digest in each.held_ids),
    )


def without_held_out(
    groups: Groups, tables: Sequence[pl.DataFrame], decisions: Decisions
) -> Groups:
    """Put the documents that are held out into their group; others stay where they are.

    Raises ValueError for a document on which nothing is decided.
    """
    doc_ids = pl.concat([table.select("doc_id") for table in tables])
    decided = pl.concat([pl.read_parquet(file.checked()) for file in decisions.files])
    found = doc_ids.join(decided, on="doc_id", how="left", maintain_order="left")["is_held"]
    if (unknown := found.null_count()) > 0:
        raise ValueError(
            f"nothing is decided on {unknown:,} tokenized documents: the decisions are on newer "
            "ones. Materialize `deduped` and `tokenized` first."
        )
    if not decisions.groups:
        return groups
    number = np.uint8(1 + groups.names.index(VALIDATION))
    of_documents = np.where(found.to_numpy(), number, groups.of_documents)
    return replace(groups, of_documents=of_documents)


class HeldOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an exported ledger says of a part, as `Ingested` has it."""

    held_out: list[str]
    holdout_tokens: tuple[int, float] | None = None


def held_out_documents(corpus: Corpus) -> dict[PartKey, HeldOut]:
    """Return the documents that are held out, sorted, by source and name of the signed part.

    Parts on which nothing is decided are missing.
    """
    manifest, found = corpus.store.newest_or_none(HELD_OUT, GLOBAL), dict[PartKey, HeldOut]()
    if manifest is None:
        return found
    askers, kept = askers_of(corpus.settings), manifest.config.get("tokens", {})
    for part in manifest.parts:
        if (numbers := part.stats.numbers).source:
            file = corpus.store.part_file(manifest, part, "decisions")
            held = pl.scan_parquet(file.checked()).filter("is_held").select("doc_id").collect()
            tokens = kept.get(askers.get(numbers.source))
            found[numbers.key] = HeldOut(sorted(held["doc_id"]), tokens and (tokens[0], tokens[1]))
    return found


def left_out_documents(corpus: Corpus, source: str) -> dict[str, list[str]]:
    """Return the documents of a source that are much like a held-out one, by deduped part."""
    if not corpus.settings.holds_out:
        return {}
    shares = pl.read_parquet(shares_file(corpus, corpus.store.newest(LEAKAGE, GLOBAL)))
    here = shares.filter(pl.col("is_left_out") & (pl.col("source") == source))
    return dict(here.group_by("part_name").agg(pl.col("doc_id").sort()).iter_rows())


def shares_file(corpus: Corpus, manifest: LeakageManifest) -> Path:
    """Return the file with the result of `leakage`, with `LEAKAGE_COLUMNS`."""
    part = next(part for part in manifest.parts if part.name == SHARES)
    return corpus.store.part_file(manifest, part, SHARES).checked()
