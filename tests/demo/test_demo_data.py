"""The demo data of the package: small, built from the recordings, unchanged."""

import json
import lzma
from pathlib import Path

import pytest
from bench import demo_data

from icefall.demo.chains import CHAINS, recordings, tables
from icefall.evm.enriching.lists import PricePoint, prices_of
from icefall.evm.enriching.reader import CURRENCIES, NATIVE_ADDRESS, NOW

SIZE_MAX = 8_000_000
PACKED = sorted(str(path.relative_to(demo_data.DATA)) for path in demo_data.DATA.rglob("*") if path.is_file())


def content(path: Path) -> bytes:
    """Decompressed, because the compressed size depends on the version of the compressor."""
    raw = path.read_bytes()
    return lzma.decompress(raw) if path.suffix == ".xz" else raw


def test_demo_data_is_small() -> None:
    sizes = {name: (demo_data.DATA / name).stat().st_size for name in PACKED}
    assert len(sizes) == 12
    assert sum(sizes.values()) < SIZE_MAX, sizes


def test_building_from_the_recordings_gives_the_same_data(tmp_path: Path) -> None:
    demo_data.create(tmp_path)
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert made == sorted(set(PACKED) - {"history.jsonl.xz"})  # a recording itself, made by bench/demo_network.py
    for name in made:
        assert content(tmp_path / name) == content(demo_data.DATA / name), name


@pytest.mark.parametrize("chain", [chain.name for chain in CHAINS])
def test_prices_can_be_read_and_cover_every_day(chain: str) -> None:
    prices = prices_of((demo_data.DATA / chain / "prices.json").read_bytes())
    stamps = {json.loads(block.block)["timestamp"] for block in recordings()[chain].blocks.values()}
    days = {int(stamp, 16) // 86400 for stamp in stamps}
    newest = max(days)
    for currency in ("usd", "eur"):
        assert currency in CURRENCIES
        assert PricePoint(NATIVE_ADDRESS, currency, NOW) in prices
        recent = {day for day in days if newest - day < 60}
        assert {day for day in recent if PricePoint(NATIVE_ADDRESS, currency, day) not in prices} == set()
    assert len({point.token_address for point in prices}) == 5


def test_chains_are_listed_with_the_ids_that_were_recorded() -> None:
    listed = {table["rpc"][0].rpartition("/")[2]: table for table in tables("http://127.0.0.1:1")}
    for name, recording in recordings().items():
        assert listed[name]["id"] == recording.meta["chainId"]
        assert recording.meta["lastBlock"] == max(recording.blocks)
        assert Path(listed[name]["prices"]).is_file()


def test_no_recorded_chain_has_an_id_that_a_client_takes_by_default() -> None:
    assert not {chain.table["id"] for chain in CHAINS} & {"1", "1337", "31337"}
