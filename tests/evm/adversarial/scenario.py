"""What happens on the chain: a list of steps, each the transactions of one block. Nothing here talks to a node.

All ERC-20 tokens are minted and moved honestly first, so that their logs look trustworthy. Then each does its trick
once, and is left alone for the rest: nothing but a look at old holders can find it.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from icefall.wire.evm.rlp import encode, keccak256, number

CONTRACTS = json.loads((Path(__file__).parent / "contracts.json").read_text())
ACCOUNTS = 8
DEPLOYER, A, B, C, D, E, F, TREASURY = range(ACCOUNTS)
UNIT = 10**18
ZERO = bytes(20)
NEVER_USED = bytes.fromhex("00000000000000000000000000000000deadbeef")
UNNAMED = [bytes.fromhex(f"{0xA0 + place:02x}" * 20) for place in range(3)]  # receive only what no log tells
CROWD_FIRST = 0xC0 << 152
CROWD = 64
JUMP_S = 3_700  # more than the period after which Growing20 grows

ERC20, ERC721, ERC1155 = "ERC-20", "ERC-721", "ERC-1155"
MINTED = [
    *("Honest20", "Nameless20", "Rebasing20", "Growing20", "Remote20", "WrongPayer20", "SilentFee20", "SilentMint20"),
    *("Factor20", "ZeroCredit20", "Expiring20", "Proxy1967", "Proxy1822", "Renamed20"),
]


@dataclass(frozen=True)
class Tx:
    sender: int  # place of the account
    to: bytes | None
    data: bytes
    value: int = 0


@dataclass(frozen=True)
class Step:
    seconds: int  # since the block before
    txs: tuple[Tx, ...]
    does: str


@dataclass(frozen=True)
class Token:
    label: str
    address: bytes
    standard: str
    ids: tuple[int, ...] = ()


@dataclass
class Scenario:
    accounts: list[bytes]
    steps: list[Step] = field(default_factory=list)
    contracts: dict[str, bytes] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    reborn: bytes | None = None  # an ERC-20 that became an ERC-721
    crowd: list[bytes] = field(default_factory=list)

    @property
    def actors(self) -> list[bytes]:
        """Everybody but the crowd."""
        reborn = [self.reborn] if self.reborn else []
        return [*self.accounts, *UNNAMED, ZERO, NEVER_USED, *self.contracts.values(), *reborn]


def selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


def call_data(signature: str, *args: int | bytes) -> bytes:
    """A call whose arguments are numbers and addresses."""
    return selector(signature) + b"".join(map(_word, args))


def _word(value: int | bytes) -> bytes:
    return value.to_bytes(32, "big") if isinstance(value, int) else value.rjust(32, b"\0")


class _Writer:
    """Collects the transactions of a step; knows the address of each contract before it is deployed."""

    def __init__(self, scenario: Scenario, filler: random.Random | None) -> None:
        self._scenario = scenario
        self._filler = filler
        self._txs: list[Tx] = []
        self._nonce = 0  # of the deployer
        self._nfts = dict.fromkeys(range(1, 7), A)  # owners of Honest721

    def deploy(self, name: str, *args: int | bytes) -> bytes:
        deployer = self._scenario.accounts[DEPLOYER]
        address = keccak256(encode([deployer, number(self._nonce)]))[12:]
        self._scenario.contracts[name] = address
        code = bytes.fromhex(CONTRACTS[name]["bytecode"])
        self._add(Tx(DEPLOYER, None, code + b"".join(map(_word, args))))
        return address

    def call(self, sender: int, contract: str | bytes, signature: str, *args: int | bytes, value: int = 0) -> None:
        address = contract if isinstance(contract, bytes) else self._scenario.contracts[contract]
        self._add(Tx(sender, address, call_data(signature, *args), value))

    def pay(self, sender: int, to: bytes, value: int) -> None:
        self._add(Tx(sender, to, b"", value))

    def _add(self, tx: Tx) -> None:
        self._txs.append(tx)
        self._nonce += tx.sender == DEPLOYER

    def step(self, does: str, seconds: int = 12) -> None:
        self._scenario.steps.append(Step(seconds, tuple(self._txs), does))
        self._txs = []

    def quiet(self, count: int) -> None:
        """Steps of other business."""
        for _ in range(count):
            self._other_business()
            self.step("other business")

    def _other_business(self) -> None:
        chance = self._filler
        people = self._scenario.accounts
        if chance is None:
            self.call(A, "Honest20", "transfer(address,uint256)", people[B], 1)
            return
        for _ in range(chance.randint(1, 3)):
            sender, to = chance.choice([A, B, C]), people[chance.choice([A, B, C, D, E, F])]
            match chance.randrange(4):
                case 0:
                    self.pay(sender, to, chance.randrange(1, UNIT))
                case 1:
                    nft = chance.choice(sorted(self._nfts))
                    owner, new = self._nfts[nft], chance.choice([A, B, C])
                    self._nfts[nft] = new
                    signature = "transferFrom(address,address,uint256)"
                    self.call(owner, "Honest721", signature, people[owner], people[new], nft)
                case 2:
                    self.call(A, "Honest1155", "give(address,uint256,uint256)", to, chance.randint(1, 3), 1)
                case _:
                    someone = chance.choice([to, *self._scenario.crowd])
                    value = chance.randrange(1, UNIT)
                    self.call(sender, "Honest20", "transfer(address,uint256)", someone, value)


def scenario(accounts: list[bytes], *, sample: bool = False, seed: int = 13) -> Scenario:
    """`sample`: without other business in between and without a contract that is destroyed."""
    made = Scenario(accounts)
    writer = _Writer(made, None if sample else random.Random(seed))
    _deploy(writer, sample=sample)
    made.tokens += _tokens(made)
    _begin(made, writer, sample=sample)
    for place, trick in enumerate(_tricks(made, writer)):
        if not trick.startswith("jump"):
            writer.step(trick)
        else:
            writer.step(trick, JUMP_S)
        if not sample:
            writer.quiet(1 if place % 3 == 0 else 0)
    if not sample:
        _rebirth(made, writer)
    writer.quiet(3)
    return made


def _tokens(made: Scenario) -> list[Token]:
    ids = {
        "Honest721": tuple(range(1, 8)),
        "Silent721": (1, 2, 3),
        "WrongOwner721": (1, 2),
        "Honest1155": (1, 2, 3),
        "Silent1155": (1, 2),
    }
    tokens = [Token(name, made.contracts[name], ERC20) for name in [*MINTED, "Wrapped20"]]
    for name, some in ids.items():
        tokens.append(Token(name, made.contracts[name], ERC721 if name.endswith("721") else ERC1155, some))
    return tokens


def _deploy(writer: _Writer, *, sample: bool) -> None:
    for name in ("Lens", "Honest20", "Honest721", "Honest1155"):
        writer.deploy(name)
    writer.step("deploy the honest ones")
    for name in ("Nameless20", "Wrapped20", "Rebasing20", "WrongPayer20"):
        writer.deploy(name)
    writer.step("deploy")
    ledger = writer.deploy("Ledger")
    writer.deploy("Remote20", ledger)
    writer.deploy("Growing20", 60 if sample else 3_600)
    writer.deploy("SilentFee20")
    writer.step("deploy")
    for name in ("SilentMint20", "Factor20", "ZeroCredit20", "Renamed20"):
        writer.deploy(name)
    writer.step("deploy")
    writer.deploy("Expiring20", 90 if sample else 30)
    for name in ("Silent721", "WrongOwner721", "Silent1155"):
        writer.deploy(name)
    writer.step("deploy")
    before = writer.deploy("Before20")
    writer.deploy("After20")
    writer.deploy("Proxy1967", before)
    writer.deploy("Proxy1822", before)
    writer.step("deploy proxies")


def _begin(made: Scenario, writer: _Writer, *, sample: bool) -> None:
    """Every token is given out and moved once, as its logs say."""
    people = made.accounts
    count = CROWD // (8 if sample else 2)
    for start in range(0, count if sample else CROWD, count):
        writer.call(DEPLOYER, "Honest20", "mintMany(uint256,uint256,uint256)", CROWD_FIRST + start, count, UNIT)
        made.crowd += [(CROWD_FIRST + start + place).to_bytes(20, "big") for place in range(count)]
        writer.step("give the honest token to many")
    mint = "mint(address,uint256)"
    gifts = [(name, who, 1_000 * UNIT * who) for name in MINTED for who in (A, B, C)]
    for start in range(0, len(gifts), 4):
        for name, who, value in gifts[start : start + 4]:
            writer.call(DEPLOYER, name, mint, people[who], value)
        writer.step("mint")
    for place in range(1, 7):
        writer.call(DEPLOYER, "Honest721", mint, people[A], place)
    writer.step("mint NFTs")
    for name in ("Silent721", "WrongOwner721"):
        for place, who in ((1, A), (2, B)):
            writer.call(DEPLOYER, name, mint, people[who], place)
    writer.call(DEPLOYER, "Silent721", mint, people[C], 3)
    writer.step("mint NFTs")
    for name in ("Honest1155", "Silent1155"):
        for place in (1, 2, 3) if name == "Honest1155" else (1, 2):
            writer.call(DEPLOYER, name, "mint(address,uint256,uint256)", people[A], place, 1_000)
    writer.step("mint ERC-1155")
    writer.call(A, "Honest1155", "giveTwo(address,uint256,uint256)", people[B], 1, 100)
    writer.call(A, "Silent1155", "giveTwo(address,uint256,uint256)", people[C], 1, 100)
    for who in (A, B):
        writer.call(who, "Wrapped20", "deposit()", value=3 * UNIT)
    writer.step("deposit")
    moved = [name for name in MINTED if name != "SilentFee20"]
    for start in range(0, len(moved), 4):
        for name in moved[start : start + 4]:
            writer.call(A, name, "transfer(address,uint256)", people[D], 10 * UNIT)
        writer.step("transfer")


def _tricks(made: Scenario, writer: _Writer) -> Iterator[str]:
    """Yields what the step does, once its transactions are written."""
    people, call = made.accounts, writer.call
    after = made.contracts["After20"]

    call(DEPLOYER, "Rebasing20", "rebase(address,uint256)", people[TREASURY], 80)
    yield "a rebase that logs only the treasury's part"
    call(DEPLOYER, "Factor20", "setFactor(uint256)", 2)
    yield "a rebase up without a log"
    call(A, "Wrapped20", "transfer(address,uint256)", people[C], UNIT)
    call(B, "Wrapped20", "withdraw(uint256)", UNIT)
    yield "wrapped native money moved and withdrawn"
    call(DEPLOYER, "Ledger", "set(address,uint256)", people[C], 77)
    yield "balances changed in another contract"
    call(DEPLOYER, "WrongPayer20", "take(address,address,uint256)", people[A], people[B], 99)
    yield "taken from one while the log names another"
    call(A, "SilentFee20", "transfer(address,uint256)", people[B], 100 * UNIT)
    yield "a fee on transfer that the log does not tell"
    call(DEPLOYER, "SilentMint20", "mintSilently(address,uint256)", people[B], 5 * UNIT)
    call(DEPLOYER, "SilentMint20", "mintSilently(address,uint256)", UNNAMED[0], 6 * UNIT)
    yield "minted without a log"
    call(DEPLOYER, "Factor20", "setFactor(uint256)", 1)
    yield "the rebase taken back without a log"
    call(B, "ZeroCredit20", "burn(uint256)", 7 * UNIT)
    call(B, "Honest20", "burn(uint256)", 7 * UNIT)
    yield "burned, and credited to the zero address"
    call(DEPLOYER, "Honest20", "mint(address,uint256)", people[E], UNIT)
    yield "jump an hour"
    call(DEPLOYER, "Proxy1967", "upgradeTo(address)", after)
    yield "an upgrade with an event"
    call(DEPLOYER, "Proxy1822", "upgradeTo(address)", after)
    yield "an upgrade without an event"
    call(DEPLOYER, "Renamed20", "rename()")
    yield "another name without an event"
    call(DEPLOYER, "Silent721", "moveSilently(address,uint256)", people[E], 2)
    call(DEPLOYER, "Silent721", "moveSilently(address,uint256)", UNNAMED[1], 3)
    yield "NFTs moved without a log"
    call(DEPLOYER, "WrongOwner721", "moveWrongly(address,address,uint256)", people[F], people[E], 1)
    yield "an NFT moved to another one than the log names"
    call(DEPLOYER, "Silent1155", "setSilently(address,uint256,uint256)", people[C], 2, 5)
    call(DEPLOYER, "Silent1155", "setSilently(address,uint256,uint256)", UNNAMED[2], 1, 6)
    yield "ERC-1155 balances set without a log"
    call(DEPLOYER, "Honest721", "mint(address,uint256)", people[C], 7)
    yield "an NFT made"
    call(C, "Honest721", "burn(uint256)", 7)
    yield "and burned"
    writer.pay(C, people[D], UNIT)
    yield "jump another hour"


def _rebirth(made: Scenario, writer: _Writer) -> None:
    """An ERC-20 is destroyed, and an ERC-721 made at its address."""
    people = made.accounts
    factory = writer.deploy("Factory")
    first, second = writer.deploy("First20"), writer.deploy("Second721")
    writer.step("deploy a factory")
    init_code = bytes.fromhex(CONTRACTS["Copy"]["bytecode"])
    reborn = keccak256(b"\xff" + factory + bytes(32) + keccak256(init_code))[12:]
    made.reborn = reborn
    made.tokens.append(Token("Reborn", reborn, ERC721, (1, 2)))
    writer.call(DEPLOYER, factory, "deploy(address)", first)
    writer.call(DEPLOYER, reborn, "mint(address,uint256)", people[A], 500)
    writer.call(DEPLOYER, reborn, "mint(address,uint256)", people[B], 600)
    writer.step("made as an ERC-20")
    writer.quiet(1)
    writer.call(DEPLOYER, reborn, "destroy()")
    writer.step("destroyed")
    writer.quiet(1)
    writer.call(DEPLOYER, factory, "deploy(address)", second)
    writer.step("made again as an ERC-721")
    writer.call(DEPLOYER, reborn, "mint(address,uint256)", people[B], 1)
    writer.call(DEPLOYER, reborn, "mint(address,uint256)", people[C], 2)
    writer.step("given out as an ERC-721")
