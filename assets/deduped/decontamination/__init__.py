"""Decontamination: comparison of documents with evaluation sets."""
