"""Export jobs of the primary network: transactions of P, X and C as their lists have them, as rows of files.

A job of one type has a row for each transaction and one for each output that it consumes or makes; `isOwn` says whether
one of the addresses of the job owns it. A simple one has a row for each transaction and asset: what the addresses
received less what they sent. One of staking has what was staked, and what was paid for it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec import UNSET

from icefall.api.http.structs import InvalidValue
from icefall.api.networks.handlers.any_chain import AnyTransaction
from icefall.api.networks.network import C_CHAIN, P_CHAIN, X_CHAIN, Networks, PrimaryNetwork
from icefall.api.networks.params import ACCOUNT, read_addresses
from icefall.api.networks.render.c_chain import c_transactions
from icefall.api.networks.render.transactions import rendered_txs
from icefall.api.networks.render.x_chain import x_transactions
from icefall.api.networks.schema.assets import NetworkAsset, PlatformUtxoResult
from icefall.api.networks.schema.c_chain import CTransaction
from icefall.api.networks.schema.transactions import PlatformTransaction
from icefall.api.networks.schema.x_chain import UtxoResult
from icefall.errors import BadRequest
from icefall.exports.formats import guarded
from icefall.exports.model import DAY_S, PRIMARY, SIMPLE, STAKING, ExportRequest, ExportState, FixedEnd
from icefall.exports.rows import decimal_text
from icefall.exports.sources import first_state
from icefall.wire.ids import id_text

_PAGE = 100
_TIME = ("blockTimestamp", "datetimeUtc", "chain", "blockNumber", "txHash")
_AMOUNT = ("assetId", "assetName", "assetSymbol")
COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    PRIMARY: {
        "transactions": (
            *_TIME, "txType", "sourceChain", "destinationChain", "nodeId", "subnetId", "amountBurned",
            "amountBurnedDecimal", "amountStaked", "amountStakedDecimal", "memo",
        ),
        "utxos": (
            *_TIME, "side", "isOwn", "utxoId", "addresses", *_AMOUNT, "amount", "amountDecimal", "createdOnChainId",
            "consumedOnChainId", "rewardType",
        ),
    },
    SIMPLE: {
        "simple": (
            *_TIME, "txType", *_AMOUNT, "sent", "received", "net", "netDecimal", "fee", "feeDecimal",
        ),
    },
    STAKING: {
        "staking": (
            *_TIME, "txType", "nodeId", "subnetId", "amountStaked", "amountStakedDecimal", "startTimestamp",
            "endTimestamp", "delegationFeePercent", "estimatedReward", "rewardAddresses", "rewardTxHash",
        ),
        "rewards": (
            *_TIME, "stakingTxHash", "rewardType", "isOwn", "addresses", *_AMOUNT, "amount", "amountDecimal", "utxoId",
        ),
    },
}  # fmt: skip


class _MovedAmount(NamedTuple):
    """An output, or an amount of an account of C, on one side of a transaction."""

    name: str  # consumed or emitted
    addresses: tuple[str, ...]
    asset: NetworkAsset
    utxo: PlatformUtxoResult | UtxoResult | None


class _ChainRange(NamedTuple):
    """The transactions of one chain from a number to another."""

    chain: str
    low: int
    below: int


class PrimaryExports:
    """The source of jobs of the primary network, and what their orders are read with."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks

    # -- orders --------------------------------------------------------------------------------------------------

    def chain(self, text: str) -> str:
        return self._networks.which(self._networks.name, text)

    def address(self, text: str) -> str:
        try:
            ((hrp, address),) = read_addresses(text, 1)
        except InvalidValue:
            hrp, address = ACCOUNT, b""
        network = self._networks.named(self._networks.name)
        if hrp == ACCOUNT:
            raise BadRequest(f"options.addresses must be bech32 addresses of the network, got {text[:80]!a}")
        network.parsed([(hrp, address)])
        return network.address(address)

    # -- jobs ----------------------------------------------------------------------------------------------------

    def columns(self, kind: str) -> Mapping[str, Sequence[str]]:
        return COLUMNS[kind]

    async def begin(self, request: ExportRequest, tries: int) -> ExportState:
        """Fix the number of transactions. Blocks of these chains are final, so nothing is ever tried again."""
        network = await self._network(request)
        ends, times = [], []
        for chain in request.chains:
            count = await _count(network, chain)
            if request.last_day is not None:
                count = await _first_seq(network, chain, (request.last_day + 1) * DAY_S, count)
            if not count:
                continue
            (first,) = await _read(network, chain, (), 0, 1)
            (last,) = await _read(network, chain, (), count - 1, count)
            ends.append(FixedEnd(chain, last.height, last.block_id.hex(), count))
            times.append((first.time, last.time))
        return first_state(request, ends, times, tries)

    async def rows(
        self, kind: str, request: ExportRequest, state: ExportState, days: int
    ) -> AsyncIterator[tuple[str, Sequence[object]]]:
        network = await self._network(request)
        own = frozenset([*request.addresses, *request.accounts])
        make = {PRIMARY: _detailed, SIMPLE: _simple, STAKING: _staking}[kind]
        async for chain, tx in self._transactions(network, request, state, days):
            for row in make(_ExportedTx(network, chain, tx, own)):
                yield row

    async def _network(self, request: ExportRequest) -> PrimaryNetwork:
        return await self._networks.listed(self._networks.name, *request.chains)

    async def _transactions(
        self, network: PrimaryNetwork, request: ExportRequest, state: ExportState, days: int
    ) -> AsyncIterator[tuple[str, AnyTransaction]]:
        """The transactions of some days in the order of time, those of the chains merged."""
        lists = []
        for end in state.ends:
            low = await _first_seq(network, end.chain, state.next_day * DAY_S, end.txs)
            below = await _first_seq(network, end.chain, (state.next_day + days) * DAY_S, end.txs)
            lists.append(_listed(network, _ChainRange(end.chain, low, below), request))
        heads = [await anext(one, None) for one in lists]
        while waiting := [head[0] for head in heads if head is not None]:
            at = next(number for number, head in enumerate(heads) if head is not None and head[0] == min(waiting))
            head = heads[at]
            assert head is not None
            yield state.ends[at].chain, head[1]
            heads[at] = await anext(lists[at], None)


async def _count(network: PrimaryNetwork, chain: str) -> int:
    if chain == P_CHAIN:
        return await network.lists.tx_count()
    return (await network.x_lists.counts())[1] if chain == X_CHAIN else await network.c_lists.tx_count()


async def _first_seq(network: PrimaryNetwork, chain: str, time: int, count: int) -> int:
    lists: Any = {P_CHAIN: network.lists, X_CHAIN: network.x_lists, C_CHAIN: network.c_lists}[chain]
    found: int = await lists.first_seq(time, count)
    return found


async def _read(network: PrimaryNetwork, chain: str, addresses: Sequence[bytes], low: int, below: int) -> list[Any]:
    """A page of transactions in their order: of the addresses, or all."""
    lists: Any = {P_CHAIN: network.lists, X_CHAIN: network.x_lists, C_CHAIN: network.c_lists}[chain]
    if addresses:
        found: list[Any] = await lists.txs_of(addresses, low, below, _PAGE, upwards=True)
    else:
        found = await lists.txs(low, below, _PAGE, upwards=True)
    return found


_RENDER: dict[str, Callable[[PrimaryNetwork, list[Any]], Awaitable[Sequence[AnyTransaction]]]] = {
    P_CHAIN: rendered_txs,
    X_CHAIN: x_transactions,
    C_CHAIN: c_transactions,
}


async def _listed(
    network: PrimaryNetwork, of: _ChainRange, request: ExportRequest
) -> AsyncIterator[tuple[int, AnyTransaction]]:
    """The transactions of the addresses on a chain, each with its time."""
    addresses = [address for one in request.addresses for _, address in read_addresses(one, 1)]
    if of.chain == C_CHAIN:
        addresses += [bytes.fromhex(one[2:]) for one in request.accounts]
    low = of.low
    while addresses and low < of.below:
        rows = await _read(network, of.chain, addresses, low, of.below)
        if not rows:
            return
        for row, tx in zip(rows, await _RENDER[of.chain](network, rows), strict=True):
            yield row.time, tx
        low = rows[-1].seq + 1


# -- rows --------------------------------------------------------------------------------------------------------


class _ExportedTx(NamedTuple):
    """A transaction as the API writes it, with the addresses that it is read for."""

    network: PrimaryNetwork
    chain: str
    tx: AnyTransaction
    own: frozenset[str]

    @property
    def begin(self) -> list[object]:
        tx = self.tx
        if isinstance(tx, PlatformTransaction):
            height: object = tx.block_number
            time = tx.block_timestamp
        else:
            height, time = _text(tx.block_height), tx.timestamp
        return [time, datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), self.chain, height, tx.tx_hash]

    def sides(self) -> list[_MovedAmount]:
        """What is consumed and made, with the accounts of C."""
        tx = self.tx
        found = []
        for name, utxos in (("consumed", tx.consumed_utxos), ("emitted", tx.emitted_utxos)):
            found += [_MovedAmount(name, tuple(one.addresses), one.asset, one) for one in utxos or ()]
        if isinstance(tx, CTransaction):
            found += [_MovedAmount("consumed", (one.from_address,), one.asset, None) for one in tx.evm_inputs or ()]
            found += [_MovedAmount("emitted", (one.to_address,), one.asset, None) for one in tx.evm_outputs or ()]
        return found

    def is_own(self, addresses: Sequence[str]) -> bool:
        return not self.own.isdisjoint(addresses)

    def burned(self) -> tuple[int, int]:
        """What is consumed and neither made nor staked, of AVAX, and its decimals."""
        tx = self.tx
        avax = id_text(self.network.platform.parameters.avax_asset_id)
        if isinstance(tx, PlatformTransaction):
            return sum(int(one.amount) for one in tx.amount_burned if one.asset_id == avax), _NANO
        sides = [one for one in self.sides() if one.asset.asset_id == avax]
        return sum(_signed(one) for one in sides) * -1, _NANO


_NANO = 9


def _signed(side: _MovedAmount) -> int:
    return int(side.asset.amount) * (1 if side.name == "emitted" else -1)


def _text(value: object) -> object:
    return "" if value is UNSET or value is None else value


def _asset(asset: NetworkAsset) -> list[object]:
    return [asset.asset_id, guarded(asset.name), guarded(asset.symbol)]


def _amount(amount: int, asset: NetworkAsset) -> list[object]:
    """An amount in the smallest unit, and as a decimal number if the decimals of the asset are known."""
    if amount < 0:
        return [amount, f"-{text}" if (text := decimal_text(-amount, _decimals(asset))) else ""]
    return [amount, decimal_text(amount, _decimals(asset))]


def _decimals(asset: NetworkAsset) -> int | None:
    return asset.denomination if asset.symbol else None


def _detailed(one: _ExportedTx) -> list[tuple[str, Sequence[object]]]:
    tx, begin = one.tx, one.begin
    burned, decimals = one.burned()
    staked = sum(int(amount.amount) for amount in tx.amount_staked) if isinstance(tx, PlatformTransaction) else 0
    chains = [_text(getattr(tx, name, UNSET)) for name in ("source_chain", "destination_chain", "node_id", "subnet_id")]
    costs = [burned, decimal_text(burned, decimals), staked, decimal_text(staked, decimals)]
    rows: list[tuple[str, Sequence[object]]] = [
        ("transactions", [*begin, tx.tx_type, *chains, *costs, _text(tx.memo)]),
    ]
    for side in one.sides():
        utxo = side.utxo
        where = [_text(getattr(utxo, name, UNSET)) for name in ("created_on_chain_id", "consumed_on_chain_id")]
        rows.append(
            (
                "utxos",
                [
                    *begin, side.name, _truth(one.is_own(side.addresses)), "" if utxo is None else utxo.utxo_id,
                    " ".join(side.addresses), *_asset(side.asset), *_amount(int(side.asset.amount), side.asset),
                    *where, _text(getattr(utxo, "reward_type", UNSET)),
                ],
            )
        )  # fmt: skip
    return rows


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _simple(one: _ExportedTx) -> list[tuple[str, Sequence[object]]]:
    """What the addresses received less what they sent, by asset. The fee is theirs if they sent anything."""
    own = [side for side in one.sides() if one.is_own(side.addresses)]
    sent_any = any(side.name == "consumed" for side in own)
    burned, decimals = one.burned() if sent_any else (0, _NANO)
    avax = id_text(one.network.platform.parameters.avax_asset_id)
    rows: list[tuple[str, Sequence[object]]] = []
    for asset_id, asset in {side.asset.asset_id: side.asset for side in own}.items():
        of_asset = [side for side in own if side.asset.asset_id == asset_id]
        sent = sum(int(side.asset.amount) for side in of_asset if side.name == "consumed")
        received = sum(int(side.asset.amount) for side in of_asset if side.name == "emitted")
        fee = burned if asset_id == avax else 0
        amounts = [sent, received, *_amount(received - sent, asset), fee, decimal_text(fee, decimals)]
        rows.append(("simple", [*one.begin, one.tx.tx_type, *_asset(asset), *amounts]))
    return rows


def _staking(one: _ExportedTx) -> list[tuple[str, Sequence[object]]]:
    """The stake of a transaction that stakes, and what one that rewards has paid."""
    tx, begin = one.tx, one.begin
    if not isinstance(tx, PlatformTransaction):
        return []
    if tx.tx_type == "RewardValidatorTx":
        return [
            (
                "rewards",
                [
                    *begin, _text(tx.staking_tx_hash), _text(paid.reward_type), _truth(one.is_own(paid.addresses)),
                    " ".join(paid.addresses), *_asset(paid.asset), *_amount(int(paid.amount), paid.asset), paid.utxo_id,
                ],
            )
            for paid in tx.emitted_utxos
            if paid.reward_type is not UNSET
        ]  # fmt: skip
    if not tx.amount_staked:
        return []
    (staked,) = tx.amount_staked[:1]
    owners = " ".join(tx.reward_addresses) if isinstance(tx.reward_addresses, list) else ""
    times = [_text(tx.start_timestamp), _text(tx.end_timestamp), _text(tx.delegation_fee_percent)]
    return [
        (
            "staking",
            [
                *begin, tx.tx_type, _text(tx.node_id), _text(tx.subnet_id), *_amount(int(staked.amount), staked),
                *times, _text(tx.estimated_reward), owners, _text(tx.reward_tx_hash),
            ],
        )
    ]  # fmt: skip
