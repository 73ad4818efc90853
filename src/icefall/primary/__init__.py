"""The primary network: the X-, P- and C-Chain together."""
