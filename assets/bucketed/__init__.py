"""Pack documents into sequences."""
