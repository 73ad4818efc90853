"""Runs benchmarks: `make bench` runs all, `make bench ARGS="serving index"` some.

Each prints ratios against a bare server or a simple program in the same run: a busy machine disturbs them less than
absolute values.
"""

import argparse
import importlib

from bench.aims import FIGURES

SUITES = {
    "serving": "node API: requests per second and CPU per request",
    "index": "index API on a long X-Chain: CPU per request",
    "overload": "liveness beside too many requests and silent connections",
    "chaos": "kill -9 of the processes in turn under load: failures by reason, nothing lost",
    "soak": "the same for long with a kill per minute: memory and open files stay the same",
    "ledger": "X-Chain transactions issued and accepted per second",
    "platform": "P-Chain executed from stored containers: blocks per second, memory, sets at old and new heights",
    "follow": "containers followed per second from a replayed node",
    "ingest": "EVM blocks indexed per second from a replayed node",
    "balances": "the same with balances from storage against balances from logs, in turns",
    "webhooks": "indexing with watched addresses, and messages delivered while receivers hang",
    "storing": "rows of a million transfers, without an upstream: CPU per transfer by tenths",
    "data": "chain data API with a million transfers: CPU per request",
    "caches": "each cache of a data worker: CPU of a page with and without it",
    "lists": "lists over a million rows: first and last pages",
    "networks": "lists of a P-Chain with a million transactions: CPU beside endpoint 4, first and last pages",
    "explorer": "home page of the Explorer: first paint and bytes",
    "exports": "icefall export of a million transfers, killed and continued: rows per CPU second, bytes, memory",
    "stores": "SQLite and the servers of --store: rows in, disk, and pages",
    "peers": "SQD, Ponder and ethereum-etl beside ours: transfers per second, CPU, memory, disk, and pages",
    "peers.avalanchego": "node API beside AvalancheGo, given by ICEFALL_TEST_AVALANCHEGO: CPU per request",
    "first_answer": "seconds from `make up` to the first answer of each API",
}
_PACKAGES = {"peers": "peers.table"}
_TAKE_STORES = ("ingest", "storing", "data", "stores")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Run benchmarks; without arguments all of them.",
        epilog="\n".join(f"  {name:<20}{summary}" for name, summary in SUITES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", nargs="*", help="one of those below")
    parser.add_argument(
        "--store", action="append", default=[], help=f"a server for {', '.join(_TAKE_STORES)}; may be repeated"
    )
    given = parser.parse_args()
    names = given.suite or list(SUITES)
    for name in names:
        if name not in SUITES:
            parser.error(f"no benchmark named {name}; there are {', '.join(SUITES)}")
    if given.store and not set(names) & set(_TAKE_STORES):
        parser.error(f"--store is for {', '.join(_TAKE_STORES)}")
    for name in names:
        module = importlib.import_module(f"bench.{_PACKAGES.get(name, name)}")
        module.run(given.store) if name in _TAKE_STORES else module.run()
    FIGURES.print_table()


if __name__ == "__main__":
    main()
