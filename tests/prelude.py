"""What most tests import, in one line: `from prelude import Any, Path, np, pl, pytest`."""

import hashlib
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from polars.testing import assert_frame_equal
from pydantic import ValidationError

__all__ = [
    "Any",
    "Callable",
    "Counter",
    "Iterator",
    "NDArray",
    "Path",
    "ValidationError",
    "assert_frame_equal",
    "example",
    "given",
    "hashlib",
    "json",
    "np",
    "os",
    "pairwise",
    "pl",
    "pytest",
    "re",
    "settings",
    "st",
    "sys",
    "time",
]
