"""Samples of sources, for a forecast: a share of their bytes, drawn at random."""
