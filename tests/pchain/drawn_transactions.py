"""Random transactions of the P-Chain that are valid after what a naive chain has accepted.

Each function draws one type; None: the chain has nothing that the type needs.
"""

from collections.abc import Callable
from typing import Any

from tests.pchain.drawing import P_CHAIN, Base, Drawing, Drawn, Outputs
from tests.pchain.naive_chain import PRIMARY

from icefall.wire.avm.types import TransferInput, TransferOutput
from icefall.wire.ids import hash256
from icefall.wire.pvm import types as t
from icefall.wire.pvm.warp import L1ValidatorWeight, pack_registration, pack_weight

_DAY_S = 24 * 3600


def _amount(draw: Drawing) -> int:
    return draw.source.choice((25, 2_000, 7_777, 50_000)) * 10**9 + draw.source.randint(0, 10**9)


def _asset(draw: Drawing, subnet: bytes) -> bytes:
    if subnet == PRIMARY:
        return draw.around.avax
    transformation = draw.chain.subnets[subnet].transformation
    assert transformation is not None
    body: Any = transformation.unsigned
    return bytes(body.asset_id)


def _validator(draw: Drawing, subnet: bytes, make: Callable[[Base, t.Validator, Outputs], t.UnsignedTx]) -> Drawn:
    if subnet == PRIMARY:
        taken = {one.node for one in draw.chain.stakers if one.subnet == PRIMARY}
        free = [node for node in draw.around.nodes if node not in taken]
        node, period = (draw.source.choice(free), draw.period(None)) if free else (b"", None)
    else:
        host = draw.free_host(subnet)
        node, period = (host.node, draw.period(host)) if host is not None else (b"", None)
    amount = _amount(draw)
    staked = draw.stake_of(amount, _asset(draw, subnet)) if period else None
    if staked is None or period is None:
        return None
    return draw.signed(make(staked[0], t.Validator(node, *period, amount), staked[1]))


def _delegator(draw: Drawing, subnet: bytes, make: Callable[[Base, t.Validator, Outputs], t.UnsignedTx]) -> Drawn:
    host = draw.validator(subnet)
    period = draw.period(host) if host is not None else None
    amount = _amount(draw)
    staked = draw.stake_of(amount, _asset(draw, subnet)) if period else None
    if staked is None or period is None or host is None:
        return None
    return draw.signed(make(staked[0], t.Validator(host.node, *period, amount), staked[1]))


def _shares(draw: Drawing) -> int:
    return draw.source.choice((0, 20_000, 62_500, 333_333, 1_000_000))


def add_validator(draw: Drawing) -> Drawn:
    def make(base: Base, validator: t.Validator, stake: Outputs) -> t.UnsignedTx:
        return t.AddValidatorTx(*base, validator, stake, draw.owners(), _shares(draw))

    return _validator(draw, PRIMARY, make)


def add_delegator(draw: Drawing) -> Drawn:
    def make(base: Base, validator: t.Validator, stake: Outputs) -> t.UnsignedTx:
        return t.AddDelegatorTx(*base, validator, stake, draw.owners())

    return _delegator(draw, PRIMARY, make)


def add_permissionless_validator(draw: Drawing) -> Drawn:
    subnet = PRIMARY if draw.source.random() < 0.6 else draw.subnet(elastic=True) or PRIMARY
    signer = draw.signer() if subnet == PRIMARY and draw.source.random() < 0.8 else None

    def make(base: Base, validator: t.Validator, stake: Outputs) -> t.UnsignedTx:
        owners = draw.owners(), draw.owners()
        return t.AddPermissionlessValidatorTx(*base, validator, subnet, signer, stake, *owners, _shares(draw))

    return _validator(draw, subnet, make)


def add_permissionless_delegator(draw: Drawing) -> Drawn:
    subnet = PRIMARY if draw.source.random() < 0.6 else draw.subnet(elastic=True) or PRIMARY

    def make(base: Base, validator: t.Validator, stake: Outputs) -> t.UnsignedTx:
        return t.AddPermissionlessDelegatorTx(*base, validator, subnet, stake, draw.owners())

    return _delegator(draw, subnet, make)


def add_subnet_validator(draw: Drawing) -> Drawn:
    found = draw.of_subnet(draw.subnet(plain=True))
    host = draw.free_host(found[0]) if found else None
    period = draw.period(host) if host else None
    if found is None or host is None or period is None:
        return None
    subnet, base = found
    weight = draw.source.randint(1, 2**40)
    validator = t.Validator(host.node, *period, weight)
    return draw.signed(t.AddSubnetValidatorTx(*base, validator, subnet, draw.authorization(subnet)))


def remove_subnet_validator(draw: Drawing) -> Drawn:
    there = [one for one in draw.chain.stakers if isinstance(one.body, t.AddSubnetValidatorTx)]
    base = draw.base()
    if not there or base is None:
        return None
    one = draw.source.choice(there)
    return draw.signed(t.RemoveSubnetValidatorTx(*base, one.node, one.subnet, draw.authorization(one.subnet)))


def create_subnet(draw: Drawing) -> Drawn:
    base = draw.base()
    return draw.signed(t.CreateSubnetTx(*base, draw.owners())) if base else None


def create_chain(draw: Drawing) -> Drawn:
    found = draw.of_subnet(draw.subnet(plain=True))
    if found is None:
        return None
    subnet, base = found
    name, genesis = f"chain {draw.source.randint(0, 99)}", draw.source.randbytes(draw.source.randint(0, 40))
    return draw.signed(t.CreateChainTx(*base, subnet, name, hash256(b"vm"), (), genesis, draw.authorization(subnet)))


def transfer_ownership(draw: Drawing) -> Drawn:
    found = draw.of_subnet(draw.subnet())
    if found is None:
        return None
    subnet, base = found
    return draw.signed(t.TransferSubnetOwnershipTx(*base, subnet, draw.authorization(subnet), draw.owners()))


def transform_subnet(draw: Drawing) -> Drawn:
    found = draw.of_subnet(draw.subnet(plain=True))
    if found is None:
        return None
    subnet, base = found
    initial = draw.source.randint(10**17, 10**18)
    supplies = initial, initial + draw.source.choice((0, 10**6, 10**18))
    rates = sorted(draw.source.randint(0, 10**6) for _ in range(2))
    limits = 1, 10**18, 1, 365 * _DAY_S, 20_000, 1, 5, 800_000
    numbers = *supplies, rates[0], rates[1], *limits
    return draw.signed(t.TransformSubnetTx(*base, subnet, hash256(subnet), *numbers, draw.authorization(subnet)))


def plain_transfer(draw: Drawing) -> Drawn:
    base = draw.base()
    return draw.signed(t.PlatformBaseTx(*base)) if base else None


def import_tx(draw: Drawing) -> Drawn:
    """Outputs of X or C, sometimes with some of this chain, and sometimes of the asset of an elastic subnet."""
    elastic = draw.subnet(elastic=True)
    assets = [draw.around.avax] if elastic is None else [draw.around.avax, _asset(draw, elastic)]
    base = draw.base() if draw.source.random() < 0.4 else None
    network, chain, outputs, inputs, memo = base or (draw.around.network_id, P_CHAIN, (), (), b"")
    imported = [
        (draw.source.choice(assets), draw.source.randint(10**10, 10**14)) for _ in range(draw.source.randint(1, 3))
    ]
    given = tuple(
        t.PlatformInput(draw.source.randbytes(32), draw.source.randint(0, 4), asset, TransferInput(amount, (0,)))
        for asset, amount in imported
    )
    for asset in dict.fromkeys(asset for asset, _ in imported):
        total = sum(amount for one, amount in imported if one == asset) - 1000
        outputs = (*outputs, t.PlatformOutput(asset, TransferOutput(total, draw.owners())))
    source = draw.source.choice((draw.around.x_chain, draw.around.c_chain))
    return draw.signed(t.PlatformImportTx(network, chain, outputs, inputs, memo, source, given))


def export_tx(draw: Drawing) -> Drawn:
    """Outputs to X or C, sometimes of the asset of an elastic subnet too."""
    amounts = [draw.source.randint(1, 10**10) for _ in range(draw.source.randint(1, 3))]
    base = draw.base(sum(amounts))
    if base is None:
        return None
    exported = [t.PlatformOutput(draw.around.avax, TransferOutput(one, draw.owners())) for one in amounts]
    elastic = draw.subnet(elastic=True)
    more = draw.spend(10**6, _asset(draw, elastic)) if elastic is not None else None
    if more is not None and elastic is not None:
        base = draw.joined(base, more)
        exported.append(t.PlatformOutput(_asset(draw, elastic), TransferOutput(10**6, draw.owners())))
    to = draw.source.choice((draw.around.x_chain, draw.around.c_chain))
    return draw.signed(t.PlatformExportTx(*base, to, tuple(exported)))


# -- L1s -----------------------------------------------------------------------------------------------------------


def _balance(draw: Drawing) -> int:
    return draw.source.choice((0, 3, 40, 500, 20_000, 10**8))


def convert(draw: Drawing) -> Drawn:
    subnet = draw.subnet(plain=True)
    if subnet is None:
        return None
    taken = {one.node for one in draw.chain.stakers if one.subnet == subnet}
    nodes = sorted(draw.source.sample(sorted({*draw.around.nodes} - taken), draw.source.randint(1, 4)))
    validators = tuple(
        t.ConvertedValidator(
            node, draw.source.randint(1, 10**6), _balance(draw), draw.signer(), draw.committee(), draw.committee()
        )
        for node in nodes
    )
    base = draw.base(sum(one.balance for one in validators))
    if base is None:
        return None
    body = subnet, draw.around.x_chain, draw.source.randbytes(20), validators, draw.authorization(subnet)
    return draw.signed(t.ConvertSubnetToL1Tx(*base, *body))


def register(draw: Drawing) -> Drawn:
    subnet, balance = draw.subnet(converted=True), _balance(draw)
    base = draw.base(balance)
    if subnet is None or base is None:
        return None
    taken = {one.node for one in draw.chain.stakers if one.subnet == subnet}
    taken |= {one.node for one in draw.chain.l1.values() if one.subnet == subnet}
    free = [node for node in draw.around.nodes if node not in taken]
    if not free:
        return None
    node, signer = draw.source.choice(free), draw.signer()
    owners = draw.committee(), draw.committee()
    expiry, weight = draw.chain.time + 99, draw.source.randint(1, 10**6)
    payload = pack_registration(subnet, node, signer.public_key, expiry, owners, weight)
    return draw.signed(
        t.RegisterL1ValidatorTx(*base, balance, signer.proof_of_possession, draw.message(subnet, payload))
    )


def set_weight(draw: Drawing) -> Drawn:
    base = draw.base()
    if not draw.chain.l1 or base is None:
        return None
    name = draw.source.choice(sorted(draw.chain.l1))
    one = draw.chain.l1[name]
    others = [other for other in draw.chain.l1.values() if other.subnet == one.subnet]
    weight = 0 if draw.source.random() < 0.4 and len(others) > 1 else draw.source.randint(1, 10**6)
    change = L1ValidatorWeight(name, one.nonce + draw.source.randint(0, 3), weight)
    return draw.signed(t.SetL1ValidatorWeightTx(*base, draw.message(one.subnet, pack_weight(change))))


def increase_balance(draw: Drawing) -> Drawn:
    balance = _balance(draw) or 1
    base = draw.base(balance)
    if not draw.chain.l1 or base is None:
        return None
    return draw.signed(t.IncreaseL1ValidatorBalanceTx(*base, draw.source.choice(sorted(draw.chain.l1)), balance))


def disable(draw: Drawing) -> Drawn:
    base = draw.base()
    if not draw.chain.l1 or base is None:
        return None
    return draw.signed(t.DisableL1ValidatorTx(*base, draw.source.choice(sorted(draw.chain.l1)), (0,)))
