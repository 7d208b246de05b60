"""Tag of Dagster runs that is ours."""

STORE = "tokenmill/store"  # the store that the run works on
