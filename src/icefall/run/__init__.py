"""The processes of the program: the supervisor, its children, and the composition roots engine, indexer and worker."""
