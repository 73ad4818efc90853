"""The Explorer: static files and their headers. They read the public interfaces and nothing else."""
