"""Verbs that write the configuration and build the corpus."""
