"""One function per endpoint of the chain data interface: read, shape, return."""
