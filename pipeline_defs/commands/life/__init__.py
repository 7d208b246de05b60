"""Verbs that keep the files of the store whole, and records that could not be read."""
