"""Places of a corpus: folders, web servers, object stores; with caches, locks and errors."""
