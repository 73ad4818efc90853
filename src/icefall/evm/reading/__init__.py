"""Readers of an indexed chain for the API workers. Every query is bounded."""
