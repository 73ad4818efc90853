"""The JSON of the primary network interface, made from rows of the P-Chain."""
