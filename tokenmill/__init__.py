"""What packages that add to Tokenmill import: the module `plugins`."""
