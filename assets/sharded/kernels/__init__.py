"""Compiled loops of the shuffle."""
