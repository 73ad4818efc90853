"""The key of an installation and the secrets that are encrypted with it."""

import asyncio
import multiprocessing
from pathlib import Path

import pytest
from tests.webhooks.scene import Scene

from icefall.errors import Unavailable
from icefall.webhooks.secrets import SecretBox, WebhookSecrets, WrongKey

PROCESSES = 4


def test_a_key_is_made_once_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    """Several processes make it at the same time, and all use the one that came first."""
    path = tmp_path / "sub" / "webhook.key"
    forks = multiprocessing.get_context("fork")
    made = [forks.Process(target=SecretBox(path).create_key, daemon=True) for _ in range(PROCESSES)]
    for process in made:
        process.start()
    for process in made:
        process.join()
    assert [process.exitcode for process in made] == [0] * PROCESSES
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["webhook.key"]
    sealed = SecretBox(path).seal("alice", b"s" * 32)
    assert SecretBox(path).open("alice", sealed) == b"s" * 32
    with pytest.raises(WrongKey):
        SecretBox(path).open("bob", sealed)


def test_a_process_killed_while_it_makes_the_key_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(fd: int) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "webhook.key"
    monkeypatch.setattr("os.fsync", die)
    with pytest.raises(KeyboardInterrupt):
        SecretBox(path).create_key()
    monkeypatch.undo()
    assert not SecretBox(path).has_key()
    SecretBox(path).create_key()
    assert SecretBox(path).open("", SecretBox(path).seal("", b"a")) == b"a"


@pytest.mark.parametrize("given", [b"", b"00" * 31, b"x" * 64, b"\xff\xfe", b"11" * 32, None], ids=repr)
def test_another_key_is_refused_with_the_reason(given: bytes | None, tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    path = tmp_path / "webhook.key"

    async def run() -> None:
        await scene.secrets.rotate("")
        if given is None:
            path.unlink()
        else:
            path.write_bytes(given)
        with pytest.raises(WrongKey, match=r"key"):
            await WebhookSecrets(scene.registry, SecretBox(path)).valid("")
        if given is None:
            with pytest.raises(Unavailable, match="copy it from the machine that has it"):
                await scene.secrets.rotate("alice")
            assert not path.exists(), "a new key would make the stored secrets useless"

    asyncio.run(run())
    scene.close()


def test_calls_that_make_the_first_secret_at_the_same_time_leave_one(tmp_path: Path) -> None:
    """Workers share the store: whoever has read the secret of its webhook must not find another one in its messages."""
    scene, seen = Scene(tmp_path), list[bytes]()
    first, late = scene.secrets, WebhookSecrets(scene.registry, SecretBox(tmp_path / "webhook.key"))
    look = scene.registry.secrets_of

    async def overtaken(owner: str) -> list[tuple[int, bytes, float | None]]:
        found = await look(owner)
        scene.registry.secrets_of = look  # type: ignore[method-assign]
        await first.ensure(owner)
        seen.extend(await first.valid(owner))
        return found

    async def run() -> None:
        scene.registry.secrets_of = overtaken  # type: ignore[method-assign]
        await late.ensure("alice")
        assert await first.valid("alice") == seen
        assert len(seen) == 1
        await late.ensure("alice")
        assert await first.valid("alice") == seen
        assert await late.rotate("alice") not in seen

    asyncio.run(run())
    scene.close()
