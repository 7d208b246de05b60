"""Find and replace personal data."""
