"""Every figure we claim, as a ratio against a bare server in the same run: `make bench`, `make bench ARGS=serving`."""

import importlib
import sys

SUITES = ("serving", "index", "ledger", "follow", "ingest", "data", "first_answer")


def main() -> int:
    for name in sys.argv[1:] or SUITES:
        if name not in SUITES:
            print(f"no such bench: {name}; there are {', '.join(SUITES)}", file=sys.stderr)
            return 1
        importlib.import_module(f"bench.{name}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
