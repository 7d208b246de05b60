"""Streams as inputs: Redis Streams and topics of Kafka."""
