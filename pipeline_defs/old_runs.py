"""Remove Dagster's records of old runs, but of those that made what the corpus has now.

Each run leaves 1.5 kB for every partition of every stage that it may compute, and Dagster keeps
them all. To delete a run takes its events along, by which Dagster knows what is materialized and
what is stale. So a run stays if it has the newest event of a partition, or an event that a later
stage was made of and that has the version of now.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache

import dagster as dg

from assets.raw.places.observed_inputs import INPUT_FILES
from assets.raw.raw_records import RAW
from assets.stages import BY_NAME
from pipeline_defs.dagster_internals import FILES_OF_RUN
from resources.corpus import Corpus
from resources.dagster_home import STORE_TAG, dagster_home
from resources.materialize.asset_events import DATA_VERSION
from resources.materialize.history_checks import DRIFT_RUNS

FEWEST_RUNS = 2 * DRIFT_RUNS  # that stay, whatever their age: a night is a build and a mix
LONGEST_SECONDS = 10.0  # of a run; the next one goes on
STAYS_FOR = "tokenmill/stays_for"  # tag of a run: asset and partition of which it has the newest
EVENTS = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_OBSERVATION}


def remove_old_runs(instance: dg.DagsterInstance, corpus: Corpus, now: datetime) -> int:
    """Remove runs of this store that are older than `keep_run_days`; return their number."""
    days, of_store = corpus.settings.keep_run_days, {STORE_TAG: str(corpus.store.root)}
    if days is None:
        return 0
    newest_runs = instance.get_runs(dg.RunsFilter(tags=of_store), limit=FEWEST_RUNS)
    stay = {run.run_id for run in newest_runs}
    old = dg.RunsFilter(tags=of_store, created_before=now - timedelta(days=days))
    newest, given_up, removed = NewestEvents(instance), time.monotonic() + LONGEST_SECONDS, 0
    for run in instance.get_runs(old):
        if time.monotonic() > given_up:
            break
        if run.is_finished and run.run_id not in stay and not newest.needs(run):
            remove(instance, run.run_id)
            removed += 1
    return removed


class NewestEvents:
    """The newest events of assets and partitions, each asked for once."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.of = lru_cache(None)(self.read)

    def read(self, name: str, partition: str | None) -> dg.EventLogRecord | None:
        """Read the newest event of an asset: of a partition, or of all for None."""
        of = dg.AssetRecordsFilter(
            dg.AssetKey(name), asset_partitions=[partition] if partition else None
        )
        events = self.instance
        fetch = events.fetch_observations if name == INPUT_FILES else events.fetch_materializations
        found = fetch(of, limit=1).records
        return found[0] if found else None

    def needs(self, run: dg.DagsterRun) -> bool:
        """Return whether a run has to stay; what for is noted for next time."""
        noted, _, of = run.tags.get(STAYS_FOR, "").partition("/")
        if noted and (newest := self.of(noted, of or None)) and newest.run_id == run.run_id:
            return True
        for record in self.instance.get_records_for_run(run.run_id, of_type=EVENTS).records:
            entry = record.event_log_entry
            event = entry.get_dagster_event()
            assert event.asset_key is not None, "only events of assets were asked for"
            name, partition = event.asset_key.to_user_string(), event.partition
            newest = self.of(name, partition)
            if newest and newest.run_id == run.run_id:
                self.instance.add_run_tags(run.run_id, {STAYS_FOR: f"{name}/{partition or ''}"})
                return True
            if newest and version_of(newest.event_log_entry) == version_of(entry):
                later = (each for each in self.readers(name, partition) if each)
                if any(newest.timestamp > each.timestamp > entry.timestamp for each in later):
                    return True
        return False

    def readers(self, name: str, partition: str | None) -> Iterator[dg.EventLogRecord | None]:
        """Yield the newest events of what reads a partition, and names its event, not its version.

        Of an asset without partitions Dagster compares the version.
        """
        after = [RAW.name] if name == INPUT_FILES else []
        after += [stage.name for stage in BY_NAME.values() if name in stage.after]
        for each in after if partition else []:
            yield self.of(each, partition if BY_NAME[each].partitions == "source" else None)


def version_of(entry: dg.EventLogEntry) -> str | None:
    """Return the data version of an event."""
    return (entry.tags or {}).get(DATA_VERSION)


def remove(instance: dg.DagsterInstance, run_id: str) -> None:
    """Delete a run, and the files that Dagster leaves of it."""
    instance.delete_run(run_id)
    for pattern in FILES_OF_RUN:
        for path in dagster_home().glob(pattern.format(run_id)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
