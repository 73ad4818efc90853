"""Follows chains: from an upstream's blocks to committed batches, with reorganisations."""
