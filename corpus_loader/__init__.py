"""What a training job imports: it reads a mixed corpus, in one order for any number of ranks."""
