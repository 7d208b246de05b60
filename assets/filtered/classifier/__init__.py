"""A classifier of good and bad documents."""
