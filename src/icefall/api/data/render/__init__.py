"""From stored rows to results of the chain data interface."""
