"""Parts of `corpus trace`."""
