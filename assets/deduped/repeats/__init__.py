"""Repeated lines and repeated runs of words."""
