"""The recorded calls of a real node, sent to ours: the same status and the same value, or a deviation that is listed.

Rows that need a chain with blocks, or an interface of a chain that is not served yet, follow with those (`later`).
"""

import os
import re
import shutil
import signal
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from tests.api.recording import Row, difference, rows, send
from tests.server import Server, serving

LIVE = ("--dialect=live", "--api-admin-enabled=true", "--index-enabled=true")

# -- what cannot be compared yet ---------------------------------------------------------------------------------

CHAIN_PATHS = re.compile(r"/ext/(?:bc|index|P|X|C|platform|avm|evm)(?:[/?]|$)")
CHAIN_ALIASES = re.compile(r"/ext/(?:myx2?|byid|ix/|cc/|xx$|xavm|viaNewx)")  # what the recorder called chains
NOT_SERVED = re.compile(r"/ext/(?:bc/)?(?:P|platform|C|evm|cc)(?:[/?]|$)|/wallet")
EMPTY = ("http", "jsonrpc", "clean", "fail_disk", "shutdown_5s")  # recorded before any chain had a block


def later(row: Row) -> bool:
    path = row.request.path
    if not CHAIN_PATHS.match(path) and not CHAIN_ALIASES.match(path):
        return False
    return row.part not in EMPTY or bool(NOT_SERVED.search(path))


def unanswered(row: Row) -> bool:
    """The node was not listening yet, or no more."""
    return row.response.status is None


# -- what stays different ----------------------------------------------------------------------------------------


class Deviation(NamedTuple):
    """`reason` is a line of docs/deviations.md."""

    reason: str
    covers: Callable[[Row], bool]


def numbers(*ns: int) -> Callable[[Row], bool]:
    return lambda row: row.n in ns


def calls(*methods: str) -> Callable[[Row], bool]:
    return lambda row: row.request.path == "/ext/admin" and row.rpc_method in methods


DEVIATIONS = (
    Deviation("a request body may be 1 MiB long at most", numbers(781, 783, 784)),
    Deviation("the head of a request may be 64 KiB long and have 100 headers at most", numbers(4566, 4567, 4568)),
    Deviation("admin is for browser origins listed by name", numbers(659)),
    Deviation("admin.stacktrace, admin.getConfig and admin.dbGet are not served",
              calls("admin.stacktrace", "admin.getConfig", "admin.dbGet")),
    Deviation("avm.getAddressTxs is served", numbers(991)),
    Deviation("a call that fails changes nothing", numbers(2851, 2955, 2956, 2974, 2997, 3566)),
    Deviation("aliases and logger levels survive a restart", numbers(4384, 4385, 4386)),
    Deviation("braces in an alias are plain text",
              numbers(2877, 2895, 2899, 2903, 2907, 2909, 2911, 2930)),
    Deviation("chains are there and ready as soon as the port is open",
              lambda row: row.n in (20, 31, 34) or '"not yet run"' in row.response.body),
    Deviation("/ext/metrics shows Icefall's own counters",
              lambda row: row.request.path in ("/ext/metrics", "/ext/mt") and row.response.status == 200
              and row.n != 663),
    Deviation("VM plugins are Python modules", numbers(3148, 3151, 3153, 4370, 4371)),
    Deviation("there is no peer network, no validator set and no BLS key", lambda row: (
        row.part in ("fail_sybil", "pair", "catchup") and row.request.path.startswith("/ext/health")
        and "/liveness" not in row.request.path and row.rpc_method != "health.liveness"
    ) or row.n in (3907, 3908, 3910, 4267, 4269, 4273, 4274, 4275)),
    Deviation("info shows this node's own version and identity", lambda row: row.rpc_method in (
        "info.getNodeVersion", "info.getNodeID", "info.getNodeIP") and '"result"' in row.response.body),
    Deviation("a node follows the whole primary network", numbers(4353, 4360)),
    Deviation("no aliases from files", numbers(4362, 4366)),
    Deviation("TLS is left to a proxy", numbers(4375)),
    Deviation("the node's internal routing header has no meaning", numbers(775, 4414)),
    # 523 was sent with two Host headers, of which the file has one; tests/http_server has that case.
    Deviation("three answers of the node's HTTP server are given otherwise", numbers(523, 760, 764, 774)),
)  # fmt: skip


def deviation(row: Row) -> str:
    return next((one.reason for one in DEVIATIONS if one.covers(row)), "")


# -- requests to the node that are not in the file -----------------------------------------------------


class Tell(NamedTuple):
    method: str
    params: dict[str, Any]

    def __call__(self, server: Server) -> None:
        server.call("/ext/admin", f"admin.{self.method}", self.params)


def alias(endpoint: str, name: str) -> Tell:
    return Tell("alias", {"endpoint": endpoint, "alias": name})


def chain_alias(name: str) -> Tell:
    return Tell("aliasChain", {"chain": "X", "alias": name})


class Files(NamedTuple):
    """Files (empty text: a directory) of the data directory; `gone` go first."""

    made: dict[str, str]
    gone: tuple[str, ...] = ()

    def __call__(self, server: Server) -> None:
        for name in self.gone:
            path = server.data_dir / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        for name, text in self.made.items():
            path = server.data_dir / name
            if text:
                path.write_text(text)
            else:
                path.mkdir(parents=True, exist_ok=True)


BEFORE: dict[int, Tell | Files] = {
    2872: alias("info", "a.b-c_d"),
    2874: alias("info", "q?x"),
    2883: alias("info", ""),
    2898: alias("index/X", "ix"),
    2909: alias("metrics", "mt"),
    2922: alias("info", "zz2"),
    2932: chain_alias("mychain"),
    2961: chain_alias("with space"),
    2973: chain_alias("zz5"),
    3043: Tell("setLoggerLevel", {"loggerName": "C", "logLevel": "Info", "displayLevel": "Info"}),
    3078: Tell("setLoggerLevel", {"logLevel": "DEBUG"}),
    3099: Tell("stopCPUProfiler", {}),
    3103: Tell("stopCPUProfiler", {}),
    3136: Files({"plugins": ""}),
    3143: Files({"plugins/folder": ""}),
    3144: Files({"plugins/.hidden": "x"}),
    3145: Files({"plugins/.hidden.txt": "x"}),
    3146: Files({"plugins/junk": "x"}, gone=("plugins/.hidden.txt",)),
    3147: Files({"plugins/junk.txt": "x"}, gone=("plugins/junk",)),
    3148: Files({"plugins/srEXiWaHuhNyGwPUi444Tu47ZEDwxTWrbQiuD7FmgSAQ6X7Dy": "x"}, gone=("plugins/junk.txt",)),
    3151: Files({"plugins/tGas3T58KzdjLHhBDMnH2TvrddhqTji5iZAMZ3RXs2NLpSnhH": "#!/bin/sh\nexit 3\n"}),
    3153: Files({"plugins/2Z36RnQuk1hvsnFeGWzfZUfXNr7w1SjzmDQ78YxfTVNAkDq3nZ.exe": "x"}),
    3154: Files({"plugins/avm": "x"}),
    3155: Files({"plugins/jvYyfQTxGMJLuGWa55kdP2p2zSUYsQ5Raupu4TW34ZAUBAbtq": "x"}),
    3522: alias("admin", "adm"),
    3557: alias("info", ".dot"),
    3583: chain_alias("newx"),
    4368: Files({"plugins": ""}),
    4370: Files({"plugins/subnetevm": "x"}),
    4531: Files({}, gone=("profiles",)),
    4532: Files({"profiles": "a file"}, gone=("profiles",)),
    4536: Files({"profiles": "", "profiles/mem.profile": ""}, gone=("profiles",)),
}


# -- the nodes that were recorded, and how each was started -------------------------------------------------------


class Life(NamedTuple):
    """In settings and environment `{directory}` is the test's own, and `{more}` a percentage above the free disk."""

    parts: tuple[str, ...]
    settings: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


WARNING = "--system-tracker-disk-warning-available-space-percentage={more}"
WARNING_MAX = 50
NODES: dict[str, tuple[Life, ...]] = {
    "n1": (
        Life(("poll_boot", "http", "jsonrpc", "admin", "health_info")),
        Life(
            ("restart_tz",),
            ("--log-level=debug", "--log-display-level=warn", "--profile-dir=$FOO/prof"),
            (("TZ", "America/New_York"), ("FOO", "{directory}/foo")),
        ),
        Life(("addr_cb58", "fserr", "verify", "proposervm", "verify2")),
    ),
    "n2": (Life(("clean",)),),
    "fail_disk": (Life(("fail_disk",), (WARNING,)),),
    "fail_sybil": (Life(("fail_sybil",)),),
    "pair": (Life(("pair", "catchup")),),
    "hosts0": (Life(("hosts0",), ("--http-allowed-hosts=a.com,B.com",)),),
    "hosts1": (Life(("hosts1",), ("--http-allowed-hosts=*",)),),
    "hosts2": (Life(("hosts2",), ("--http-allowed-hosts=",)),),
    "hosts3": (Life(("hosts3",), ("--http-allowed-origins=https://*.a.com,http://b.com",)),),
    "hosts4": (Life(("hosts4",), ("--http-host=0.0.0.0",)),),
    "hosts5": (Life(("hosts5",), ("--http-host=",)),),
    "misc_partial": (Life(("misc_partial",)),),
    "misc_aliases": (Life(("misc_aliases",), ("--tx-fee=12345", "--create-asset-tx-fee=678")),),
    "misc_tls": (Life(("misc_tls",)),),
}
SHUTDOWNS = {"shutdown_5s": 2, "shutdown_0s": 0}  # seconds waited here


def replay(server: Server, parts: tuple[str, ...]) -> list[str]:
    """Everything that was not foreseen, in words."""
    surprises = []
    with server.wire() as wire:
        for row in rows():
            if row.part not in parts or later(row) or unanswered(row):
                continue
            if row.n in BEFORE:
                BEFORE[row.n](server)
            surprises += judged(row, difference(row, send(row, wire), server.data_dir))
    return surprises


def judged(row: Row, found: str) -> list[str]:
    where = f"row {row.n} ({row.note[:60]})"
    if found and not deviation(row):
        return [f"{where}: {found}"]
    if not found and deviation(row):
        return [f"{where} equals the recording: it is no deviation any more ({deviation(row)})"]
    return []


# What changes or reads what a node stores (aliases, levels of loggers, chains), also after a restart. Other parts are
# about HTTP, JSON and settings, whatever the store.
STORED_PARTS = ("poll_boot", "admin", "restart_tz", "addr_cb58", "verify", "verify2", "clean")


def storing(lives: Sequence[Life]) -> list[Life]:
    parts = [life._replace(parts=tuple(part for part in life.parts if part in STORED_PARTS)) for life in lives]
    return [life for life in parts if life.parts]


@pytest.mark.parametrize("node", NODES)
def test_a_node_answers_as_recorded(node: str) -> None:
    is_warned = any(WARNING in life.settings for life in NODES[node])
    with TemporaryDirectory(dir="/var/tmp" if is_warned else None) as folder:  # a disk: of memory most may be free
        check_answers(NODES[node], "sqlite", Path(folder))


@pytest.mark.parametrize("node", [node for node, lives in NODES.items() if storing(lives)])
def test_a_node_on_postgres_answers_as_recorded(node: str, tmp_path: Path) -> None:
    check_answers(storing(NODES[node]), "postgres", tmp_path)


def check_answers(lives: Sequence[Life], store: str, tmp_path: Path) -> None:
    usage = os.statvfs(tmp_path)
    known = {"directory": str(tmp_path), "more": str(100 * usage.f_bavail // usage.f_blocks + 1)}
    surprises = []
    for life in lives:
        if WARNING in life.settings and int(known["more"]) > WARNING_MAX:
            pytest.skip("the disk is too empty to be warned of")
        settings = [text.format(**known) for text in life.settings]
        environment = {name: text.format(**known) for name, text in life.environment}
        with serving("node", tmp_path, *LIVE, *settings, environment=environment, store=store) as server:
            surprises += replay(server, life.parts)
    assert not surprises, "\n".join(surprises)


@pytest.mark.parametrize("part", SHUTDOWNS)
def test_a_node_that_stops_answers_as_recorded(part: str, tmp_path: Path) -> None:
    """Healthy up to the signal; then unhealthy but answering for the configured time; then gone."""
    shown = [row for row in rows() if row.part == part and not later(row)]
    before = [row for row in shown if row.n <= 3925]
    gone = [row for row in shown if unanswered(row)]
    draining = [row for row in shown if row not in before and row not in gone]
    surprises = []
    times = (f"--http-shutdown-wait={SHUTDOWNS[part]}s", "--http-shutdown-timeout=5s", "--health-check-frequency=1s")
    with serving("node", tmp_path, *LIVE, *times) as server, server.wire() as wire:
        for row in before:
            surprises += judged(row, difference(row, send(row, wire), server.data_dir))
        server.process.send_signal(signal.SIGTERM)
        if draining:
            while b"server shutting down" not in server.ask("GET", "/ext/health").body:
                pass
        for row in draining:
            surprises += judged(row, difference(row, send(row, wire), server.data_dir))
        server.stop()
        for _ in gone:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(wire.address)
    assert not surprises, "\n".join(surprises)


def test_every_recorded_row_is_accounted_for(capsys: pytest.CaptureFixture[str]) -> None:
    replayed = {part for lives in NODES.values() for life in lives for part in life.parts} | set(SHUTDOWNS)
    assert {row.part for row in rows()} == replayed
    sent = [row for row in rows() if not later(row) and not unanswered(row)]
    reasons = Counter(deviation(row) for row in sent)
    equal = reasons.pop("")
    waiting = Counter(_chain_path(row) for row in rows() if later(row))
    with capsys.disabled():
        print(f"\nrecorded rows: {len(rows())}; replayed {len(sent)}: equal {equal}, deviating {reasons.total()}")
        for reason, count in reasons.most_common():
            print(f"  {count:4} {reason}")
        silent = sum(1 for row in rows() if unanswered(row) and not later(row))
        print(f"the node did not listen: {silent}; later, with the chains: {waiting.total()} ({dict(waiting)})")
    assert equal > 900
    assert set(reasons) == {one.reason for one in DEVIATIONS}


def _chain_path(row: Row) -> str:
    return "/".join(row.request.path.split("?")[0].split("/")[:3])


def test_deviations_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "deviations.md").read_text()
    for one in DEVIATIONS:
        assert one.reason in text, one.reason
