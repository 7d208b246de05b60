"""Preload of the engine's fork server: its workers start with Polars loaded.

Polars reads the number of its threads when it is imported: later is too late. One thread a worker,
because the workers already use every core. Never import this in the process that orchestrates.
"""

import os
from importlib import import_module

os.environ["POLARS_MAX_THREADS"] = "1"
import_module("resources.store.store")
