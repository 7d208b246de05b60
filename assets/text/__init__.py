"""Text columns for the stages that read text."""
