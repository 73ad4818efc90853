"""Ten calls to begin with: each has something to see in the demo."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

BUSY = "0x955FfD76eA8aE0DD686333CF0e79Ad4328329a2d"  # of the recorded people, the one with some of everything
RICH = "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"  # holds the pre-funded key of every local network
COIN = "0x051c35FA78C63222976BCe3B1E72f19aF7d5ad38"
C_CHAIN, L1 = "/v1/chains/43112", "/v1/chains/31337"


class ExampleCall(NamedTuple):
    """One call. A `body` makes it a POST."""

    says: str
    listener: str
    path: str
    body: Mapping[str, Any] | None = None

    def command(self, base_url: str) -> str:
        """To be pasted into a shell."""
        if self.body is None:
            return f"curl -s '{base_url}{self.path}'"
        body = json.dumps(self.body, separators=(",", ":"))
        return f"curl -s -H content-type:application/json {base_url}{self.path} \\\n    -d '{body}'"


def _rpc(says: str, path: str, method: str, **params: Any) -> ExampleCall:
    return ExampleCall(says, "node", path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


TOUR = (
    ExampleCall("Is everything well?", "node", "/ext/health"),
    _rpc("What does the pre-funded key hold?", "/ext/bc/X", "avm.getBalance", address=RICH, assetID="AVAX"),
    _rpc("What has it done on the X-Chain?", "/ext/bc/X", "avm.getAddressTxs", address=RICH, pageSize="5"),
    _rpc("The P-Chain's last block", "/ext/index/P/block", "index.getLastAccepted", encoding="hex"),
    ExampleCall("Which EVM chains are indexed?", "data", "/v1/chains"),
    ExampleCall("Somebody's last token transfers", "data", f"{L1}/addresses/{BUSY}/transactions:listErc20?pageSize=3"),
    ExampleCall(
        "Their tokens, and what they are worth", "data", f"{L1}/addresses/{BUSY}/balances:listErc20?currency=usd"
    ),
    ExampleCall("Their NFTs", "data", f"{C_CHAIN}/addresses/{BUSY}/balances:listErc721?pageSize=20"),
    ExampleCall("Who deployed a token, and when?", "data", f"{L1}/contracts/{COIN}/transactions:getDeployment"),
    ExampleCall("Transactions a second, by day", "metrics", "/v1/avg_tps/31337"),
)


def shown(base_urls: Mapping[str, str]) -> list[str]:
    """The lines that a start prints."""
    return [line for stop in TOUR for line in (f"# {stop.says}", stop.command(base_urls[stop.listener]))]
