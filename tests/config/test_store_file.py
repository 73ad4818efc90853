"""--store-file: the URL of a store in a file, and what is said where that cannot be used."""

from pathlib import Path

import pytest

from icefall.config.docs import config_table
from icefall.config.load import load
from icefall.config.settings import Config
from icefall.config.values import ConfigError

URL = "postgresql://writer:SECRET@host/icefall"
SHAPE = "does not hold a URL of scheme postgresql or postgres"


def loaded(folder: Path, *arguments: str, verb: str = "up", environ: dict[str, str] | None = None) -> Config:
    return load(verb, arguments, {"HOME": str(folder), **(environ or {})}, folder).config


def refused(folder: Path, *arguments: str) -> str:
    with pytest.raises(ConfigError) as error:
        loaded(folder, *arguments)
    assert "SECRET" not in str(error.value)
    return str(error.value)


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    path.write_text(f"{URL}\n")
    return path


def test_it_is_read_like_the_setting(store_file: Path, tmp_path: Path) -> None:
    assert loaded(tmp_path, f"--store-file={store_file}").store == URL
    assert loaded(tmp_path, environ={"ICEFALL_STORE_FILE": "store"}).store == URL
    (tmp_path / "icefall.toml").write_text('store-file = "store"\n')
    assert loaded(tmp_path).store == URL
    assert loaded(tmp_path, "--store-file=", "--store=postgresql://other/db").store == "postgresql://other/db"


def test_the_password_is_not_shown(store_file: Path, tmp_path: Path) -> None:
    table = config_table(load("config", [f"--store-file={store_file}"], {"HOME": "/"}, tmp_path))
    assert "SECRET" not in table
    (line,) = (line for line in table.splitlines() if line.startswith("store "))
    assert line.split() == ["store", "postgresql://writer:***@host/icefall", str(store_file)]


def test_both_together_are_refused(store_file: Path, tmp_path: Path) -> None:
    both = (f"--store-file={store_file}", "--store=postgresql://other/db")
    assert refused(tmp_path, *both) == "--store and --store-file exclude each other"


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"SECRET", b"http://SECRET/", URL.encode() + b"\nSECRET", b"\xffSECRET"]
)
def test_a_file_that_holds_no_url_is_refused_without_its_content(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(content)
    said = refused(tmp_path, "--store-file=store")
    assert said.startswith(f"--store-file names {tmp_path / 'store'}, which {SHAPE}")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path, "--store-file=none")
    assert said == f"--store-file names {tmp_path / 'none'}, which cannot be read: No such file or directory"
    assert refused(tmp_path, "--store-file=.").endswith("cannot be read: Is a directory")


def test_a_chain_may_have_one_of_its_own(store_file: Path, tmp_path: Path) -> None:
    chain = '[[chain]]\nid = "7"\nrpc = "http://a"\n'
    (tmp_path / "icefall.toml").write_text(f'{chain}store_file = "store"\n' + chain.replace('"7"', '"8"'))
    config = loaded(tmp_path)
    assert [one.store for one in config.chain] == [URL, ""]
    (tmp_path / "icefall.toml").write_text(f'{chain}store_file = "store"\nstore = "postgresql://other/db"\n')
    assert refused(tmp_path) == "chain 7: store and store_file exclude each other"


def test_a_verb_that_takes_no_store_reads_no_file(tmp_path: Path) -> None:
    assert loaded(tmp_path, verb="copy", environ={"ICEFALL_STORE_FILE": "none"}).store == ""
