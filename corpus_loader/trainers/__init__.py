"""Batches, ranks and checkpoints as training frameworks expect them."""
