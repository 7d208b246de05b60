"""The runs on a store: who works on it, what became of each run, and who is told."""
