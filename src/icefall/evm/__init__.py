"""EVM chains: from a block as a node tells it to the rows readers ask for."""
