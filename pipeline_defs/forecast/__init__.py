"""Foresee what the next run would compute, and say why."""
