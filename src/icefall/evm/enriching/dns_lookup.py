"""Host names to addresses, on separate threads: a name server that hangs must not block other work or the shutdown."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable

Lookup = Callable[[str], Awaitable[list[str]]]  # raises OSError where a name does not resolve
_AT_ONCE = 8


class SystemLookup:
    """The system's resolver, with at most `at_once` queries open; an abandoned query counts until it ends."""

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._slots = asyncio.Semaphore(at_once)

    async def __call__(self, host: str) -> list[str]:
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        resolved: asyncio.Future[list[str]] = loop.create_future()

        def finish(addresses: list[str] | OSError) -> None:
            self._slots.release()
            if resolved.done():
                return
            if isinstance(addresses, OSError):
                resolved.set_exception(addresses)
            else:
                resolved.set_result(addresses)

        def work() -> None:
            found = _resolve(host)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(finish, found)

        threading.Thread(target=work, name="lookup", daemon=True).start()
        return await resolved


def _resolve(host: str) -> list[str] | OSError:
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        return OSError(str(error))
    except OSError as error:
        return error
    return list(dict.fromkeys(str(row[4][0]) for row in rows))
