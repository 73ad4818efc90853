"""What a process that the program is forked from has imported: every module of the program, and of other packages what
a verb imports when it needs it."""

import gc
import pkgutil
from importlib import import_module

import icefall

NEEDED_LATER = ("aiohttp", "cryptography.hazmat.backends.openssl.backend", "encodings.idna", "psycopg")

for _found in pkgutil.walk_packages(icefall.__path__, "icefall."):
    import_module(_found.name)
for _name in NEEDED_LATER:
    import_module(_name)

gc.freeze()  # so that a collection in a forked process does not copy all of it
