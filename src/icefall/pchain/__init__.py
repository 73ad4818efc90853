"""The P-Chain, executed from its accepted blocks: pure rules, ledger, store and queries."""
