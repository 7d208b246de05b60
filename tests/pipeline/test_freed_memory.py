"""Memory that arrays of NumPy and kernels give back is there for the next ones."""

import ctypes
import subprocess

from prelude import pytest, sys

ROUNDS_OF_ARRAYS = """
import resource
import pipeline_defs
import numpy as np

def faults():
    arrays = [np.ones(1 << 20) for _ in range(4)]  # 8 MB each, 8,192 pages together
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

before = [faults() for _ in range(3)][-1]
print(faults() - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not the C library of GNU")
def test_freed_arrays_leave_their_pages_to_the_next_ones() -> None:
    command = [sys.executable, "-c", ROUNDS_OF_ARRAYS]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(printed) < 1000
