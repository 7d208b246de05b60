"""Verbs that prepare training."""
