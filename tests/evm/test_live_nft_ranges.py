"""A range of NFTs (ERC-2309) that a contract on a real client mints: owners agree with the contract's own."""

from pathlib import Path

from tests.awaited import awaited
from tests.evm.live_client import Anvil, anvil
from tests.evm.test_live_cheats import followed, hexed
from tests.evm.test_live_client import in_step
from tests.store.opened import open_reader

from icefall.evm.auditing.audit import finish_audits
from icefall.evm.reading.balances import BalanceReader
from icefall.wire.evm.events import CONSECUTIVE_TRANSFER, TRANSFER

LAST = 5_000
OTHER = bytes(19) + b"\xaa"


def contract() -> str:
    """A contract whose constructor gives the IDs from 1 to LAST to its sender. It answers ownerOf(id), and moves an ID
    from its caller when it is called with two words: recipient and ID."""
    # with 36 bytes: owner = storage[id] or storage[0]; else: storage[id] = recipient, log Transfer
    moves = f"600035602035556020356000353 37f{TRANSFER.hex()}60006000a400".replace(" ", "")
    at = 7 + len(moves) // 2
    answers = f"5b6004355480 60{at + 13:02x} 57506000545b60005260206000f3".replace(" ", "")
    runtime = f"36602414 60{at:02x} 57".replace(" ", "") + moves + answers
    logs = f"61{LAST:04x}600052 33 6000 6001 7f{CONSECUTIVE_TRANSFER.hex()} 6020 6000 a4".replace(" ", "")
    start = "33600055" + logs
    size, offset = len(runtime) // 2, len(start) // 2 + 12
    return f"0x{start}60{size:02x}60{offset:02x}60003960{size:02x}6000f3{runtime}"


def send(client: Anvil, data: str, to: str | None = None) -> dict[str, str]:
    sent = {"from": client.ask("eth_accounts")[0], "data": data, "gas": hex(1_000_000), **({"to": to} if to else {})}
    paid = client.ask("eth_sendTransaction", sent)
    client.ask("evm_mine")
    receipt: dict[str, str] = client.ask("eth_getTransactionReceipt", paid)
    assert receipt["status"] == "0x1"
    return receipt


def owner_of(client: Anvil, token: str, token_id: int) -> bytes:
    answer = client.ask("eth_call", {"to": token, "data": f"0x6352211e{token_id:064x}"}, "latest")
    return bytes.fromhex(answer[26:])


@awaited
async def test_the_owners_of_a_minted_range_are_those_of_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "chain.sqlite"
    with anvil() as client:
        async with followed(client, path) as (it, running):
            minter = bytes.fromhex(client.ask("eth_accounts")[0][2:])
            token = send(client, contract())["contractAddress"]
            address = bytes.fromhex(token[2:])
            for token_id in (7, 1, LAST):
                send(client, f"0x{hexed(OTHER)[2:]:0>64}{token_id:064x}", token)
            await in_step(client, it, running)
            await finish_audits(it.follower.auditor, it.store)
            assert it.store.read("select count(*) from token where untrusted_since is not null") == [(0,)]
            reader = open_reader(path)
            try:
                balances = BalanceReader(reader, None)
                ids = [1, 2, 6, 7, 8, LAST - 1, LAST]
                expected = [owner_of(client, token, one) for one in ids]
                assert expected == [OTHER, minter, minter, OTHER, minter, minter, OTHER]
                assert await balances.owners([(address, one) for one in ids]) == expected
                assert [one.token_id for one in (await balances.nfts(OTHER, None, 10))[0]] == [1, 7, LAST]
                page, _ = await balances.nfts(minter, None, 6)
                assert [one.token_id for one in page] == [2, 3, 4, 5, 6, 8]
            finally:
                reader.close()
            client.ask("anvil_reorg", 2, [])
            await in_step(client, it, running)
            await finish_audits(it.follower.auditor, it.store)
            reader = open_reader(path)
            try:
                owners = await BalanceReader(reader, None).owners([(address, one) for one in ids])
                assert owners == [owner_of(client, token, one) for one in ids]
            finally:
                reader.close()
