"""What stands behind the verbs of the command line that are not servers."""
