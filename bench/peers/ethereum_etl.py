"""ethereum-etl: blocks, transactions and token transfers into CSV files."""

from pathlib import Path

from bench.peers.install import python_environment
from bench.peers.processes import PeerFailed, Spent, to_the_end
from bench.peers.replay import TOKEN_TEXT, History

_PACKAGES = ["ethereum-etl==2.4.2", "setuptools<81"]  # it imports pkg_resources
# Its libraries need what Python 3.11 removed.
_CUSTOMIZE = "import inspect\nif not hasattr(inspect, 'getargspec'):\n    inspect.getargspec = inspect.getfullargspec\n"


def take(history: History, url: str, folder: Path, log: Path) -> tuple[Spent, int]:
    """Also the bytes of its files."""
    program = python_environment("ethereum-etl", _PACKAGES, _CUSTOMIZE) / "ethereumetl"
    blocks, txs, transfers = (folder / f"{name}.csv" for name in ("blocks", "transactions", "transfers"))
    common = ["--start-block=0", f"--end-block={history.last}", f"--provider-uri={url}"]
    files = [f"--blocks-output={blocks}", f"--transactions-output={txs}"]
    first = to_the_end([program, "export_blocks_and_transactions", *common, *files], log)
    tokens = [f"--tokens={TOKEN_TEXT}", f"--output={transfers}"]
    spent = first.plus(to_the_end([program, "export_token_transfers", *common, *tokens], log))
    for file in (txs, transfers):
        with file.open() as lines:
            stored = sum(1 for _ in lines) - 1
        if stored != history.transfers:
            raise PeerFailed(f"{stored} rows in {file.name} instead of {history.transfers}")
    return spent, sum(file.stat().st_size for file in (blocks, txs, transfers))
