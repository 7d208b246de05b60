"""The mirror of pipeline.yaml: one module per top-level key."""
