"""Vectors of documents."""
