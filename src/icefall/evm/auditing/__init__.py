"""Checks what is stored: audits against contract state, and verification against the upstream's blocks."""
