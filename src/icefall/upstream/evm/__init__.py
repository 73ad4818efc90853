"""Clients for EVM nodes: batched calls, feature probing, fetching blocks and state."""
