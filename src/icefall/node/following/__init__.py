"""Follows the chains of an upstream node: fetches, verifies and stores their containers."""
