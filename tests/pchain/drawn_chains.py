"""Random P-Chains: every type of block and transaction through Granite, drawn from a seed, each valid after the last.

A naive chain follows what is drawn, so that outputs, stakers and times exist that a block can refer to.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator

from tests.pchain import drawn_transactions as txs
from tests.pchain.drawing import ADDRESSES, AVAX, NETWORK_ID, P_CHAIN, Drawing, Drawn
from tests.pchain.naive_chain import NaiveChain
from tests.pchain.naive_fees import cost_of, gas_used

from icefall.pchain.parameters import (
    DynamicFees,
    ForkTimes,
    PlatformParameters,
    RewardParameters,
    ValidatorFees,
)
from icefall.wire.avm.types import Owners, TransferOutput
from icefall.wire.ids import hash256
from icefall.wire.packer import VERSION_BYTES, pack_arrays, pack_string, u64
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import genesis_block, pack_block, pack_tx, pack_utxo, unpack_genesis

START = 1_600_000_000
_GENESIS_NODES = [hash256(b"genesis node %d" % number)[:20] for number in range(4)]
_BLOCK_TXS_MAX = 4
_EVICTION_S_MAX = 200
_FOREVER_S = 10**8  # one validator stays, so that there is always one
_JUMP_S = 4_000

_Draw = Callable[[Drawing], Drawn]
_APRICOT_PROPOSALS: tuple[_Draw, ...] = (txs.add_validator, txs.add_delegator, txs.add_subnet_validator)
_ATOMIC: tuple[_Draw, ...] = (txs.import_tx, txs.export_tx)
_APRICOT: tuple[_Draw, ...] = (txs.create_subnet, txs.create_chain)
_STAKING: tuple[_Draw, ...] = (
    txs.add_permissionless_validator,
    txs.add_permissionless_delegator,
    txs.add_permissionless_delegator,
    txs.add_subnet_validator,
)
_BANFF: tuple[_Draw, ...] = (
    *_APRICOT,
    *_ATOMIC,
    *_STAKING,
    txs.remove_subnet_validator,
    txs.transform_subnet,
    txs.add_validator,
    txs.add_delegator,
)
_DURANGO: tuple[_Draw, ...] = (
    *_APRICOT,
    *_ATOMIC,
    *_STAKING,
    txs.remove_subnet_validator,
    txs.transform_subnet,
    txs.plain_transfer,
    txs.transfer_ownership,
)
_ETNA: tuple[_Draw, ...] = (
    *[one for one in _DURANGO if one is not txs.transform_subnet],
    txs.convert,
    txs.register,
    txs.register,
    txs.set_weight,
    txs.increase_balance,
    txs.increase_balance,
    txs.disable,
)


def drawn_rules(source: random.Random) -> PlatformParameters:
    """Fork times from the start on or one after another, and fees that few validators reach."""
    steps = [source.choice((0, source.randint(5, 150))) for _ in range(5)]
    times = [START + sum(steps[: count + 1]) for count in range(5)]
    return PlatformParameters(
        NETWORK_ID,
        AVAX,
        ForkTimes(*times),
        RewardParameters(minting_period_s=source.choice((5_000, 365 * 24 * 3600))),
        fees=DynamicFees(max_per_second=source.choice((20_000, 100_000))),
        validator_fees=ValidatorFees(
            target=source.randint(1, 4), min_price=source.choice((1, 512)), excess_conversion_constant=300
        ),
    )


def drawn_genesis(source: random.Random) -> bytes:
    """The bytes of a genesis: outputs of which some are locked, validators with a key and without, one chain."""
    outputs = []
    for index in range(30):
        amount = source.randint(10**14, 10**15)
        plain = TransferOutput(amount, Owners(0, 1, (source.choice(ADDRESSES),)))
        lock = START + source.randint(1, 3000) if source.random() < 0.3 else 0
        output = t.StakeableOutput(lock, plain) if lock else plain
        outputs.append(pack_utxo(t.PlatformUtxo(bytes(32), index, AVAX, output))[2:] + bytes(4))
    validators = []
    for index, node in enumerate(_GENESIS_NODES):
        owner = Owners(0, 1, (ADDRESSES[index],))
        stake = (t.PlatformOutput(AVAX, TransferOutput(10**15, owner)),)
        base = NETWORK_ID, P_CHAIN, (), (), b""
        validator = t.Validator(node, START, START + (source.randint(50, 6000) if index else _FOREVER_S), 10**15)
        body: t.UnsignedTx = t.AddValidatorTx(*base, validator, stake, owner, 20_000)
        if index % 2:
            signer = t.BlsSigner(source.randbytes(48), source.randbytes(96))
            owners = stake, owner, owner, 20_000
            body = t.AddPermissionlessValidatorTx(*base, validator, bytes(32), signer, *owners)
        validators.append(pack_tx(body).raw[2:])
    chain = t.CreateChainTx(NETWORK_ID, P_CHAIN, (), (), b"", bytes(32), "X", hash256(b"avm"), (), b"", ())
    lists = (tuple(outputs), tuple(validators), (pack_tx(chain).raw[2:],))
    return VERSION_BYTES + b"".join(map(pack_arrays, lists)) + u64(START) + u64(36 * 10**16) + pack_string("drawn")


class DrawnChain:
    """A random chain. `naive` has accepted every block that `blocks` has returned; `drawn` counts what there was."""

    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)
        self.rules = drawn_rules(self._source)
        self.genesis = drawn_genesis(self._source)
        self.naive = NaiveChain(self.rules)
        self.naive.begin(unpack_genesis(self.genesis))
        self._last = genesis_block(self.genesis)
        self.drawn: Counter[str] = Counter()

    def blocks(self, count: int) -> Iterator[t.PlatformBlock]:
        """Draw at least so many blocks, of which the last is no proposal."""
        made = 0
        while made < count:
            for block in self._apricot() if self.naive.time < self.rules.forks.banff else self._banff():
                self._note(block)
                made += 1
                yield block

    def _note(self, block: t.PlatformBlock) -> None:
        """Accept a block, and count what it is an example of."""
        before = {name for name, one in self.naive.l1.items() if one.until}
        known = set(self.naive.l1)
        self.naive.accept(block)
        active = {name for name, one in self.naive.l1.items() if one.until}
        self.drawn[block.block_type.name] += 1
        self.drawn["L1 validators evicted"] += len(before - active) if not block.txs else 0
        self.drawn["L1 validators active again"] += len((active - before) & known)
        for tx in (*block.txs, *((block.proposal,) if block.proposal else ())):
            self.drawn[type(tx.unsigned).__name__] += 1
            self.drawn["several signatures"] += any(len(one.signatures) > 1 for one in tx.credentials)
            stake = getattr(tx.unsigned, "stake", ())
            self.drawn["locked stake"] += any(isinstance(one.output, t.StakeableOutput) for one in stake)

    def _block(
        self,
        kind: t.BlockType,
        *,
        time: int | None = None,
        inside: tuple[t.PlatformTx, ...] = (),
        proposal: t.PlatformTx | None = None,
    ) -> t.PlatformBlock:
        last = self._last
        self._last = pack_block(kind, last.block_id, last.height + 1, time=time, txs=inside, proposal=proposal)
        return self._last

    def _next_change(self) -> int:
        """The time at which the next staker begins or ends, which no block steps over."""
        starts = [one.start for one in self.naive.pending()[:1]]
        return min([*starts, *[one.end for one in self.naive.current()[:1]]])

    def _due(self) -> t.PlatformTx | None:
        """The transaction that rewards the first staker, if its time is over."""
        first = self.naive.current()[0]
        is_over = first.end <= self.naive.time and hasattr(first.body, "stake")
        return pack_tx(t.RewardValidatorTx(first.tx.txid)) if is_over else None

    def _drawn_txs(self, chain: NaiveChain, kinds: tuple[_Draw, ...], most: int) -> tuple[t.PlatformTx, ...]:
        """Some transactions, each valid after those before it, for which there is gas enough."""
        found: list[t.PlatformTx] = []
        draw = Drawing(self._source, chain)
        for _ in range(self._source.randint(1, most)):
            tx = self._source.choice(kinds)(draw)
            if tx is None:
                continue
            if chain.time >= self.rules.forks.etna:
                gas = gas_used(tx, self.rules.fees)
                if gas > chain.capacity:
                    continue
                chain.use_gas(gas)
            chain.execute(tx)
            found.append(tx)
        return tuple(found)

    # -- before Banff ---------------------------------------------------------------------------------------------

    def _apricot(self) -> Iterator[t.PlatformBlock]:
        choice = self._source.random()
        due = self._due()
        if due is not None and choice < 0.7:
            yield from self._decided(t.BlockType.APRICOT_PROPOSAL, proposal=due)
        elif choice < 0.35:
            many = self.naive.time >= self.rules.forks.apricot_phase_5
            drawn = self._drawn_txs(self.naive.copied(), (*_APRICOT, *_ATOMIC) if many else _APRICOT, _BLOCK_TXS_MAX)
            if drawn:
                yield self._block(t.BlockType.APRICOT_STANDARD, inside=drawn)
        elif choice < 0.5 and self.naive.time < self.rules.forks.apricot_phase_5:
            drawn = self._drawn_txs(self.naive.copied(), _ATOMIC, 1)
            if drawn:
                yield self._block(t.BlockType.APRICOT_ATOMIC, inside=drawn)
        elif choice < 0.75:
            drawn = self._drawn_txs(self.naive.copied(), _APRICOT_PROPOSALS, 1)
            if drawn:
                yield from self._decided(t.BlockType.APRICOT_PROPOSAL, proposal=drawn[0])
        elif due is None:
            time = min(self._next_change(), self.naive.time + self._source.choice((1, 10, 60, _JUMP_S)))
            yield from self._decided(t.BlockType.APRICOT_PROPOSAL, proposal=pack_tx(t.AdvanceTimeTx(time)))

    def _decided(
        self,
        kind: t.BlockType,
        proposal: t.PlatformTx,
        time: int | None = None,
        inside: tuple[t.PlatformTx, ...] = (),
    ) -> Iterator[t.PlatformBlock]:
        """A proposal and the block that commits or aborts it."""
        yield self._block(kind, time=time, inside=inside, proposal=proposal)
        options = (t.BlockType.APRICOT_COMMIT, t.BlockType.APRICOT_ABORT)
        if time is not None:
            options = (t.BlockType.BANFF_COMMIT, t.BlockType.BANFF_ABORT)
        yield self._block(options[self._source.random() < 0.3], time=time)

    # -- from Banff on --------------------------------------------------------------------------------------------

    def _banff(self) -> Iterator[t.PlatformBlock]:
        source = self._source
        time = min(self._next_change(), self.naive.time + source.choice((0, 1, 1, 3, 20, 100, _JUMP_S)))
        time = max(self.naive.time, min(time, self._next_eviction()))
        moved = self.naive.copied()
        moved.advance(time)
        forks = self.rules.forks
        kinds = _ETNA if time >= forks.etna else _DURANGO if time >= forks.durango else _BANFF
        first = moved.current()[0]
        if first.end <= time and source.random() < 0.8:
            inside = self._drawn_txs(moved, kinds, _BLOCK_TXS_MAX) if source.random() < 0.3 else ()
            reward = pack_tx(t.RewardValidatorTx(first.tx.txid))
            yield from self._decided(t.BlockType.BANFF_PROPOSAL, reward, time, inside)
            return
        inside = self._drawn_txs(moved, kinds, _BLOCK_TXS_MAX)
        if inside or time > self.naive.time:
            yield self._block(t.BlockType.BANFF_STANDARD, time=time, inside=inside)

    def _next_eviction(self) -> int:
        """The time at which the first balance of an active L1 validator is used up, as far as one must look."""
        active = self.naive.active()
        if not active:
            return self.naive.time + 10**6
        left, excess = min(one.until for one in active) - self.naive.accrued, self.naive.l1_excess
        fees = self.rules.validator_fees
        for seconds in range(1, _EVICTION_S_MAX):
            left -= cost_of(fees, len(active), excess, 1)
            excess = max(0, excess + len(active) - fees.target)
            if left <= 0:
                return self.naive.time + seconds
        return self.naive.time + _EVICTION_S_MAX
