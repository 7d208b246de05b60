"""Errors of the store."""

from __future__ import annotations


class StoreError(RuntimeError):
    """A request that the store cannot serve; the message says what to do."""


class DamagedFileError(StoreError, ValueError):
    """A file that differs from what was published; no retry will read anything else."""
