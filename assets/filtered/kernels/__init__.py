"""Compiled loops of the filters."""
