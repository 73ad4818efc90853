"""The small parts of chain data answers: checksums, money, cursors, weights, which upstream URLs are shown."""

import random
from decimal import Decimal

import pytest
from msgspec import UNSET
from tests.api.data_naive import address_text

from icefall.api.data.endpoints import CHAIN_DATA_ENDPOINTS
from icefall.api.data.render.balances import BalanceCursor, unpack_balance_cursor
from icefall.api.data.render.text import Money
from icefall.api.data.schema.tokens import Price
from icefall.api.describing.docs import api_markdown
from icefall.api.describing.openapi import document
from icefall.api.http.paging import pack_cursor, unpack_cursor
from icefall.api.http.row import DATA, Weight
from icefall.evm.reading.directory import shown_rpc_url
from icefall.wire.evm.hex import checksummed


def test_addresses_are_checksummed() -> None:
    """EIP-55's own examples, and the plain way of its text."""
    for text in (
        "0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
        "0xde709f2102306220921060314715629080e2fb77", "0x27b1fdb04752bbc536007a920d24acb045561c26",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ):  # fmt: skip
        assert checksummed(bytes.fromhex(text[2:])) == text
    chance = random.Random(55)
    for address in [bytes(20), b"\xff" * 20, *(chance.randbytes(20) for _ in range(2000))]:
        assert checksummed(address) == address_text(address)


@pytest.mark.parametrize(
    ("balance", "decimals", "price", "worth"),
    [
        (0, 18, "12.5", "0"),
        (10**18, 18, "12.5", "12.5"),
        (1, 18, "12.5", "0"),
        (1, 0, "1", "1"),
        (5, 9, "1", "0"),  # 0.000000005: half, to even
        (15, 9, "1", "0.00000002"),
        (123456789, 6, "0.000001", "0.00012346"),
        (2**256 - 1, 0, "9" * 30 + "." + "9" * 30, None),
        (2**256 - 1, 255, "1", "0"),
        (10**20, 18, "100", "10000"),
    ],
)
def test_worth_is_exact_and_short(balance: int, decimals: int, price: str, worth: str | None) -> None:
    shown = Money("usd", as_numbers=False).value(balance, decimals, price)
    assert isinstance(shown, Price)
    assert isinstance(shown.value, str)
    assert "E" not in shown.value
    if worth is None:
        exact = Decimal(balance).scaleb(-decimals) * Decimal(price)
        assert len(shown.value.partition(".")[2]) <= 8
        assert shown.value[:20] == f"{exact:f}"[:20]
    else:
        assert shown.value == worth
    live = Money("usd", as_numbers=True).value(balance, decimals, price)
    assert isinstance(live, Price)
    assert live.value == float(shown.value)


def test_no_price_is_no_worth() -> None:
    money = Money("eur", as_numbers=False)
    assert money.price(None) is UNSET
    assert money.value(5, 18, None) is UNSET


def test_cursors_come_back_as_they_were() -> None:
    for numbers in ((0,), (2**63 - 1,), (5, 0), (2**40, 2**24 - 1)):
        assert unpack_cursor(pack_cursor(*numbers)) == numbers
    token, at = b"\x11" * 20, b"\x22" * 32
    for cursor in (
        BalanceCursor(0, at), BalanceCursor(5, at, part=1), BalanceCursor(7, at, token),
        BalanceCursor(7, at, token, 2**256 - 1), BalanceCursor(2**39 - 1, at, bytes(20), 256, part=1),
    ):  # fmt: skip
        assert unpack_balance_cursor(cursor.pack()) == cursor
        assert len(cursor.pack()) <= 93


def test_weights_are_those_of_the_hosted_service() -> None:
    others = {
        "supportedChains": Weight.FREE,
        "getChainInfo": Weight.FREE,
        "getLatestBlocks": Weight.SMALL,
        "getBlock": Weight.SMALL,
        "data-health-check": Weight.FREE,
        "getAddressChains": Weight.FREE,
        "listAllLatestBlocks": Weight.FREE,
        "listAllLatestTransactions": Weight.FREE,
        "reindexNft": Weight.SMALL,
    }
    hosted = [row for row in CHAIN_DATA_ENDPOINTS if not row.ours]
    assert {row.operation: row.weight for row in hosted} == {
        row.operation: others.get(row.operation, Weight.MEDIUM) for row in hosted
    }


def test_block_ranges_are_described() -> None:
    """startBlock is in the range, endBlock is not: in OpenAPI, and in docs/api.md."""
    paths = document(DATA, list(CHAIN_DATA_ENDPOINTS), "0")["paths"]
    words = {"startBlock": "inclusive", "endBlock": "exclusive"}
    found = [
        (param["name"], param["description"])
        for path in paths.values()
        for operation in path.values()
        for param in operation["parameters"]
        if param["name"] in words
    ]
    assert len(found) == 16, "endpoints 4 to 9, 11, and logs of a contract"
    for name, description in found:
        assert words[name] in description
        assert words["startBlock" if name == "endBlock" else "endBlock"] not in description
    rows = [line for line in api_markdown().splitlines() if "startBlock" in line]
    assert len(rows) == 9, "the same, and the call of version 2"
    for row in rows:
        assert "`startBlock` first block (inclusive), `endBlock` end block (exclusive)" in row


@pytest.mark.parametrize(
    ("public", "upstream", "shown"),
    [
        ("", "http://127.0.0.1:9650/ext/bc/C/rpc", "http://127.0.0.1:9650/ext/bc/C/rpc"),
        ("", "http://localhost:8545", "http://localhost:8545"),
        ("", "http://[::1]:8545", "http://[::1]:8545"),
        ("", "http://user:pass@127.0.0.1:8545", ""),
        ("", "http://127.0.0.1:8545/?key=secret", ""),
        ("", "https://rpc.example/v3/secret", ""),
        ("", "http://10.0.0.5:8545", ""),
        ("", "http://127.0.0.1.example:8545", ""),
        ("https://public.example", "http://127.0.0.1:8545", "https://public.example"),
        ("https://public.example", "https://rpc.example/v3/secret", "https://public.example"),
    ],
)
def test_the_url_of_an_upstream_is_shown_only_if_it_is_loopback(public: str, upstream: str, shown: str) -> None:
    assert shown_rpc_url(public, upstream) == shown
