"""Creates the demo's data from the recordings: `python -m bench.demo_data`. The same recordings give the same bytes.

Recorded answers are copied, without what the demo does not use. Prices are invented. The history of X, P and C is a
recording already, made by bench/demo_network.py.
"""

import json
import lzma
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VECTORS = ROOT / "tests" / "vectors"
DATA = ROOT / "src" / "icefall" / "demo" / "data"
CHAINS = ("cchain-1", "demo-1")
META = ("chainId", "clientVersion", "lastBlock", "genesisHash")
COPIED = ("blocks.jsonl.xz", "state.jsonl.xz", "tokens.json.xz")
TOKEN_LIST = "token-list.json"  # written for the demo: its logos are drawn by hand
EUR_IN_USD = 1.16
PRICED = {"alpha": 2.4, "beta": 0.35, "tollHonest": 11.0}  # in usd, on the first day


def create(data: Path) -> None:
    for chain in CHAINS:
        folder = data / chain
        folder.mkdir(parents=True, exist_ok=True)
        for name in COPIED:
            shutil.copyfile(VECTORS / "evm" / chain / name, folder / name)
        if (listed := VECTORS / "evm" / chain / TOKEN_LIST).is_file():
            shutil.copyfile(listed, folder / TOKEN_LIST)
        meta = json.loads(lzma.decompress((VECTORS / "evm" / chain / "meta.json.xz").read_bytes()))
        write_rows(folder / "meta.json.xz", [{key: meta[key] for key in META}])
        prices = json.dumps(_prices(meta), indent=1) + "\n"
        (folder / "prices.json").write_text(prices)


def write_rows(path: Path, rows: Any) -> None:
    """Write JSON lines, compressed."""
    text = "\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def _prices(meta: dict[str, Any]) -> dict[str, Any]:
    """Prices of the native token and a few others, for every day of the recording and now."""
    last = datetime.fromtimestamp(meta["lastTimestamp"], UTC).date()
    first = max(datetime.fromtimestamp(meta["firstTimestamp"], UTC).date(), last - timedelta(days=60))
    starts = {"native": 31.0} | {meta["contracts"][name].lower(): price for name, price in PRICED.items()}
    starts[meta["contracts"]["wrapped"].lower()] = starts["native"]
    return {
        "currencies": {
            currency: {token: _series(start / rate, first, last) for token, start in starts.items()}
            for currency, rate in {"usd": 1.0, "eur": EUR_IN_USD}.items()
        }
    }


def _series(start: float, first: date, last: date) -> dict[str, Any]:
    """An invented price series."""
    daily, price = {}, start
    for day in range((last - first).days + 1):
        price *= 1 + ((day * 7919 + 13) % 41 - 20) / 1000
        daily[str(first + timedelta(days=day))] = f"{price:.4f}"
    return {"current": f"{price:.4f}", "daily": daily}


if __name__ == "__main__":
    create(DATA)
    size = sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file())
    print(f"{size:,} bytes in {DATA.relative_to(ROOT)}")
