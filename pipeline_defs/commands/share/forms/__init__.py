"""Forms about training content: each is a module with `render(facts) -> str`."""
