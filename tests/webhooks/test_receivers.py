"""The receivers of docs/webhooks.md are run as they are printed, and take what delivery sends them."""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.counterparts import program
from tests.ports import held_port
from tests.webhooks.scene import sending

from icefall.webhooks.signing import canonical_json, signature_headers

PAGE = (Path(__file__).parent.parent.parent / "docs" / "webhooks.md").read_text()
SECRET, OTHER = b"s" * 32, b"o" * 32
BODY = canonical_json({"event": {"name": "Token €"}, "messageId": "m"})


def listing(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.+?)```", PAGE, re.DOTALL)
    return str(found)


@contextmanager
def running(command: list[str]) -> Iterator[str]:
    with held_port() as port:
        environment = {**os.environ, "WEBHOOK_SECRET": SECRET.hex(), "PORT": str(port)}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.kill()
            process.wait()


async def codes(url: str, at: int) -> list[int]:
    """The answers to a good message, one that was signed before a rotation, and three bad ones."""
    good = signature_headers([SECRET], "m", at, BODY)
    others = (
        (BODY, signature_headers([OTHER, SECRET], "m", at, BODY)),
        (BODY + b" ", good),
        (BODY, signature_headers([OTHER], "m", at, BODY)),
        (BODY, signature_headers([SECRET], "m", at - 3600, BODY)),
    )
    async with sending() as access:
        while (first := await access.send(url, BODY, good)).code == 0:  # it starts
            await asyncio.sleep(0.05)
        return [first.code, *[(await access.send(url, body, headers)).code for body, headers in others]]


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_a_receiver_takes_what_is_signed_and_nothing_else(language: str, tmp_path: Path) -> None:
    file = tmp_path / ("receiver.py" if language == "python" else "receiver.cjs")
    file.write_text(listing(language))
    with running([sys.executable if language == "python" else program("node"), str(file)]) as url:
        assert asyncio.run(asyncio.wait_for(codes(url, int(time.time())), 60)) == [204, 204, 401, 401, 401]
