"""The node interfaces: health, admin, info, index, the asset chain and the platform chain."""
