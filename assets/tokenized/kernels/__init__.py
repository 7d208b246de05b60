"""Compiled loops of tokenization."""
