"""What a process that the program is forked from has imported."""

import gc

gc.freeze()  # so that a collection in a forked process does not copy all of it
