"""Recorded chains to look at: a history to import, two EVM chains to index, and an upstream that replays them."""
