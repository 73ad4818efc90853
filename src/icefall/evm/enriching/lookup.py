"""Names to addresses, on threads of our own: a name server that hangs must hold up nobody else, nor our end."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable

Lookup = Callable[[str], Awaitable[list[str]]]  # OSError where a name leads nowhere
_AT_ONCE = 8


class SystemLookup:
    """What the system's resolver says. At most so many questions are open; an abandoned one counts until it ends."""

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._slots = asyncio.Semaphore(at_once)

    async def __call__(self, host: str) -> list[str]:
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        told: asyncio.Future[list[str]] = loop.create_future()

        def tell(addresses: list[str] | OSError) -> None:
            self._slots.release()
            if told.done():
                return
            if isinstance(addresses, OSError):
                told.set_exception(addresses)
            else:
                told.set_result(addresses)

        def work() -> None:
            found = _ask(host)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(tell, found)

        threading.Thread(target=work, name="lookup", daemon=True).start()
        return await told


def _ask(host: str) -> list[str] | OSError:
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        return OSError(str(error))
    except OSError as error:
        return error
    return list(dict.fromkeys(str(row[4][0]) for row in rows))
