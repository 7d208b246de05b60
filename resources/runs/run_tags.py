"""Tags of Dagster runs that are ours."""

STORE = "tokenmill/store"  # the store that the run works on
FAILED_SOURCES = "tokenmill/failed_sources"  # the only faults of a failed run: names of sources
