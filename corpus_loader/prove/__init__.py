"""Prove that trainings on a corpus can be killed at any moment: `python -m corpus_loader.prove`."""
