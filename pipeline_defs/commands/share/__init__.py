"""Verbs of what leaves the corpus."""
