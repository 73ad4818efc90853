"""Derives the rows of a block, one subject per file. Pure: whatever is needed besides the block is passed in."""
