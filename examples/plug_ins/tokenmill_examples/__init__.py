"""What a package adds to Tokenmill by entry points; see pyproject.toml beside it."""
