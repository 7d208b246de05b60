"""Dagster wiring and the command line."""

import os

# Polars' allocator returns freed pages at once and requests them again for the next column. Keeping
# them for ten seconds makes `filtered` a tenth faster. Read when polars is imported.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:10000,muzzy_decay_ms:10000")
