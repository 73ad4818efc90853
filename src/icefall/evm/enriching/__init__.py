"""Fetches data that blocks do not contain: token and NFT metadata, prices, reputations; in the background."""
