"""Scores of documents by their vectors, learned from labels."""
