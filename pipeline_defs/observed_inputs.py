"""The asset `input_files`: what the sources' files are now, so that the UI tells what is stale.

It is observed by the button in the UI, by a sensor, and by every run of `raw`.
"""

import warnings

import dagster as dg

from assets.raw.places.observed_inputs import INPUT_FILES, observe_inputs
from assets.raw.raw_records import RAW
from pipeline_defs.partitions import partitions_of
from resources.corpus import Corpus
from resources.materialize.asset_events import newest_versions
from resources.store.preview_files import PAGE_ADDRESS
from resources.store.store import StoreError

SECONDS_BETWEEN = 600
KEY = dg.AssetKey(INPUT_FILES)


def input_files(corpus: Corpus) -> dg.Definitions:
    """Return the observable asset, and the sensor that observes it."""

    def observe() -> dg.DataVersionsByPartition:
        return dg.DataVersionsByPartition(versions_now(corpus))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # dagster is pinned for it
        observable = dg.observable_source_asset(
            name=INPUT_FILES,
            group_name="ingest",
            description="The sources' input files. Observed by the sensor and by runs of `raw`: "
            "what has changed since makes `raw` stale. What became of them: [the report]"
            f"({PAGE_ADDRESS}).",
            partitions_def=partitions_of(corpus.settings)["source"],
            tags={"stage": INPUT_FILES},
        )(observe)

    @dg.sensor(
        name="observe_input_files",
        minimum_interval_seconds=SECONDS_BETWEEN,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Looks at the input files, and records those that have changed.",
    )
    def observe_input_files(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        known = newest_versions(context.instance, KEY, is_external=True)
        changed = {
            source: version
            for source, version in versions_now(corpus).items()
            if version != known.get(source, ("", 0))[0]
        }
        return dg.SensorResult(
            asset_events=[observation(source, version) for source, version in changed.items()]
        )

    return dg.Definitions(assets=[observable], sensors=[observe_input_files])


def versions_now(corpus: Corpus) -> dict[str, str]:
    """Return the data version of the input files of each source."""
    return {
        source: observe_inputs(corpus, source, last_files(corpus, source))
        for source in corpus.settings.source_names()
    }


def last_files(corpus: Corpus, source: str) -> dict[str, str]:
    """Return the digests of the files that the newest `raw` was made of; none without one."""
    try:
        newest = corpus.store.newest_or_none(RAW, source)
    except StoreError:
        return {}
    return {} if newest is None else newest.provenance.files


def observation(source: str, version: str) -> dg.AssetObservation:
    """Return the event that records a data version of a source's files."""
    return dg.AssetObservation(KEY, partition=source, tags={"dagster/data_version": version})
