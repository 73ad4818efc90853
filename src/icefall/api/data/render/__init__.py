"""Rendering of stored rows as results of the chain data interface."""
