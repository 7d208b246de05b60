"""Raw documents as later stages may use them: those of a source with too many bad records are not.

What was read stays in the corpus, and shows what is wrong; later stages keep their last good state.
"""

from __future__ import annotations

from assets.raw.raw_records import RAW, RawNumbers, RawProvenance
from assets.raw.readers.archive_names import LEFT_OUT
from resources.corpus import Corpus
from resources.store.records import Manifest, Stats
from resources.store.store import StoreError


def usable_raw(corpus: Corpus, source: str) -> Manifest[RawProvenance, RawNumbers]:
    """Return the newest manifest of a source; StoreError if too many of its records are bad."""
    manifest = corpus.store.newest(RAW, source)
    if reason := too_many_bad(corpus, manifest):
        raise StoreError(reason)
    return manifest


def too_many_bad(corpus: Corpus, manifest: Manifest[RawProvenance, RawNumbers]) -> str | None:
    """Return why a manifest is refused: the share of its records in quarantine; else None."""
    name, stats = manifest.partition, manifest.stats
    most = corpus.settings.source(name).max_bad_share
    num_read = records_read(stats)
    if most is None or stats.quarantined <= most * num_read:
        return None
    return (
        f"raw[{name}]: {stats.quarantined:,} of {num_read:,} records are in quarantine "
        f"({stats.quarantined / num_read:.1%}), above max_bad_share {most:.1%}. Later stages "
        f"do not read them. `corpus quarantine list --source {name}` gives the reasons; correct "
        "the files or the options of the source, or raise max_bad_share, and build again."
    )


def records_read(stats: Stats[RawNumbers]) -> int:
    """Return the number of records without those that containers have and no reader takes."""
    return stats.rows_in - sum(stats.rejected.get(reason, 0) for reason in LEFT_OUT)
