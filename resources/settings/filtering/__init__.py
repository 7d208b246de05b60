"""`filters`: rules, their presets, and what changes a text."""
