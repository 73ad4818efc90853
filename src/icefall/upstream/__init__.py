"""Clients for the nodes we read from: transport, retries, decoding, failover."""
