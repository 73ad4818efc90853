"""The time series of an EVM chain: rolled up as its blocks are written, read by the metrics API."""
