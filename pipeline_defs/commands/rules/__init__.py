"""Verbs for the thresholds of rules: replay, calibrate and propose them; show documents."""
