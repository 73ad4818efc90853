"""The baseline: a granian worker that answers every request with the same bytes, if wanted after some computing."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.log import LogLevels

_ANSWER = Path(os.environ["ICEFALL_BENCH_ANSWER"]).read_bytes() if "ICEFALL_BENCH_ANSWER" in os.environ else b""
_CPU_S = float(os.environ.get("ICEFALL_BENCH_CPU_US", "0")) / 1e6
_HEADERS = [("content-type", "application/json; charset=utf-8")]


async def app(_scope: Any, protocol: Any) -> None:
    await protocol()
    if _CPU_S:
        until = time.thread_time() + _CPU_S
        while time.thread_time() < until:
            pass
    protocol.response_bytes(200, _HEADERS, _ANSWER)


@contextmanager
def bare_server(answer: bytes, cpu_us: float = 0) -> Iterator[tuple[str, int]]:
    """URL and process ID of a bare server with the same server settings as ours. `cpu_us`: what it computes for each
    answer, for a latency under load that can be compared with ours."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with NamedTemporaryFile() as file:  # an answer may be too long for an environment variable
        file.write(answer)
        file.flush()
        environment = {**os.environ, "ICEFALL_BENCH_ANSWER": file.name, "ICEFALL_BENCH_CPU_US": str(cpu_us)}
        process = subprocess.Popen([sys.executable, "-m", "bench.bare", str(port)], env=environment)
        try:
            for _ in range(500):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.02)
            yield f"http://127.0.0.1:{port}/", process.pid
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    Granian(
        "bench.bare:app",
        port=int(sys.argv[1]),
        interface=Interfaces.RSGI,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        websockets=False,
        log_level=LogLevels.error,
    ).serve()
