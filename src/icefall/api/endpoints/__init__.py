"""The endpoint table: every path and method served, one row each."""
