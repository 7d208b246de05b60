"""Verbs that show what was built, and what became of a document."""
