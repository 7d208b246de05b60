"""The `corpus` command: one module per verb, in a folder per group."""
