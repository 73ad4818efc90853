"""Derives the rows of a block, one kind per file. Pure: whatever they need besides the block is passed in."""
