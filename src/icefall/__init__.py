"""Icefall: the open, self-hosted data plane for Avalanche-style networks."""

__version__ = "0.2.0"
