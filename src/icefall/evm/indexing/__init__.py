"""From an upstream's blocks to committed batches, with reorganisations."""
