"""A working directory with a home in it, and the loader bound to both."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from icefall.config.load import Loaded, load
from icefall.config.values import ConfigError

Load = Callable[..., Loaded]
Refusal = Callable[..., str]


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    return tmp_path / "work"


@pytest.fixture
def loaded(cwd: Path) -> Load:
    """`loaded("--http-port=1", verb=..., environ=..., toml=...)`"""

    def call(*argv: str, verb: str = "node", environ: Mapping[str, str] | None = None, toml: str = "") -> Loaded:
        if toml:
            (cwd / "icefall.toml").write_text(toml)
        words: Sequence[str] = argv
        return load(verb, words, {"HOME": str(cwd.parent / "home"), **(environ or {})}, cwd)

    return call


@pytest.fixture
def refusal(loaded: Load) -> Refusal:
    """The message of the ConfigError that the loader raises."""

    def call(*argv: str, **where: object) -> str:
        with pytest.raises(ConfigError) as caught:
            loaded(*argv, **where)
        return str(caught.value)

    return call
