"""Token balances and owners folded from logs, against the recorded state of every block."""

import json
from collections import Counter
from typing import Any

import pytest
from tests.evm.recordings import CHAINS, derived, kind_of, labelled, lines, meta, states, tokens, unhex

from icefall.evm.deriving.derive import contract_lookups
from icefall.evm.model import ZERO_ADDRESS, BlockRows, ProbedStandard

# Tokens whose logs disagree with balanceOf: wrapped native coin, a fee without a log, a rebase.
UNTRUSTED = ("wrapped", "tollSilent", "tide")


def untrusted_tokens(chain: str) -> dict[bytes, str]:
    return {labelled(chain, label): label for label in UNTRUSTED}


class Fold:
    def __init__(self, chain: str) -> None:
        self.scribe = labelled(chain, "scribe")
        self.erc20: dict[tuple[bytes, bytes], int] = {}
        self.erc1155: dict[tuple[bytes, bytes, int], int] = {}
        self.owner: dict[tuple[bytes, int], bytes] = {}

    def take(self, rows: BlockRows) -> None:
        for one in rows.erc20_deltas:
            pair = one.token, one.holder
            self.erc20[pair] = self.erc20.get(pair, 0) + one.delta
        for many in rows.erc1155_deltas:
            key = many.token, many.holder, many.token_id
            self.erc1155[key] = self.erc1155.get(key, 0) + many.delta
        for nft in rows.nft_owners:
            held = self.owner.get((nft.token, nft.token_id), ZERO_ADDRESS)
            assert held == nft.owner_before or nft.token == self.scribe  # which logs what it likes
            self.owner[nft.token, nft.token_id] = nft.owner


def erc20_of(line: Any) -> dict[tuple[bytes, bytes], int | None]:
    return {
        (unhex(token), unhex(holder)): None if balance is None else int(balance)
        for token, holders in line["erc20"].items()
        for holder, balance in holders.items()
    }


@pytest.mark.parametrize("chain", CHAINS)
def test_erc20_balances_at_every_block(chain: str) -> None:
    fold = Fold(chain)
    state: dict[tuple[bytes, bytes], int | None] = {}
    bad = untrusted_tokens(chain)
    noticed: dict[bytes, int] = {}
    checks = 0
    for one, line in zip(derived(chain), states(chain), strict=True):
        rows = one.rows
        fold.take(rows)
        state.update(erc20_of(line))
        touched = {delta.token for delta in rows.erc20_deltas}
        for (token, holder), balance in state.items():
            if balance is None or holder == ZERO_ADDRESS or token in noticed:
                continue
            checks += 1
            if fold.erc20.get((token, holder), 0) != balance:
                assert token in bad, (rows.block.number, token.hex(), holder.hex())
                # A comparison with balanceOf at this block would have been asked for.
                assert token in touched or token in rows.storage_changed_unlogged
                noticed[token] = rows.block.number
    # A balance that no log nor state line has is zero.
    assert all(
        not amount or pair in state or pair[0] in bad for pair, amount in fold.erc20.items() if known(chain, pair)
    )
    assert set(noticed) == set(bad), f"noticed only {noticed}"
    assert checks > 1000


@pytest.mark.parametrize("chain", CHAINS)
def test_a_token_whose_code_comes_or_goes_is_compared_with_state(chain: str) -> None:
    """Balances end with their contract, and so does a delegation (EIP-7702): no log shows it, nor storage."""
    changed = 0
    for one in derived(chain):
        recoded = {change.address for change in one.rows.code_changes}
        assert recoded <= set(one.rows.code_changed), one.rows.block.number
        assert len(set(one.rows.code_changed)) == len(one.rows.code_changed)
        changed += len(recoded)
    assert changed


def known(chain: str, pair: tuple[bytes, bytes]) -> bool:
    """Whether the recorder asked for it: tokens it knew, not what the raw log writer pretended to be."""
    return pair[0].hex() in {address.lower()[2:] for address in meta(chain)["erc20"]}


@pytest.mark.parametrize("chain", CHAINS)
def test_wrong_sums_are_seen_in_the_pairs_to_compare(chain: str) -> None:
    """At the end of a chain every untrusted token disagrees with the state for a holder that logs named."""
    fold = Fold(chain)
    state: dict[tuple[bytes, bytes], int | None] = {}
    for one, line in zip(derived(chain), states(chain), strict=True):
        fold.take(one.rows)
        state.update(erc20_of(line))
    differ = {token for (token, holder), amount in fold.erc20.items() if state.get((token, holder), amount) != amount}
    assert differ == set(untrusted_tokens(chain))


@pytest.mark.parametrize("chain", CHAINS)
def test_erc721_owners_at_every_block(chain: str) -> None:
    fold = Fold(chain)
    state: dict[tuple[bytes, int], bytes | None] = {}
    for one, line in zip(derived(chain), states(chain), strict=True):
        fold.take(one.rows)
        for token, owners in line["erc721"].items():
            for token_id, owner in owners.items():
                state[unhex(token), int(token_id)] = None if owner is None else unhex(owner)
        for key, owner in state.items():
            assert fold.owner.get(key, ZERO_ADDRESS) == (owner or ZERO_ADDRESS), (one.rows.block.number, key)
    asked = {unhex(token.lower()) for token in meta(chain)["erc721"]}
    assert {key for key, owner in fold.owner.items() if owner != ZERO_ADDRESS and key[0] in asked} <= set(state)
    assert len(state) > 20


@pytest.mark.parametrize("chain", CHAINS)
def test_erc1155_balances_at_every_block(chain: str) -> None:
    fold = Fold(chain)
    state: dict[tuple[bytes, bytes, int], int] = {}
    for one, line in zip(derived(chain), states(chain), strict=True):
        fold.take(one.rows)
        for token, holders in line["erc1155"].items():
            for holder, amounts in holders.items():
                for token_id, amount in amounts.items():
                    state[unhex(token), unhex(holder), int(token_id)] = int(amount)
        for key, amount in state.items():
            assert fold.erc1155.get(key, 0) == amount, (one.rows.block.number, key)
    asked = {unhex(token.lower()) for token in meta(chain)["erc1155"]}
    assert all(not amount or key in state for key, amount in fold.erc1155.items() if key[0] in asked)
    assert len(state) > 10


def test_kinds_are_asked_only_where_logs_leave_it_open() -> None:
    for chain in CHAINS:
        asked: dict[bytes, int | None] = {}
        for one in derived(chain):
            asked.update(contract_lookups(one.full).probes)
        labels = {tokens(chain)[address]["label"] for address in asked if address in tokens(chain)}
        assert {"plc", "slc", "cats"} <= labels <= {"plc", "slc", "cats", "scribe"}
        assert kind_of(chain, labelled(chain, "cats")) is ProbedStandard.ERC721
        assert asked[labelled(chain, "cats")] is not None
        assert asked[labelled(chain, "slc")] is None  # two topics are never an NFT's


TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
SINGLE = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62"
BATCH = "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb"


def address(word: str) -> bytes:
    return bytes.fromhex(word[-40:])


def naive(chain: str, receipts: Any) -> tuple[list[Any], list[Any], list[Any], Counter[str]]:
    """The rule of transfer logs again, straight from the JSON."""
    erc20: list[Any] = []
    erc721: list[Any] = []
    erc1155: list[Any] = []
    skipped: Counter[str] = Counter()
    for tx_index, receipt in enumerate(receipts):
        for log in receipt["logs"]:
            topics, raw = log["topics"], log["data"][2:]
            words = [raw[at : at + 64] for at in range(0, len(raw), 64)]
            token = unhex(log["address"])
            at_log = (tx_index, int(log["logIndex"], 16))
            shape = (topics[0], len(topics), len(raw) // 2) if topics else ("", 0, 0)
            if shape == (TRANSFER, 3, 32):
                erc20.append((*at_log, token, address(topics[1]), address(topics[2]), int(words[0], 16)))
            elif shape == (TRANSFER, 4, 0):
                erc721.append((*at_log, token, address(topics[1]), address(topics[2]), int(topics[3], 16)))
            elif shape in ((TRANSFER, 1, 96), (TRANSFER, 2, 64)):
                values = [*(topic[2:] for topic in topics[1:]), *words]
                row = (*at_log, token, address(values[0]), address(values[1]), int(values[2], 16))
                kind = kind_of(chain, token)
                if kind is ProbedStandard.ERC20:
                    erc20.append(row)
                elif kind is ProbedStandard.ERC721 and len(topics) == 1:
                    erc721.append(row)
                else:
                    skipped["Transfer"] += 1
            elif shape == (SINGLE, 4, 64):
                parties = (address(topics[2]), address(topics[3]))
                erc1155.append((*at_log, 0, token, *parties, int(words[0], 16), int(words[1], 16)))
            elif shape[:2] == (BATCH, 4) and (items := batch(words, len(raw))) is not None:
                parties = (address(topics[2]), address(topics[3]))
                erc1155 += [(*at_log, at, token, *parties, *item) for at, item in enumerate(items)]
            elif shape[0] in (TRANSFER, SINGLE, BATCH):
                skipped[{TRANSFER: "Transfer", SINGLE: "TransferSingle", BATCH: "TransferBatch"}[shape[0]]] += 1
    return erc20, erc721, erc1155, skipped


def batch(words: list[str], digits: int) -> list[tuple[int, int]] | None:
    if len(words) < 2 or digits % 64:
        return None
    lists = []
    for word in words[:2]:
        start = int(word, 16)
        if start % 32 or start // 32 >= len(words):
            return None
        start //= 32
        count = int(words[start], 16)
        if count > len(words) - start - 1:
            return None
        lists.append([int(one, 16) for one in words[start + 1 : start + 1 + count]])
    return list(zip(*lists, strict=True)) if len(lists[0]) == len(lists[1]) else None


@pytest.mark.parametrize("chain", CHAINS)
def test_transfer_rows_and_skipped_logs(chain: str) -> None:
    total: Counter[str] = Counter()
    for one in derived(chain):
        rows = one.rows
        erc20, erc721, erc1155, skipped = naive(chain, one.line["receipts"])
        assert [tuple(getattr(row, f) for f in row.__struct_fields__) for row in rows.erc20_transfers] == erc20
        plain = [tuple(getattr(row, name) for name in row.__struct_fields__) for row in rows.erc721_transfers]
        assert plain == [(*row, None) for row in erc721]  # no range
        assert [tuple(getattr(row, f) for f in row.__struct_fields__) for row in rows.erc1155_transfers] == erc1155
        assert rows.skipped_logs == skipped
        total += skipped
    if not chain.startswith("berlin"):
        assert set(total) == {"Transfer", "TransferSingle", "TransferBatch"}


@pytest.mark.parametrize("chain", CHAINS)
def test_messages_and_metadata(chain: str) -> None:
    """Only the first message of a transaction, and only from the messenger."""
    messenger = (meta(chain)["contracts"].get("messengerReal") or meta(chain)["contracts"]["messenger"]).lower()
    found = 0
    for one in derived(chain):
        expected: dict[int, tuple[bytes, bytes, bool]] = {}
        metadata = []
        for tx_index, receipt in enumerate(one.line["receipts"]):
            for log in receipt["logs"]:
                head = log["topics"][0][:10] if log["topics"] else ""
                if log["address"] == messenger and head in ("0x2a211ad4", "0x292ee90b"):
                    _, message_id, peer, *_ = log["topics"]
                    expected.setdefault(tx_index, (unhex(message_id), unhex(peer), head == "0x2a211ad4"))
                if head == "0x6bb7ff70":
                    metadata.append((unhex(log["address"]), int(log["topics"][1], 16), int(log["topics"][1], 16)))
                if head in ("0xf8e1a15a", "0x6bd5c950"):
                    raw = log["data"][2:]
                    metadata.append((unhex(log["address"]), int(raw[:64], 16), int(raw[-64:], 16)))
        got = {row.tx_index: (row.message_id, row.peer_blockchain_id, row.is_source) for row in one.rows.messages}
        assert got == expected
        assert [(row.token, row.first_id, row.last_id) for row in one.rows.metadata_changes] == metadata
        found += len(got)
    assert found > 0


def test_recorded_lines_are_what_was_decoded() -> None:
    for chain in CHAINS:
        for row, one in zip(lines(chain), derived(chain), strict=True):
            assert json.loads(bytes(row.block))["hash"] == "0x" + one.full.block.block_hash.hex()
