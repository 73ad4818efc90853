"""Settings: declared once in settings.py, read from the command line, the environment and icefall.toml."""
