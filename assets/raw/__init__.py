"""Read input files into documents."""
