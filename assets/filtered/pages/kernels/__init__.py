"""Kernel of the counts behind the scores of pages."""
