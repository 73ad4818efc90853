"""The platform chain: results of the calls that clients of the asset chain make."""

from icefall.api.schema.names import Result


class FeeConfig(Result, frozen=True):
    weights: list[int]
    max_capacity: int
    max_per_second: int
    target_per_second: int
    min_price: int
    excess_conversion_constant: int
