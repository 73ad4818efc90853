"""The asset chain (X): rules, mempool, block building, stored ledger."""
