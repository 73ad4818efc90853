"""Handlers of the primary network interface, by subject."""
