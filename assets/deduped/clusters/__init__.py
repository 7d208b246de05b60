"""Clusters of candidate pairs, and the document of each that stays."""
