"""AvalancheGo and Icefall, which follows it: asked the same of the P-Chain when both are at one height."""

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tests.go_node import GoNode
from tests.pchain.answer_equality import comparable
from tests.server import Server
from tests.waiting import LIMIT_S

from icefall.wire.ids import PRIMARY_NETWORK, id_text

_POLL_S = 0.2
_NUMBERS = ("getTimestamp", "getFeeState", "getValidatorFeeState", "getSubnets", "getBlockchains")
_OF_SUBNETS = ("getCurrentSupply", "getCurrentValidators", "getTotalStake", "getMinStake")
_ELASTIC_ONLY = ("getCurrentSupply", "getMinStake")  # beside the primary network


class Compared:
    """Both nodes. `subnets`, `validations`, `addresses` and `stakes` (transactions) are asked about from when they are
    known on."""

    def __init__(self, go: GoNode, ours: Server, addresses: list[str]) -> None:
        self._nodes: tuple[Any, Any] = (go, ours)
        self.subnets = [PRIMARY_NETWORK]
        self.validations: list[bytes] = []
        self.stakes: list[bytes] = []
        self.addresses = addresses
        self.heights: set[int] = set()

    def ask_go(self, method: str, params: dict[str, Any]) -> Any:
        return self._ask(self._nodes[0], method, params)

    def chain_time(self) -> int:
        """The time of the newest block, in Unix seconds."""
        text = self.ask_go("getTimestamp", {})["result"]["timestamp"]
        return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())

    def _ask(self, node: Any, method: str, params: dict[str, Any]) -> Any:
        return node.call("/ext/bc/P", f"platform.{method}", params)

    def _heights(self, node: Any) -> tuple[int, int]:
        """The heights of P, and of X, whose exports are part of what P can import."""
        of_x = node.call("/ext/bc/X", "avm.getHeight")["result"]["height"]
        return int(self._ask(node, "getHeight", {})["result"]["height"]), int(of_x)

    def _questions(self, height: int) -> Iterator[tuple[str, dict[str, Any]]]:
        for method in _NUMBERS:
            yield method, {}
        for subnet_id in map(id_text, self.subnets):
            for method in _OF_SUBNETS:
                if method not in _ELASTIC_ONLY or subnet_id == id_text(PRIMARY_NETWORK):
                    yield method, {"subnetID": subnet_id}
            yield "getValidatorsAt", {"subnetID": subnet_id, "height": height}
            if subnet_id != id_text(PRIMARY_NETWORK):
                yield "getSubnet", {"subnetID": subnet_id}
        for validation_id in map(id_text, self.validations):
            yield "getL1Validator", {"validationID": validation_id}
        for txid in map(id_text, self.stakes):
            yield "getTxStatus", {"txID": txid}
            yield "getRewardUTXOs", {"txID": txid}
        for one in (*[[address] for address in self.addresses], self.addresses):
            yield "getBalance", {"addresses": one}
            yield "getStake", {"addresses": one}
            for source in ("", "X", "C"):
                yield "getUTXOs", {"addresses": one, "limit": 1024, **({"sourceChain": source} if source else {})}
        for encoding in ("hex", "json"):
            yield "getBlockByHeight", {"height": height, "encoding": encoding}

    def _state(self, node: Any, height: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for method, params in self._questions(height):
            answer = self._ask(node, method, params)
            answer.pop("id", None)
            found[f"{method} {params}"] = comparable(f"platform.{method}", params, answer, is_drawn=False)
        return found

    def check(self) -> int:
        """Wait until both are at one height, and compare them there; the height. What is locked until a moment between
        two questions is answered alike when it is asked again."""
        deadline = time.monotonic() + LIMIT_S
        for is_last in (False, False, True):
            height, found = self._both_at_a_height(deadline)
            wrong = found and _difference(*found)
            if not wrong:
                break
            assert not is_last, f"height {height}: {wrong}"
        self.heights.add(height)
        return height

    def _both_at_a_height(self, deadline: float) -> tuple[int, tuple[dict[str, Any], dict[str, Any]] | None]:
        """The height, and both states there; None if they were compared before."""
        go, ours = self._nodes
        while True:
            heights = self._heights(go)
            height = heights[0]
            if height in self.heights:
                return height, None
            if self._heights(ours) == heights:
                states = self._state(go, height), self._state(ours, height)
                if self._heights(go) == self._heights(ours) == heights:
                    return height, states
            assert time.monotonic() < deadline, "Icefall does not follow"
            time.sleep(_POLL_S)


def _difference(expected: dict[str, Any], ours: dict[str, Any]) -> str:
    wrong = next((question for question, answer in expected.items() if ours[question] != answer), None)
    return "" if wrong is None else f"{wrong}: {ours[wrong]}, AvalancheGo {expected[wrong]}"
