"""One function per endpoint of the node interfaces."""
