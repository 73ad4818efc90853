"""When an answer equals a recorded one: what has an order there must have it here, what has none may have any."""

import json
from typing import Any

# Lists without an order: (method, key in the result).
UNORDERED = {
    ("platform.getBalance", "utxoIDs"),
    ("platform.getRewardUTXOs", "utxos"),
    ("platform.getSubnets", "subnets"),
    ("platform.getBlockchains", "blockchains"),
    ("platform.validates", "blockchainIDs"),
}
OWN_VIEW = ("uptime", "connected")  # of the recorded node alone
NOT_COMPARED = ("platform.sampleValidators", "platform.getProposedHeight")  # random; of the recorded node alone


def comparable(method: str, params: Any, response: Any, *, is_drawn: bool) -> Any:
    """The part of an answer that must be equal, lists without an order sorted. `is_drawn`: outputs of one block have
    the recorded order."""
    if not isinstance(response, dict) or not isinstance(response.get("result"), dict):
        return response
    result = dict(response["result"])
    for key, value in result.items():
        if (method, key) in UNORDERED and value:
            result[key] = sorted(value, key=json.dumps)
    if method == "platform.getCurrentValidators":
        entries = [{k: v for k, v in entry.items() if k not in OWN_VIEW} for entry in result["validators"]]
        result["validators"] = sorted(entries, key=json.dumps) if _asks_for_several(params) else entries
    if method == "platform.getAllValidatorsAt":  # nodes with the same key
        for of_subnet in result["validatorSets"].values():
            for one in of_subnet["validators"]:
                one["nodeIDs"].sort()
    if method == "platform.getUTXOs" and not is_drawn:
        result["utxos"] = sorted(result["utxos"])
        result["endIndex"] = result["endIndex"]["address"]  # the last output of a list without an order
    return {**response, "result": result}


def _asks_for_several(params: Any) -> bool:
    return isinstance(params, dict) and (len(params.get("nodeIDs") or []) > 1 or bool(params.get("subnetID")))
