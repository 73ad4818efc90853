"""Admin API commands, VM plugins and profiles."""
