"""The indexing of EVM chains: from blocks as nodes return them to the rows that the API reads."""
