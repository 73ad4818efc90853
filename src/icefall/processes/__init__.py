"""The processes of a program: which are started, how they are watched, restarted and stopped."""
