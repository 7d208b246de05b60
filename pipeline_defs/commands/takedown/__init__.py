"""`corpus takedown`: remove documents for good, everywhere, and prove it."""
