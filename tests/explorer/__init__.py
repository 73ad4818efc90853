"""Pages of the Explorer in a real browser. This folder is a package, so that its fixtures end with its files."""
