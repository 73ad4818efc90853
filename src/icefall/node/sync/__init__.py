"""Following an existing node: its containers are fetched, verified and executed."""
