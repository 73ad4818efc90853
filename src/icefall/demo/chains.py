"""The two recorded EVM chains of the demo as settings, and the ten calls that are printed at the start."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from icefall.demo.recording import Kind, Recording
from icefall.wire.ids import LOCAL_FUNDED_ADDRESS

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
            "blockchain_id": "2owdGqyG6FFzTHy5qhenDXQcEghvr571KZE3gSfRJERSJinuwC",
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
            **({"token_list": str(listed)} if (listed := _DATA / chain.name / "token-list.json").is_file() else {}),
            "store_logs": True,
            "store_traces": True,
        }
        for chain in CHAINS
    ]


def recordings() -> dict[str, Recording]:
    return {chain.name: Recording(_DATA / chain.name, chain.kind) for chain in CHAINS}


BUSY = "0x5d038640E1a2085e1e4fB53dAaca6807f892b00C"  # an address with transfers and tokens of every kind
C_BUSY = "0x955FfD76eA8aE0DD686333CF0e79Ad4328329a2d"  # the same on the C-Chain
COIN = "0x5A7Cf40d3b2A2FfEA2ad8fa63E5900690b53f411"
C_CHAIN, L1 = "/v1/chains/43112", "/v1/chains/3210042"


class ExampleCall(NamedTuple):
    """One call. A `body` makes it a POST."""

    summary: str
    listener: str
    path: str
    body: Mapping[str, Any] | None = None

    def command(self, base_url: str) -> str:
        """A shell command."""
        if self.body is None:
            return f"curl -s '{base_url}{self.path}'"
        body = json.dumps(self.body, separators=(",", ":"))
        return f"curl -s -H content-type:application/json {base_url}{self.path} \\\n    -d '{body}'"


def _rpc(summary: str, path: str, method: str, **params: Any) -> ExampleCall:
    return ExampleCall(summary, "node", path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


TOUR = (
    ExampleCall("Is the node healthy?", "node", "/ext/health"),
    _rpc(
        "The balance of the pre-funded key", "/ext/bc/X", "avm.getBalance", address=LOCAL_FUNDED_ADDRESS, assetID="AVAX"
    ),
    _rpc(
        "Its transactions on the X-Chain", "/ext/bc/X", "avm.getAddressTxs", address=LOCAL_FUNDED_ADDRESS, pageSize="5"
    ),
    _rpc("The P-Chain's last block", "/ext/index/P/block", "index.getLastAccepted", encoding="hex"),
    ExampleCall("Which EVM chains are indexed?", "data", "/v1/chains"),
    ExampleCall(
        "The latest token transfers of an address", "data", f"{L1}/addresses/{BUSY}/transactions:listErc20?pageSize=3"
    ),
    ExampleCall("Its token balances and their value", "data", f"{L1}/addresses/{BUSY}/balances:listErc20?currency=usd"),
    ExampleCall("Its NFTs", "data", f"{C_CHAIN}/addresses/{C_BUSY}/balances:listErc721?pageSize=20"),
    ExampleCall("Who deployed a token, and when?", "data", f"{L1}/contracts/{COIN}/transactions:getDeployment"),
    ExampleCall("Transactions per second, by day", "metrics", "/v1/avg_tps/3210042"),
)


def tour_lines(base_urls: Mapping[str, str]) -> list[str]:
    """The lines to print at a start."""
    return [line for call in TOUR for line in (f"# {call.summary}", call.command(base_urls[call.listener]))]
