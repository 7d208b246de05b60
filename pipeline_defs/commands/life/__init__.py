"""Verbs that keep a built corpus whole."""
