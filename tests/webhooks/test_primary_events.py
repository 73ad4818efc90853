"""Webhooks of the primary network: which events blocks of P, X and C are, that each is written once with its block
whatever the batches are, and what a receiver gets."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.pchain.recorded import Playback
from tests.webhooks.primary_scene import PrimaryScene, events
from tests.webhooks.scene import Sends

from icefall.evm.encoding import block_of
from icefall.webhooks import primary_matching as m
from icefall.webhooks.primary_matching import PrimaryDetail, PrimaryFilter, decode_primary_detail
from icefall.wire.ids import PRIMARY_NETWORK, id_text
from icefall.wire.pvm import types as t

LOCAL, FORKS = "p-local-1", "p-forks-1"
THRESHOLD, L1_BALANCE = 3 * 10**14, 10**9  # nAVAX
VALIDATOR_EVENTS = (
    m.VALIDATOR_STAKE, m.DELEGATOR_STAKE, m.REWARD, m.L1_INCREASED, m.L1_DISABLED, m.L1_REMOVED, m.L1_THRESHOLD,
)  # fmt: skip
TOUCHED = {
    "P": "select o.address, t.txid, t.height from p_utxo_owner o join p_utxo u on u.position = o.position "
    "join p_tx t on t.seq in (u.created_seq, u.spent_seq, u.returned_seq) where t.height > 0 "
    "union select o.address, t.txid, t.height from chain_output c join chain_output_owner o "
    "on o.utxo_id = c.utxo_id and o.chain_id = c.source join p_tx t on t.txid = substr(c.bytes, 3, 32) "
    "where c.source = zeroblob(32)",
    "X": "select distinct a.address, t.txid, t.height from address_tx a join ledger_tx t on t.chain = a.chain "
    "and t.seq = a.seq where t.height > 0",
    "C": "select a.address, t.txid, t.height from c_address_tx a join c_tx t on t.seq = a.seq",
}


Rows = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def rows_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Rows]]:
    """What the stores hold of each recording, as they are without any webhook."""

    @cache
    def played(recording: str) -> Playback:
        playback = Playback(tmp_path_factory.mktemp("plain"), recording)

        async def play() -> None:
            await playback.start()
            await playback.play()

        asyncio.run(play())
        return playback

    yield lambda recording: played(recording).store.read
    for recording in (LOCAL, FORKS):
        played(recording).store.close()


@pytest.fixture
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PrimaryScene]:
    made = PrimaryScene(tmp_path, getattr(request, "param", FORKS))
    yield made
    made.close()


def details(playback: Playback) -> list[tuple[bytes, PrimaryDetail]]:
    return [(bytes(tx_hash), decode_primary_detail(raw)) for _, _, _, _, tx_hash, raw in events(playback)]


@pytest.mark.parametrize("chain", ["P", "X", "C"])
@pytest.mark.parametrize("scene", [LOCAL], indirect=True)
def test_every_transaction_of_an_address_is_one_event(
    chain: str, scene: PrimaryScene, rows_of: Callable[[str], Rows]
) -> None:
    touched: dict[bytes, set[bytes]] = {}
    for address, txid, _ in rows_of(LOCAL)(TOUCHED[chain]):
        touched.setdefault(bytes(address), set()).add(bytes(txid))
    keys = sorted(touched, key=lambda one: (-len(touched[one]), one))[:3]

    async def run() -> list[tuple[bytes, PrimaryDetail]]:
        await scene.webhook(chain, keys, PrimaryFilter(chain, m.ADDRESSES, (m.BALANCE_CHANGE,)))
        playback = await scene.play()
        found = details(playback)
        playback.store.close()
        return found

    found = asyncio.run(run())
    assert Counter(tx_hash for tx_hash, _ in found) == Counter(set().union(*(touched[one] for one in keys)))
    for tx_hash, detail in found:
        assert set(detail.addresses) == {one for one in keys if tx_hash in touched[one]}


async def watch_everything(scene: PrimaryScene, rows: Rows) -> None:
    """Make webhooks about everything that happens on P."""
    owners = [bytes(one) for (one,) in rows("select distinct address from p_address_tx order by 1")]
    kinds = (m.BALANCE_CHANGE, m.REWARD, m.BALANCE_THRESHOLD)
    await scene.webhook("P", owners, PrimaryFilter("P", m.ADDRESSES, kinds, "unlockedUnstaked", THRESHOLD))
    subnets = {PRIMARY_NETWORK, *(bytes(one) for (one,) in rows("select subnet_id from p_subnet"))}
    for number, subnet in enumerate(sorted(subnets), 2):
        wanted = PrimaryFilter("P", m.SUBNET, VALIDATOR_EVENTS, l1_threshold=L1_BALANCE)
        await scene.webhook("P", [subnet], wanted, number=number)


@pytest.mark.parametrize("size", [1, 3])
def test_events_do_not_depend_on_batches_and_come_again_when_blocks_are_executed_again(
    size: int, scene: PrimaryScene, rows_of: Callable[[str], Rows], tmp_path: Path
) -> None:
    rows = rows_of(FORKS)

    async def run() -> tuple[list[Any], list[Any]]:
        await watch_everything(scene, rows)
        first = await scene.play()
        (tmp_path / "again").mkdir()
        again = await scene.play(tmp_path / "again", size)
        found = events(first), events(again)
        first.store.close()
        again.store.close()
        return found

    first, again = asyncio.run(run())
    assert sorted(again) == sorted(first)
    assert len({row[0] for row in first}) == len(first) > 20


@pytest.mark.parametrize("scene", [LOCAL, FORKS], indirect=True)
def test_validators_have_the_events_that_their_transactions_say(
    scene: PrimaryScene, rows_of: Callable[[str], Rows]
) -> None:
    rows = rows_of(scene.recording)

    async def run() -> list[tuple[bytes, PrimaryDetail]]:
        await watch_everything(scene, rows)
        playback = await scene.play()
        found = details(playback)
        playback.store.close()
        return found

    found = asyncio.run(run())
    by_kind: dict[str, set[bytes]] = {}
    for tx_hash, detail in found:
        by_kind.setdefault(detail.sub_event, set()).add(tx_hash)
    staking = "select t.txid from p_tx t where t.is_committed = 1 and t.height > 0 and t.type in ({})"

    def of_types(*kinds: type[t.PlatformBaseTx]) -> set[bytes]:
        return {bytes(one) for (one,) in rows(staking.format(",".join(str(kind.type_id) for kind in kinds)))}

    assert by_kind[m.VALIDATOR_STAKE] == of_types(
        t.AddValidatorTx, t.AddSubnetValidatorTx, t.AddPermissionlessValidatorTx
    )
    assert by_kind[m.DELEGATOR_STAKE] == of_types(t.AddDelegatorTx, t.AddPermissionlessDelegatorTx)
    paid = "select t.txid from p_utxo u join p_tx t on t.seq = u.created_seq where u.kind >= 2"
    assert by_kind[m.REWARD] == {bytes(one) for (one,) in rows(paid)}
    increased = of_types(t.IncreaseL1ValidatorBalanceTx, t.RegisterL1ValidatorTx, t.ConvertSubnetToL1Tx)
    assert by_kind[m.L1_INCREASED] <= increased
    assert by_kind[m.L1_INCREASED] >= of_types(t.IncreaseL1ValidatorBalanceTx)
    assert by_kind.get(m.L1_DISABLED, set()) - {b""} <= of_types(t.DisableL1ValidatorTx)
    removed = rows("select count(*) from p_l1_validator where is_removed = 1")[0][0]
    assert sum(len(one.validators) for _, one in found if one.sub_event == m.L1_REMOVED) == removed


def test_a_threshold_is_crossed_where_the_balance_of_the_stored_outputs_crosses_it(
    scene: PrimaryScene, rows_of: Callable[[str], Rows]
) -> None:
    rows = rows_of(FORKS)

    async def run() -> list[tuple[bytes, PrimaryDetail]]:
        await watch_everything(scene, rows)
        playback = await scene.play()
        found = details(playback)
        playback.store.close()
        return found

    found = {
        (tx_hash, step.key, step.before, step.after)
        for tx_hash, one in asyncio.run(run())
        if one.sub_event == m.BALANCE_THRESHOLD
        for step in one.balances
    }
    outputs = rows(
        "select addresses, asset_id, amount, locktime, stakeable_locktime, created_seq, spent_seq, stake_end, "
        "returned_seq from p_utxo"
    )
    expected = set()
    for address, seq, txid, time in rows(
        f"select a.address, t.seq, t.txid, b.time from ({TOUCHED['P']}) a join p_tx t on t.txid = a.txid "
        "join p_block b on b.height = t.height"
    ):

        def balance(at: int, address: bytes = bytes(address), time: int = time) -> int:
            return sum(
                amount
                for owners, asset, amount, locktime, stakeable, made, spent, stake_end, returned in outputs
                if address in owners and asset == scene.avax and locktime <= time and stakeable <= time
                if made <= at and not (spent is not None and spent <= at)
                if stake_end is None or (returned is not None and returned <= at)
            )

        before, after = balance(seq - 1), balance(seq)
        if (before < THRESHOLD) != (after < THRESHOLD):
            expected.add((bytes(txid), bytes(address), before, after))
    assert found == expected
    assert len(found) > 2


@pytest.mark.parametrize("scene", [LOCAL], indirect=True)
def test_a_receiver_gets_what_happened_with_its_transaction(
    scene: PrimaryScene, rows_of: Callable[[str], Rows]
) -> None:
    sends, rows = Sends(), rows_of(LOCAL)

    async def run() -> list[tuple[Any, ...]]:
        await watch_everything(scene, rows)
        for number, chain in ((20, "X"), (21, "C")):
            keys = [bytes(one) for one, *_ in rows(TOUCHED[chain])]
            await scene.webhook(chain, keys, PrimaryFilter(chain, m.ADDRESSES, (m.BALANCE_CHANGE,)), number=number)
        playback = await scene.play()
        await scene.delivery(playback, sends).drain()
        await scene.delivery(playback, sends).drain()
        found = events(playback)
        playback.store.close()
        return found

    stored = {row[0]: row for row in asyncio.run(run())}
    bodies = sends.bodies()
    assert Counter(one["messageId"] for one in bodies) == Counter(list(stored))
    for one in bodies:
        _, webhook, tx_at, _, tx_hash, raw = stored[one["messageId"]]
        event, detail = one["event"], decode_primary_detail(raw)
        assert one["webhookId"] == webhook
        assert event["subEvent"] == detail.sub_event
        assert event["network"] == "fuji"
        assert event["blockNumber"] == str(block_of(tx_at))
        assert event["chainId"] == id_text(scene.chain_ids[detail.chain])
        assert len(event.get("addresses", ())) == len(detail.addresses)
        assert len(event.get("validators", ())) == len(detail.validators)
        if tx_hash:
            assert event["transaction"]["txHash"] == event["txHash"] == id_text(tx_hash)
        if detail.sub_event == m.L1_THRESHOLD:
            assert [step["validationId"] for step in event["balances"]] == [id_text(s.key) for s in detail.balances]
    assert {one["event"]["chainId"] for one in bodies} == {id_text(one) for one in scene.chain_ids.values()}
