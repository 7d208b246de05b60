"""Annotate documents: what models, people or other programs say of them, as columns."""
