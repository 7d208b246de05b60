"""Questions about documents to a chat endpoint."""
