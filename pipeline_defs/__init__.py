"""Dagster wiring and the command line."""

import ctypes
import gc
import os
from importlib.util import find_spec

# Other projects have packages of these names, too; Python takes the first one in sys.path.
for name, own in {"assets": "stages", "resources": "stage", "corpus_loader": "mixture"}.items():
    spec = find_spec(name)
    folders = (spec and spec.submodule_search_locations) or ()
    if spec and not any(os.path.exists(os.path.join(each, f"{own}.py")) for each in folders):
        raise ImportError(
            f"Tokenmill's package {name!r} is hidden by {spec.origin or folders}. Install it into "
            f"an environment of its own, and run it where no other {name!r} is found first."
        )

# Polars' allocator returns freed pages to Linux, those of large blocks at once, and requests them
# again for the next column. Here it keeps them, in huge pages and in two arenas for all threads: a
# build of 1 GB takes 63.5 CPU s; 66 if pages are kept for ten seconds, but those of large blocks
# not at all, and 86 in pages of 4 KB. Linux clears what it hands out, and a virtual machine may
# have to ask its host for it. It reads this when polars is imported.
os.environ.setdefault(
    "_RJEM_MALLOC_CONF",
    "dirty_decay_ms:-1,muzzy_decay_ms:-1,thp:always,oversize_threshold:0,narenas:2",
)

# NumPy, kernels and Arrow take memory from glibc's allocator, which would return large blocks, too:
# `signatures` of 1 GB had 146,000 page faults, and has 25,000 if all come from a heap that is not
# trimmed; 4.6 CPU s, not 5.2. `sharded` takes 5.9 s, 6.5 with an allocator of Arrow's own beside
# it, and all processes 0.2 GB less. Arrow reads this when pyarrow is imported.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
TRIM_THRESHOLD, MMAP_MAX = -1, -4  # of malloc.h
if hasattr(libc := ctypes.CDLL(None), "mallopt"):  # only glibc has it
    libc.mallopt(TRIM_THRESHOLD, 1 << 30)
    libc.mallopt(MMAP_MAX, 0)

# Parts are encoded side by side. Threads of its own, as many as cores in every worker, would each
# learn the words again: `tokenized` took a tenth more CPU. Read when fastokens first encodes.
os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")

# Dagster and the stages are half a million objects that stay: to look for garbage among them after
# every 700 new ones took a seventh of the CPU of a build with nothing to do.
gc.set_threshold(50_000)
