"""Nodes we read from: how they are asked, and what their answers look like. What to believe is decided elsewhere."""
