"""Creates the data directory, or says why that is not possible."""

import os
from pathlib import Path

from icefall.errors import StartRefused


def create_data_dir(data_dir: Path, subdirectory: str = "") -> None:
    """With a subdirectory, if one is given. StartRefused where it cannot be created or written."""
    directory = data_dir / subdirectory
    try:
        for path in (data_dir, directory):  # a parent gets the usual mode, not this one
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartRefused(f"the data directory {data_dir} cannot be created: {error.strerror}") from error
    if not all(os.access(path, os.W_OK | os.X_OK) for path in (data_dir, directory)):
        raise StartRefused(f"the data directory {data_dir} cannot be written: Permission denied")
