"""The call of the platform chain that clients of the asset chain need."""

from icefall.api.params.node_binder import NoParams
from icefall.api.schema.platform import FeeConfig

# The dynamic fee parameters every network of this generation starts with.
_FEES = FeeConfig([1, 1000, 1000, 4], 1_000_000, 100_000, 50_000, 1, 2_164_043)


async def get_fee_config(_: NoParams) -> FeeConfig:
    return _FEES
