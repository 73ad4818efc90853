"""Readers of an indexed chain: what workers ask of its store, every query bounded."""
