"""Scores of the form of pages: what surrounds text, spam, noise, and cut texts."""
