"""Hold the lock of a store until killed: `hold_lock.py STORE JOB`."""

import sys
import time
from pathlib import Path

from resources.runs.run_lock import run_lock, this_holder


def tell(line: str) -> None:
    """Print what the lock says."""
    print(line, flush=True)


with run_lock(Path(sys.argv[1]), this_holder("0123456789", sys.argv[2]), tell, time.sleep):
    tell("held")
    if sys.argv[3:] == ["forking"]:
        import os

        if os.fork() == 0:
            time.sleep(60)
    time.sleep(60)
