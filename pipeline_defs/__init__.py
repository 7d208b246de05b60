"""Dagster wiring and the command line."""

import ctypes
import gc
import os

# Polars' allocator returns freed pages to Linux, those of large blocks at once, and requests them
# again for the next column. Here it keeps them, in huge pages and in two arenas for all threads: a
# build of 1 GB takes 63.5 CPU s; 66 if pages are kept for ten seconds, but those of large blocks
# not at all, and 86 in pages of 4 KB. Linux clears what it hands out, and a virtual machine may
# have to ask its host for it. It reads this when polars is imported.
os.environ.setdefault(
    "_RJEM_MALLOC_CONF",
    "dirty_decay_ms:-1,muzzy_decay_ms:-1,thp:always,oversize_threshold:0,narenas:2",
)

# Arrow's allocator returns freed pages after 10 ms, so that each shard in Parquet gets new ones, of
# 4 KB where free memory is scattered: of 1 GB, `sharded` had 512,000 page faults, and has 324,000
# with this. Read when pyarrow is imported.
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "10000")  # milliseconds

# glibc's allocator, that of NumPy and kernels, returns large blocks too: `signatures` of 1 GB had
# 146,000 page faults, and has 25,000 with the largest limits that it takes; 4.6 CPU s, not 5.1.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of malloc.h
if hasattr(libc := ctypes.CDLL(None), "mallopt"):  # only glibc has it
    libc.mallopt(TRIM_THRESHOLD, 1 << 30)
    libc.mallopt(MMAP_THRESHOLD, 1 << 25)

# Parts are encoded side by side. Threads of its own, as many as cores in every worker, would each
# learn the words anew: `tokenized` took a tenth more CPU. Read when fastokens first encodes.
os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")

# Dagster and the stages are half a million objects that stay: to look for garbage among them after
# every 700 new ones took a seventh of the CPU of a build with nothing to do.
gc.set_threshold(50_000)
