"""Formats without a reader of our own, which the package `datasets` reads."""
