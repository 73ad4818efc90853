"""The program `icefall`, and `python -m icefall`.

Until a verb handles it, Ctrl-C ends the process silently, also while modules are still loading: nothing before that
needs to be cleaned up, and a traceback would say nothing.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    from icefall.cli import main as run  # noqa: PLC0415 - only now may anything take time

    return run()


if __name__ == "__main__":
    raise SystemExit(main())
