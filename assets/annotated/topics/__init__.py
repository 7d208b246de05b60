"""Topics of documents, by clusters of their vectors."""
