"""Compare documents with evaluation sets."""
