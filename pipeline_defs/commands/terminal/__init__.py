"""Output and option types that several verbs share."""
