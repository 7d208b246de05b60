"""Key index over all parts, and the ingest ledger."""
