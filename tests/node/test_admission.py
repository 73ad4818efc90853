"""What a data directory may be started as. The program itself is started so in tests/e2e/test_index_flags.py."""

import asyncio
from functools import partial
from pathlib import Path

import msgspec
import pytest
from tests.store.opened import open_store

from icefall.errors import StartRefused
from icefall.node.store import PACKAGE, StartRequest, admit, read_meta, store_path

PLAIN = StartRequest(12345, False, True, False)


def changed(**what: object) -> StartRequest:
    return msgspec.structs.replace(PLAIN, **what)


@pytest.mark.parametrize(
    ("first", "then", "why"),
    [
        (PLAIN, PLAIN, None),
        (
            PLAIN,
            changed(network_id=5),
            "belongs to network 12345, not 5: use another --data-dir, or --network-id=12345",
        ),
        (PLAIN, changed(follows=True), "holds a network of its own: follow a node with another --data-dir"),
        (changed(follows=True), PLAIN, "follows another node: give --upstream, or use another --data-dir"),
        (changed(follows=True), changed(follows=True), None),
        (PLAIN, changed(index_enabled=False), "--index-enabled=true, or accept"),
        (PLAIN, changed(index_enabled=False, allow_incomplete=True), None),
        (changed(index_enabled=False), PLAIN, "once ran without the index"),
        (changed(index_enabled=False), changed(allow_incomplete=True), None),
    ],
)
def test_a_second_start(first: StartRequest, then: StartRequest, why: str | None, tmp_path: Path) -> None:
    store = open_store(store_path(tmp_path), PACKAGE)
    asyncio.run(store.write(lambda tx: admit(tx, first, 100)))
    before = store.read("select * from meta order by name")
    if why is None:
        asyncio.run(store.write(lambda tx: admit(tx, then, 200)))
        assert read_meta(store, "genesis_time") == "100"  # the first one stays
    else:
        with pytest.raises(StartRefused, match=why):
            asyncio.run(store.write(lambda tx: admit(tx, then, 200)))
        assert store.read("select * from meta order by name") == before
    store.close()


ON, OFF = changed(), changed(index_enabled=False)
ON_ALLOWED, OFF_ALLOWED = changed(allow_incomplete=True), changed(index_enabled=False, allow_incomplete=True)
RUNS, REFUSED = True, False
# starts on one data directory, in order, and whether the program runs
TRANSITIONS = {
    "on, off": [(ON, RUNS), (OFF, REFUSED), (ON, RUNS)],
    "on, off allowed, on": [(ON, RUNS), (OFF_ALLOWED, RUNS), (ON, REFUSED), (ON_ALLOWED, RUNS), (ON, REFUSED)],
    "fresh off, on": [(OFF, RUNS), (ON, REFUSED), (OFF, RUNS), (ON_ALLOWED, RUNS)],
    "fresh on allowed, on": [(ON_ALLOWED, RUNS), (ON, RUNS)],
}


@pytest.mark.parametrize("name", TRANSITIONS)
def test_transitions_of_the_index(name: str, tmp_path: Path) -> None:
    store = open_store(store_path(tmp_path), PACKAGE)
    for start, runs in TRANSITIONS[name]:
        if runs:
            asyncio.run(store.write(partial(admit, start=start, genesis_time=100)))
        else:
            with pytest.raises(StartRefused, match="--index-allow-incomplete"):
                asyncio.run(store.write(partial(admit, start=start, genesis_time=100)))
    store.close()
