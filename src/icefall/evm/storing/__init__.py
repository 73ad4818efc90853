"""Writes the store of a chain: batches of blocks with balances and ownership, and rollbacks."""
