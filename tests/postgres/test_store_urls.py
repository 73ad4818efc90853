"""What --store may be: a server and those that take its place, and what is said where it cannot be used."""

from contextlib import closing
from pathlib import Path

import pytest
from tests.ports import hold_port, port_of
from tests.postgres.server import new_prefix, server_url

from icefall.compose.stores import stores_of
from icefall.compose.worker import urgently
from icefall.config.load import load
from icefall.db.engine import StoreError, urgent_queries
from icefall.db.postgres_session import shown_url
from icefall.errors import StartRefused


def test_the_first_of_several_hosts_that_is_a_primary(tmp_path: Path) -> None:
    with closing(hold_port()) as held:  # nothing listens there
        url = server_url().replace("@", f":word@127.0.0.1:{port_of(held)},") + "?target_session_attrs=read-write"
        setting, prefix = [f"--store={url}"], f"--store-prefix={new_prefix()}"
        config = load("index", [*setting, prefix, f"--data-dir={tmp_path}"], {}, tmp_path).config
        with closing(stores_of(config)) as stores:
            stores.access_writer().ensure()
            first = stores.chain_store("7")
            with pytest.raises(StoreError, match=rf"of 127.0.0.1:{port_of(held)},127.0.0.1:\d+/postgres is in use"):
                stores.chain_store("7")
            first.close()


def test_shown_without_credentials() -> None:
    assert shown_url("postgresql://u:p%40w@a:1,[::1]:2/db?password=x") == "a:1,[::1]:2/db"
    assert shown_url("postgresql:///db?host=/run") == "the local server/db"


@pytest.mark.parametrize("password", ["pa/SECRET", "p#SECRET", "p?SECRET", "p%SECRET", "p@h:0/SECRET"])
def test_a_refused_url_does_not_show_its_password(tmp_path: Path, password: str) -> None:
    with pytest.raises(StartRefused) as refused:
        load("index", [f"--store=postgresql://u:{password}@h/db", f"--data-dir={tmp_path}"], {}, tmp_path)
    assert "SECRET" not in str(refused.value)
    assert "--store must be a URL of scheme postgresql" in str(refused.value)


def test_a_standby_is_named_as_the_reason(tmp_path: Path) -> None:
    url = f"{server_url()}?options=-c%20default_transaction_read_only%3Don"
    config = load("index", [f"--store={url}", f"--data-dir={tmp_path}"], {}, tmp_path).config
    with closing(stores_of(config)) as stores, pytest.raises(StoreError, match="only reads, as a standby does"):
        stores.chain_store("7")


def test_a_replica_without_its_primary_is_refused(tmp_path: Path) -> None:
    config = load("data", [f"--data-dir={tmp_path}", "--replica=postgresql://standby/x"], {}, tmp_path).config
    with pytest.raises(StartRefused, match="name that too"):
        stores_of(config)


CHAIN = '[[chain]]\nid = "7"\nrpc = "http://127.0.0.1:1"\n'


@pytest.mark.parametrize(
    ("store", "chain", "expected"),
    [
        ("", CHAIN, None),
        ("postgresql://u@h/db", CHAIN, urgent_queries),
        ("", f'{CHAIN}store = "postgresql://u@h/db"\n', urgent_queries),
    ],
)
def test_urgent_requests_are_marked_where_a_store_is_on_a_server(
    tmp_path: Path, store: str, chain: str, expected: type[urgent_queries] | None
) -> None:
    """Only servers give marked queries a session of their own; elsewhere the mark would cost every health check."""
    (tmp_path / "icefall.toml").write_text(chain)
    config = load("index", [f"--store={store}", f"--data-dir={tmp_path}"], {}, tmp_path).config
    assert urgently(config) is expected
