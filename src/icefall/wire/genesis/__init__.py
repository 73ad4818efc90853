"""Genesis files and everything computed from them: chain IDs, first blocks, the fee asset."""
