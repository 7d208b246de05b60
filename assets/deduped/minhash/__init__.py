"""Shingles, MinHash signatures and keys."""
