"""Streams as inputs: Redis Streams."""
