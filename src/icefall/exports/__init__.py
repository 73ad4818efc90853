"""Exports that callers of the API order: jobs in the access store, and files that can be downloaded for a while."""
