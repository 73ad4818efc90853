"""EVM blocks: decoding what nodes send, recomputing hashes, decoding contract events."""
