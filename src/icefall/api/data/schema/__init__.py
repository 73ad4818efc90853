"""Parameter and result structs of the chain data interface."""
