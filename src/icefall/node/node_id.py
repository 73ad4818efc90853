"""The NodeID of an identity that the engine has made and checked (`identity.py`), for workers.

Only the bytes of the certificate are needed for it: no library that understands certificates, which takes long to
import.
"""

import re
from binascii import a2b_base64
from pathlib import Path

from icefall.errors import StartRefused
from icefall.wire.ids import node_id_text

CERTIFICATE_NAME = "staker.crt"
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def read_node_id(directory: Path) -> str:
    path = directory / CERTIFICATE_NAME
    try:
        found = _PEM.search(path.read_bytes())
    except OSError as failure:
        raise StartRefused(f"{path} cannot be read: {failure.strerror}") from failure
    if found is None:
        raise StartRefused(f"{path} is not a certificate in PEM form")
    return node_id_text(a2b_base64(found[1]))
