"""Settings, store and engine: what every stage runs through."""
