"""What a run tells Dagster and the log."""
