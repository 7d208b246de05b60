"""The index of keys over all parts, and the ledger."""
