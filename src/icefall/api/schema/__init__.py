"""Parameter and result structs of all endpoints."""
