"""A network of one AvalancheGo that validates it with a key of ours, so that the test can sign as its validators do.

The node of `--network-id=local` with its one process is no validator, and without validators no message is accepted.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests.bls import public_key_of, secret_of, signer_of, sorts_at
from tests.go_node import GoNode, go_node
from tests.platform_wallet import ADDRESS, genesis_signers

from icefall.node.identity import ensure_identity
from icefall.pchain.parameters import FORK_NAMES
from icefall.wire.genesis.network import packaged_genesis
from icefall.wire.ids import LOCAL_ID
from icefall.wire.text.bech32 import address_from_text, address_text

NETWORK_ID, HRP = 424243, "custom"
EPOCH_S = 1
_AGE_S = 3600
_NANOSECONDS = 10**9
_NEVER = "9999-12-01T00:00:00Z"
_ACTIVE = "2020-12-05T05:00:00Z"
_OTHER_FORKS = ("Phase1", "Phase2", "Phase3", "Phase4", "PhasePre6", "Phase6", "PhasePost6")
_ALONE = (
    "--sybil-protection-enabled=true",
    "--proposervm-use-current-height=true",
    "--bootstrap-ips=",
    "--bootstrap-ids=",
)


def _first_secret() -> int:
    """A key that comes before those of the local network, so that its validator is the first of the signers."""
    others = min(sorts_at(signer.public_key) for _, signer in genesis_signers())
    secrets = (secret_of(b"the validator %d" % number) for number in count())
    return next(one for one in secrets if sorts_at(public_key_of(one)) < others)


class ValidatedNetwork:
    """The files of a new network in a folder: genesis, upgrades, and who its node is."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self.node_secret = _first_secret()
        self._identity = ensure_identity(folder / "staking")
        (folder / "signer.key").write_bytes(self.node_secret.to_bytes(32, "big"))
        self.genesis_file, self.upgrade_file = folder / "genesis.json", folder / "upgrade.json"
        self.genesis_file.write_text(json.dumps(self._genesis()))
        self.upgrade_file.write_text(json.dumps(_upgrades()))
        self.shared_flags = (
            f"--network-id={NETWORK_ID}",
            f"--genesis-file={self.genesis_file}",
            f"--upgrade-file={self.upgrade_file}",
        )

    def _genesis(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(packaged_genesis(LOCAL_ID))
        for one in found["allocations"]:
            one["avaxAddr"] = _here(one["avaxAddr"])
        signer = signer_of(self.node_secret)
        found |= {
            "networkID": NETWORK_ID,
            "startTime": int(time.time()) - _AGE_S,
            "initialStakedFunds": [_here(one) for one in found["initialStakedFunds"]],
            "initialStakers": [
                {
                    "nodeID": self._identity.node_id_text,
                    "rewardAddress": address_text("X", HRP, ADDRESS),
                    "delegationFee": 62_500,
                    "signer": {
                        "publicKey": f"0x{signer.public_key.hex()}",
                        "proofOfPossession": f"0x{signer.proof_of_possession.hex()}",
                    },
                }
            ],
        }
        return found

    @contextmanager
    def node(self, program: str, *flags: str) -> Iterator[GoNode]:
        staking = (
            f"--staking-tls-cert-file={self._identity.certificate_pem_path}",
            f"--staking-tls-key-file={self._identity.key_path}",
            f"--staking-signer-key-file={self._folder / 'signer.key'}",
        )
        network = *self.shared_flags, *staking, *_ALONE
        with go_node(program, self._folder / "go", *flags, network=network) as node:
            yield node


def _here(text: str) -> str:
    chain, _, address = address_from_text(text)
    return address_text(chain, HRP, address)


def _upgrades() -> dict[str, Any]:
    """All upgrades have happened, and an epoch is over soon."""
    names = *FORK_NAMES, "fortunaTime", "graniteTime", *(f"apricot{name}Time" for name in _OTHER_FORKS)
    return {
        **dict.fromkeys(names, _ACTIVE),
        "heliconTime": _NEVER,
        "apricotPhase4MinPChainHeight": 0,
        "cortinaXChainStopVertexID": "11111111111111111111111111111111LpoYY",
        "graniteEpochDuration": EPOCH_S * _NANOSECONDS,
    }
