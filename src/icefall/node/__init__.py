"""The node: its store, identity, health, admin commands, and following another node."""
