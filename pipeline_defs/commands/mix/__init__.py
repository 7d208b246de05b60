"""Verbs for the thresholds of rules: replay and calibrate them; show documents."""
