"""From pairs to clusters, and who stays."""
