"""Data that blocks do not contain: token and NFT metadata, prices, reputations; fetched in the background."""
