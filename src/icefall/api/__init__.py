"""The HTTP interfaces: node, chain data and metrics."""
