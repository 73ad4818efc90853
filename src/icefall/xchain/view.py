"""Fixed properties of an asset chain, for workers: its names, its fees, and the aliases of its genesis assets."""

from collections.abc import Mapping

import msgspec

from icefall.wire.avm.json import ChainNaming
from icefall.wire.ids import id_text


class ChainView(msgspec.Struct, frozen=True):
    chain_id: bytes
    naming: ChainNaming
    asset_ids: Mapping[str, bytes]  # by genesis alias, the fee asset first
    tx_fee: int
    create_asset_tx_fee: int

    def asset_name(self, asset_id: bytes) -> str:
        """A genesis asset by its alias, any other by its ID."""
        return next((name for name, known in self.asset_ids.items() if known == asset_id), "") or id_text(asset_id)
