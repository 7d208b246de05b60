"""Materialize a stage, and report to Dagster."""
