"""Verbs for the kept states of the corpus: compare them, name them, go back, clean up."""
