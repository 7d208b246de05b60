"""Shingles, MinHash signatures and candidate keys."""
