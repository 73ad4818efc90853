"""Parameter and result structs of the node interfaces."""
