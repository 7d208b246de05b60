"""Find duplicates over all sources; keep one of each."""
