"""Parameters and results of the primary network interface, by subject."""
