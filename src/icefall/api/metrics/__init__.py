"""The metrics interface."""
