"""The node's own facts, fixed for the life of the process: its ID, and what its network has decided."""

import re
from binascii import a2b_base64
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from icefall.errors import StartRefused
from icefall.wire.ids import FUJI_ID, MAINNET_ID, node_id_text

_ALWAYS = datetime(2020, 12, 5, 5, tzinfo=UTC)
_UNSCHEDULED = datetime(9999, 12, 1, tzinfo=UTC)


class NodeInfo(msgspec.Struct, frozen=True):
    node_id_text: str
    version: str
    network_id: int
    network_name: str
    address: str
    tx_fee: int
    create_asset_tx_fee: int
    stop_vertex_text: str


class UpgradeTimes(msgspec.Struct, frozen=True):
    """The times of the upgrades, in the order in which they took effect."""

    apricot: tuple[datetime, ...]  # phases 1, 2, 3, 4, 5, pre-6, 6, post-6
    apricot4_min_p_height: int
    banff: datetime
    cortina: datetime
    durango: datetime
    etna: datetime
    fortuna: datetime
    granite: datetime
    granite_epoch_ns: int
    helicon: datetime


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _all(*texts: str) -> tuple[datetime, ...]:
    return tuple(_at(text) for text in texts)


_MAINNET = UpgradeTimes(
    _all("2021-03-31T14:00", "2021-05-10T11:00", "2021-08-24T14:00", "2021-09-22T21:00", "2021-12-02T18:00",
         "2022-09-05T01:30", "2022-09-06T20:00", "2022-09-07T03:00"),
    793005, _at("2022-10-18T16:00"), _at("2023-04-25T15:00"), _at("2024-03-06T16:00"), _at("2024-12-16T17:00"),
    _at("2025-04-08T15:00"), _at("2025-11-19T16:00"), 300 * 10**9, _UNSCHEDULED,
)  # fmt: skip
_FUJI = UpgradeTimes(
    _all("2021-03-26T14:00", "2021-05-05T14:00", "2021-08-16T19:00", "2021-09-16T21:00", "2021-11-24T15:00",
         "2022-09-06T20:00", "2022-09-06T20:00", "2022-09-07T06:00"),
    47437, _at("2022-10-03T14:00"), _at("2023-04-06T15:00"), _at("2024-02-13T16:00"), _at("2024-11-25T16:00"),
    _at("2025-03-13T15:00"), _at("2025-10-29T15:00"), 300 * 10**9, _UNSCHEDULED,
)  # fmt: skip
_OTHERS = UpgradeTimes(
    (_ALWAYS,) * 8, 0, _ALWAYS, _ALWAYS, _ALWAYS, _ALWAYS, _ALWAYS, _ALWAYS, 30 * 10**9, _UNSCHEDULED
)


def upgrade_times(network_id: int) -> UpgradeTimes:
    return {MAINNET_ID: _MAINNET, FUJI_ID: _FUJI}.get(network_id, _OTHERS)


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
