"""The chain data interface."""
