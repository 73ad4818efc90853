"""What the supervisor decides before it starts a process: addresses, ports, and the text it prints."""

import errno
import os
import signal
import socket
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.ports import held_port, port_of
from tests.waiting import until

from icefall.compose.child import ENGINE, INDEXER, ChildArguments
from icefall.compose.stores import stores_of
from icefall.config.load import load
from icefall.config.settings import Config
from icefall.db.sqlite import SqliteStore
from icefall.errors import StartRefused
from icefall.processes import start
from icefall.processes.forked import Child
from icefall.processes.listening import Address, listen, open_sockets
from icefall.processes.supervisor import Supervisor


def config_of(directory: Path, verb: str, *arguments: str) -> Config:
    ports = [f"--{name}-port=0" for name in ("http", "data", "metrics")]
    return load(verb, [f"--data-dir={directory}", *ports, *arguments], {}, directory).config


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9650"),
        ("0.0.0.0", "http://127.0.0.1:9650"),
        ("", "http://127.0.0.1:9650"),
        ("::", "http://[::1]:9650"),
        ("::1", "http://[::1]:9650"),
        ("[::1]", "http://[::1]:9650"),
        ("node.example", "http://node.example:9650"),
    ],
)
def test_the_url_of_an_address(host: str, url: str) -> None:
    assert Address(host, 9650).url == url


def test_an_open_port_stays_ours() -> None:
    opened = listen("data", Address("127.0.0.1", 0))
    with opened.socket:
        assert opened.address.port > 0
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(opened.address)


def test_a_port_in_use_is_refused_with_the_setting_to_change() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartRefused, match=rf"cannot listen on 127\.0\.0\.1:{port} .* use another --http-port"):
            listen("node", Address("127.0.0.1", port))


def test_all_ports_in_use_are_named_at_once_and_the_others_are_free_again(tmp_path: Path) -> None:
    here = "127.0.0.1", 0
    with socket.create_server(here) as one, socket.create_server(here) as other, held_port() as free:
        taken, too = port_of(one), port_of(other)
        flags = f"--http-port={taken}", f"--data-port={free}", f"--metrics-port={too}"
        with pytest.raises(StartRefused) as refused:
            open_sockets("up", config_of(tmp_path, "up", *flags))
        assert [f"127.0.0.1:{port} " in str(refused.value) for port in (taken, free, too)] == [True, False, True]
        assert str(refused.value).endswith("use another --metrics-port")
        listen("data", Address("127.0.0.1", free)).socket.close()


@pytest.mark.parametrize("has_file", [True, False])
def test_the_start_says_which_settings_file_was_read(tmp_path: Path, has_file: bool) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("http-workers = 1\n")
    config = config_of(tmp_path, "up", *([f"--config-file={file}"] if has_file else []))
    with closing(stores_of(config)) as stores:
        text = start._start_text("up", config, stores, {}, demo=False)
    said = f"Settings from {file}" if has_file else "No settings file was read: icefall.toml is neither here nor in"
    assert text.splitlines()[1].startswith(said)


def test_every_listener_of_a_verb_gets_a_port_of_its_own(tmp_path: Path) -> None:
    config, sockets = open_sockets("up", config_of(tmp_path, "up"))
    for opened in sockets.values():
        opened.socket.close()
    assert list(sockets) == ["node", "data", "metrics"]
    assert [opened.address.port for opened in sockets.values()] == [
        config.http_port,
        config.data_port,
        config.metrics_port,
    ]
    assert 0 not in (config.http_port, config.data_port, config.metrics_port)


def test_the_demo_adds_its_chains_on_a_local_network_only(tmp_path: Path) -> None:
    config = config_of(tmp_path, "up", "--demo")
    with_demo, replay = start._with_demo(config)
    assert replay is not None
    replay.socket.close()
    assert {chain.id for chain in with_demo.chain} == {"43112", "3210042"}
    assert not with_demo.nft_metadata
    for other in ({"network_id": 5}, {"demo": False}, {"upstream": ("http://127.0.0.1:1",)}):
        assert start._with_demo(msgspec.structs.replace(config, **other))[1] is None


def test_the_page_cache_of_chains_is_a_setting(tmp_path: Path) -> None:
    for given, expected in ((), 64), (("--page-cache=16",), 16):
        stores = stores_of(config_of(tmp_path, "up", *given))
        with closing(stores.chain_store("7")) as store:
            assert isinstance(store, SqliteStore)
            assert store._writer.execute("pragma cache_size").fetchone() == (-1024 * expected,)


def test_the_start_text_shows_every_address_and_what_to_try(tmp_path: Path) -> None:
    config = config_of(tmp_path, "up", "--demo")
    addresses = {name: Address("127.0.0.1", 9650 + at) for at, name in enumerate(("node", "data", "metrics"))}
    plain = start._start_text("up", config, stores_of(config), addresses, demo=False)
    assert all(f"{address.url}/docs" in plain for address in addresses.values())
    assert "curl http://127.0.0.1:9650/ext/health" in plain
    assert "explorer http://127.0.0.1:9651/ " in plain
    without = msgspec.structs.replace(config, explorer=False)
    assert "explorer" not in start._start_text("up", without, stores_of(config), addresses, demo=False)
    assert "Ten calls to try" in start._start_text("up", config, stores_of(config), addresses, demo=True)
    assert "Ctrl-C" not in start._start_text("node", config, stores_of(config), addresses, demo=False)


def test_a_process_that_cannot_be_started_is_refused_at_first_and_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    config = config_of(tmp_path, "up")
    supervisor = Supervisor("up", config, lambda _: 0, [], reported.append)

    def no_fork() -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("icefall.processes.forked.os.fork", no_fork)
    with pytest.raises(StartRefused, match="the engine cannot be started: Resource temporarily unavailable"):
        supervisor.start(ENGINE)
    again = ChildArguments("node", "up", config, restarted=True)
    supervisor._due.append((0.0, again))
    supervisor._start_due()
    assert reported == ["the node cannot be started: Resource temporarily unavailable; trying again"]
    assert [arguments for _, arguments in supervisor._due] == [again]
    supervisor.stop()


def test_an_engine_that_is_killed_before_it_is_ready_is_reported(tmp_path: Path) -> None:
    def waits(_: ChildArguments) -> int:
        return len(os.read(0, 1))  # until the supervisor is gone

    supervisor = Supervisor("up", config_of(tmp_path, "up"), waits, [], print)
    os.kill(supervisor.start(ENGINE).pid, signal.SIGKILL)
    with pytest.raises(StartRefused, match=r"the engine ended before it was ready \(killed by SIGKILL\)"):
        supervisor.await_engine()
    supervisor.stop()


def test_processes_whose_parent_has_ended_are_reaped(tmp_path: Path) -> None:
    """As the first process of a container it becomes their parent. Here, in a process of its own: it reaps any."""
    config = config_of(tmp_path, "up")

    def supervise(_: ChildArguments) -> int:
        supervisor = Supervisor("up", config, lambda _: 5, [], print)
        orphan = os.posix_spawn("/bin/true", ["true"], {})
        own = supervisor.start(INDEXER)
        for pid in (orphan, own.pid):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        supervisor._wait(0.0)
        assert own.code == 5
        with pytest.raises(ChildProcessError):
            os.waitpid(orphan, 0)
        return 0

    supervising = Child(ChildArguments(INDEXER, "up", config), supervise, lambda: None)
    until(lambda: not supervising.is_alive(), "the end of the supervisor")
    assert supervising.code == 0
