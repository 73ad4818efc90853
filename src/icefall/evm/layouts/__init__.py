"""Finds where token contracts store balances and owners, and proves it on their code."""
