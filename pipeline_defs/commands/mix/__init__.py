"""Verbs for the weights of a phase: mixtures for proxy runs, and what these found."""
