"""Recorded chains for a first start: a history to import, two EVM chains to index, an upstream that replays them."""
