"""Follows one chain into its store: blocks are verified, derived, completed from state, committed and rolled back."""
