"""Histograms and drift for reports."""
