"""The composition roots: every part is constructed here, with the values of the configuration."""
