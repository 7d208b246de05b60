"""Where a corpus is read: folders, web servers, object stores; with caches, locks and errors."""
