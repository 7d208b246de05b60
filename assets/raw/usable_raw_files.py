"""Raw documents as later stages may use them: not if too many of a source's records are bad.

What was read stays in the corpus, and shows what is wrong; later stages keep their last good state.
"""

from __future__ import annotations

from assets.raw.raw_records import RAW, RawNumbers, RawProvenance
from assets.raw.readers.archive_names import FIELD_FILTER, LEFT_OUT
from resources.corpus import Corpus
from resources.settings.sources import SourceConfig
from resources.store.records import Manifest, Stats
from resources.store.store import StoreError


def usable_raw(corpus: Corpus, source: str) -> Manifest[RawProvenance, RawNumbers]:
    """Return the newest manifest of a source; StoreError if its records are not to be used."""
    manifest = corpus.store.newest(RAW, source)
    if reason := why_unusable(corpus, manifest):
        raise StoreError(reason)
    return manifest


def why_unusable(corpus: Corpus, manifest: Manifest[RawProvenance, RawNumbers]) -> str | None:
    """Return why later stages may not read a manifest; None if they may."""
    reason = fits_none(corpus.settings.source(manifest.partition), manifest.stats)
    return f"raw[{manifest.partition}]: {reason}" if reason else too_many_bad(corpus, manifest)


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


def fits_none(source: SourceConfig, stats: Stats[RawNumbers]) -> str | None:
    """Return which key of a source fits none of its records; None if each fits some."""
    num_read, counts = records_read(stats), stats.numbers.counts or {}
    if num_read and stats.quarantined == num_read and source.max_bad_share is None:
        return (
            f"all of its {num_read:,} records are in quarantine. `corpus quarantine list --source "
            f"{source.name}` gives the reasons; correct the files or the options of the source, or "
            "set `max_bad_share: 1`, and build again."
        )
    skipped = stats.rejected.get(FIELD_FILTER, 0)
    if skipped and skipped + stats.quarantined == num_read and not source.allow_no_files:
        return (
            f"none of its {num_read:,} records passes `field_filter`. Correct it, or set "
            "`allow_no_files: true`, and build again."
        )
    if source.id_field and counts.get("all") == stats.rows_kept and "has id" not in counts:
        return (
            f"no document has an id in `id_field: {source.id_field}`. Correct the name, or leave "
            "the key out, and build again."
        )
    return None


def records_read(stats: Stats[RawNumbers]) -> int:
    """Return the number of records without those that containers have and no reader takes."""
    return stats.rows_in - sum(stats.rejected.get(reason, 0) for reason in LEFT_OUT)
