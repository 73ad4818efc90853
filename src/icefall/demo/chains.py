"""The recorded EVM chains of the demo, as `[[chain]]` tables of icefall.toml would list them."""

from importlib.resources import files
from typing import Any, NamedTuple

from icefall.demo.recording import Kind, Recording

_DATA = files("icefall.demo") / "data"
_AVAX = {"name": "Avalanche", "symbol": "AVAX", "decimals": 18}


class DemoChain(NamedTuple):
    """`name` is the folder of its recording and the path at which it is replayed."""

    name: str
    kind: Kind
    table: dict[str, Any]


CHAINS = (
    DemoChain(
        "cchain-1",
        "coreth",
        {
            "id": "43112",
            "name": "Recorded C-Chain",
            "description": "The C-Chain of a local network, recorded; it gets no new blocks.",
            "blockchain_id": "2CA6j5zYzasynPsFeNoqWkmTCt3VScMvXUZHbfDJ8k3oGzAPtU",
            "subnet_id": "11111111111111111111111111111111LpoYY",
            "vm_id": "mgj786NP7uDwBCcq6YwThhaN8FLyybkCa4zBWTQbNgmK6k9A6",
            "token": _AVAX | {"description": "Pays for transactions."},
            "testnet": True,
            "features": ["nftIndexing"],
        },
    ),
    DemoChain(
        "demo-1",
        "anvil",
        {
            "id": "3210042",
            "name": "Demo L1",
            "description": "Forty-five days of a small chain, recorded; it gets no new blocks.",
            "token": {"name": "Demo coin", "symbol": "DEMO", "decimals": 18},
            "testnet": True,
            "features": ["nftIndexing", "teleporter"],
            "teleporter": "0x253b2784c75e510dD0fF1da844684a1aC0aa5fcf",
        },
    ),
)


def tables(base_url: str) -> list[dict[str, Any]]:
    """Return the demo's chains as `[[chain]]` tables of a config file, read from a replay at `base_url`."""
    return [
        {
            **chain.table,
            "rpc": [f"{base_url}/{chain.name}"],
            "prices": str(_DATA / chain.name / "prices.json"),
            "store_logs": True,
            "store_traces": True,
        }
        for chain in CHAINS
    ]


def recordings() -> dict[str, Recording]:
    return {chain.name: Recording(_DATA / chain.name, chain.kind) for chain in CHAINS}
