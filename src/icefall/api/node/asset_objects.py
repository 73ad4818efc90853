"""The objects of an asset chain as answers show them, which a worker keeps until anything is committed.

A node has blocks, transactions and outputs in memory. A worker reads them from the store and writes them as text: what
was asked about last is kept, so that the next question about the same object, in whatever words, needs neither. These
are objects, not answers: each answer is put together anew (docs/decisions/0025).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from icefall.api.node.schema.avm import AssetDescription, GetBlockResult, GetTxResult, UtxoReference
from icefall.wire.ids import id_text
from icefall.xchain.object_cache import ObjectCache
from icefall.xchain.ownership import owned_amounts
from icefall.xchain.reading import CACHED_MAX

_ASSETS_MAX = 4096
_OUTPUTS_MAX = 16384  # of all balances together
_EVER = 1 << 64  # no second


class HeldAsset:
    """The sum of some outputs of one asset, and the outputs."""

    __slots__ = ("amount", "outputs")

    def __init__(self) -> None:
        self.amount = 0
        self.outputs: list[UtxoReference] = []


class AssetHoldings:
    """What an address holds of each asset at the second `now_s`, and all the time from `since` on and before `until`:
    outputs are unlocked with time. With `partial`, locks and other owners do not matter."""

    __slots__ = ("_now_s", "_partial", "assets", "count", "since", "until")

    def __init__(self, now_s: int, *, partial: bool) -> None:
        self._now_s = now_s
        self._partial = partial
        self.assets: dict[bytes, HeldAsset] = {}
        self.count = 0
        self.since, self.until = 0, _EVER

    def add(self, utxos: Iterable[bytes]) -> None:
        """Add outputs of the address, newest first."""
        for asset_id, amount, txid, output_index, locktime in owned_amounts(utxos, partial=self._partial):
            if locktime > self._now_s:
                self.until = min(self.until, locktime)
                continue
            self.since = max(self.since, locktime)
            self.count += 1
            held = self.assets.get(asset_id)
            if held is None:
                held = self.assets[asset_id] = HeldAsset()
            held.amount += amount
            held.outputs.append(UtxoReference(id_text(txid), output_index))


class HoldingsKey(NamedTuple):
    """The owner of outputs, and whether those count that are locked or have other owners too."""

    address: bytes
    partial: bool


class AssetObjects:
    """Blocks by height or ID and transactions by ID, each with an encoding, descriptions of assets by ID, and what
    addresses hold. `version` is that of the store."""

    def __init__(self, version: Callable[[], int]) -> None:
        self.blocks: ObjectCache[tuple[int | bytes, str], GetBlockResult] = ObjectCache(version, CACHED_MAX)
        self.txs: ObjectCache[tuple[bytes, str], GetTxResult] = ObjectCache(version, CACHED_MAX)
        self.assets: ObjectCache[bytes, AssetDescription] = ObjectCache(version, _ASSETS_MAX)
        self.holdings: ObjectCache[HoldingsKey, AssetHoldings] = ObjectCache(version, _OUTPUTS_MAX)
