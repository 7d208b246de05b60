"""Train or load the tokenizer; encode documents."""
