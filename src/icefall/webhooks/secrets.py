"""The shared secrets of webhooks, which are stored encrypted, and the key of the installation that they are encrypted
with.

The key is a file of the data directory, or the one that a setting names: machines that share a server need the same. It
is created when the first secret is stored, and never if there are secrets already that another key has encrypted.
"""

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from icefall.db.engine import StoreError
from icefall.errors import Unavailable
from icefall.webhooks.registry import WebhookRegistry
from icefall.webhooks.signing import SECRET_SIZE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_NAME = "webhook.key"  # in the data directory
OVERLAP_S = 86400.0  # for which the secret before a rotation still signs
_KEY_SIZE, _NONCE_SIZE = 32, 12
_OPENED_MAX = 1_000  # decrypted secrets that are kept: every attempt needs one


def key_path(data_dir: Path, configured: str = "") -> Path:
    return Path(configured) if configured else data_dir / KEY_NAME


class WrongKey(StoreError):
    """The key of the installation is missing or another one."""


class SecretBox:
    """Encrypts and decrypts with the key in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has_key(self) -> bool:
        return self._path.exists()

    def create_key(self) -> None:
        """Create the file, for its owner alone. One that is there already stays."""
        made = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_hex(_KEY_SIZE).encode())
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(made, self._path)  # all of it or nothing, whatever kills this process or reads meanwhile
        except OSError as error:
            raise WrongKey(f"the key of webhooks cannot be created: {error.strerror}") from error
        finally:
            made.unlink(missing_ok=True)

    def seal(self, owner: str, value: bytes) -> bytes:
        nonce = secrets.token_bytes(_NONCE_SIZE)
        return nonce + self._cipher().encrypt(nonce, value, owner.encode())

    def open(self, owner: str, sealed: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - it takes long to import

        try:
            return bytes(self._cipher().decrypt(sealed[:_NONCE_SIZE], sealed[_NONCE_SIZE:], owner.encode()))
        except InvalidTag:
            raise WrongKey(f"{self._path} is not the key that the secrets of webhooks were encrypted with") from None

    def _cipher(self) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above

        try:
            key = bytes.fromhex(self._path.read_text().strip())
        except FileNotFoundError:
            raise WrongKey(
                f"the key of webhooks is missing: copy {self._path.name} from the machine that has it"
            ) from None
        except (OSError, ValueError) as error:
            raise WrongKey(f"{self._path} cannot be read as the key of webhooks") from error
        if len(key) != _KEY_SIZE:
            raise WrongKey(f"{self._path} does not hold a key of {_KEY_SIZE} bytes in hex")
        return AESGCM(key)


class WebhookSecrets:
    """The secrets of owners of webhooks."""

    def __init__(self, registry: WebhookRegistry, box: SecretBox, clock: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._box = box
        self._clock = clock
        self._opened: dict[tuple[str, bytes], bytes] = {}

    async def ensure(self, owner: str) -> None:
        """Make the first secret of an owner. If several calls do so at a time, the one that comes first stays: its
        caller may have read it already."""
        if not await self.valid(owner):
            await self._make(owner, replaces=False)

    async def rotate(self, owner: str) -> bytes:
        """Make a new secret. The one before signs for some time too."""
        return await self._make(owner, replaces=True)

    async def _make(self, owner: str, *, replaces: bool) -> bytes:
        if not self._box.has_key():
            if await self._registry.has_secrets():
                raise Unavailable("the key of webhooks is missing here: copy it from the machine that has it")
            self._box.create_key()
        value = secrets.token_bytes(SECRET_SIZE)
        now = self._clock()
        await self._registry.put_secret(owner, self._box.seal(owner, value), now, now + OVERLAP_S, replaces=replaces)
        return value

    async def valid(self, owner: str) -> list[bytes]:
        """The secrets to sign with, the newest first; none if none was made."""
        stored = await self._registry.secrets_of(owner)
        now = self._clock()
        return [self._open(owner, value) for _, value, expires in stored if expires is None or expires > now]

    def _open(self, owner: str, sealed: bytes) -> bytes:
        known = self._opened.get((owner, sealed))
        if known is None:
            known = self._box.open(owner, sealed)
            if len(self._opened) >= _OPENED_MAX:
                self._opened.clear()
            self._opened[owner, sealed] = known
        return known
