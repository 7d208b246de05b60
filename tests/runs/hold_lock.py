"""Hold the lock of a store until killed: `hold_lock.py STORE [forking]`."""

import os
import sys
import time
from pathlib import Path

from resources.runs.run_lock import run_lock, this_holder


def tell(line: str) -> None:
    """Print what the lock says."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


with run_lock(Path(sys.argv[1]), this_holder("0123456789", "build_corpus"), tell, time.sleep):
    if "forking" in sys.argv and os.fork() == 0:
        time.sleep(600)
    tell("held")
    time.sleep(600)
