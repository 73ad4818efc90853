"""Commands for operators, next to the running programs: forget a chain, back up and restore, show the status."""
