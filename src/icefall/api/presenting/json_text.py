"""Results as JSON text, for the items of long lists: `msgspec.Raw` is copied into the answer as it is.

An item costs a third of what a struct for it, and encoding that, would cost. Whatever a chain or an operator has
chosen, such as names, is encoded by msgspec. The text around it has the fields of the schema in their order, which
tests/api/test_data_schema.py checks.
"""

from functools import lru_cache
from typing import Any

import msgspec

Ready = Any  # a msgspec.Raw: it stands where the schema names a struct


def json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# The same few strings again and again: chain IDs, names of methods, kinds of calls.
quoted = lru_cache(maxsize=4096)(json_text)
