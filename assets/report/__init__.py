"""Plots, histograms and excerpts for reports."""
