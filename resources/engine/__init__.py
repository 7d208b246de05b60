"""Map a function over parts, in threads or processes."""
