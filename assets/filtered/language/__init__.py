"""Language identification."""
