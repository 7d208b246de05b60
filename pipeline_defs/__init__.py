"""Dagster wiring and the command line."""

import gc
import os

# Polars' allocator returns freed pages at once and requests them again for the next column. To keep
# them for ten seconds makes `filtered` a tenth faster. In huge pages it takes another quarter less,
# and a build of 1 GB 75 CPU s instead of 86: Linux clears and maps 2 MB at once, not 4 KB. It reads
# this when polars is imported.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:10000,muzzy_decay_ms:10000,thp:always")

# Arrow's allocator returns freed pages after 10 ms, so that each shard in Parquet gets new ones, of
# 4 KB where free memory is scattered: of 1 GB, `sharded` had 512,000 page faults, and has 324,000
# with this. Read when pyarrow is imported.
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "10000")  # milliseconds

# Parts are encoded side by side. Threads of its own, as many as cores in every worker, would each
# learn the words anew: `tokenized` took a tenth more CPU. Read when fastokens first encodes.
os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")

# Dagster and the stages are half a million objects that stay: to look for garbage among them after
# every 700 new ones took a seventh of the CPU of a build with nothing to do.
gc.set_threshold(50_000)
