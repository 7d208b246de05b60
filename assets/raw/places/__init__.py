"""Find input files, and download those behind URLs."""
