"""Plan the mix of each phase."""
