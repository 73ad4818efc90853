"""Bytes and text to structs and back. Pure: no clock, no network, no configuration."""
