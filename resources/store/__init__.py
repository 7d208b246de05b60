"""Parts, manifests and how they are published."""
