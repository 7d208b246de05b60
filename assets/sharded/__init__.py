"""Shuffle sequences and write shards."""
