"""The codec of the P-Chain: its blocks, transactions, UTXOs, warp messages and genesis."""
