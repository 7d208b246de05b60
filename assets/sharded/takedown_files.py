"""Takedowns that the shards of a source obey.

Rows of documents that are gone are marked, and stay in the files until much of a generation is
marked. After a takedown nothing may stay: until the rows of its documents are out of the files, a
generation with any marked row is rewritten.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import UNSET

from assets.bucketed.bucketed_records import BucketedManifest
from assets.deduped.deduped_records import DEDUPED
from assets.filtered.filtered_records import FILTERED
from assets.raw.raw_records import RAW
from assets.sharded.generation_files import Ledger
from assets.tokenized.tokenized_records import TOKENIZED
from resources.corpus import Corpus
from resources.takedowns import id_of, read_takedowns


class Obeyed(NamedTuple):
    """Ids of the takedowns that the next ledger obeys; `is_all`: the one before obeyed them."""

    ids: tuple[str, ...]
    is_all: bool


def obeyed_takedowns(corpus: Corpus, bucketed: BucketedManifest, before: Ledger | None) -> Obeyed:
    """Return the takedowns that concern a source, as far as its sequences obey them.

    One that found no document may concern any source: a marked row may still have it.
    """
    takedowns, source = read_takedowns(corpus.store.root), bucketed.partition
    everywhere = {id_of(each) for each in takedowns if not each.parts}
    here = {id_of(each) for each in takedowns if source in each.parts}
    known = set((before.takedowns if before else UNSET) or ())
    obeyed = known | everywhere | (here and here & raw_takedowns(corpus, bucketed))
    return Obeyed(tuple(sorted(obeyed)), known >= everywhere | here)


def raw_takedowns(corpus: Corpus, bucketed: BucketedManifest) -> set[str]:
    """Return the takedowns that the newest raw documents obey; none if these are newer."""
    source, store = bucketed.partition, corpus.store
    tokenized, deduped = store.newest(TOKENIZED, source), store.newest(DEDUPED, source)
    filtered, raw = store.newest(FILTERED, source), store.newest(RAW, source)
    made_of = (
        (bucketed.provenance.tokenized, tokenized),
        (tokenized.provenance.deduped, deduped),
        (deduped.provenance.filtered, filtered),
        (filtered.provenance.raw, raw),
    )
    is_newest = all(then == now.fingerprint for then, now in made_of)
    return set(raw.provenance.takedowns or ()) if is_newest else set()
