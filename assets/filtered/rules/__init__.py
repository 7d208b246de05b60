"""Rules: named expressions over scores."""
