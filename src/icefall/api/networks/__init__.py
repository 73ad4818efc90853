"""The primary network interface: blocks, transactions, outputs and stakes of the P-Chain."""
