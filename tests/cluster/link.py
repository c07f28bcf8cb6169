"""A line to the cluster that can be slow, cut or dead: a relay on loopback, in a thread of its own."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any


class Link:
    """Relays TCP connections from `port` to another port of 127.0.0.1.

    `round_trip` is in seconds. `up` and `down` count the bytes that went to and came from the far side, `connections`
    those that were made.
    """

    def __init__(self, far_port: int, *, round_trip: float = 0.0) -> None:
        self.round_trip = round_trip
        self.up = self.down = self.connections = 0
        self._far_port = far_port
        self._whole = True
        self._frozen = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._relay, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def ssh_options(self) -> list[str]:
        """What sends ssh over this line; the far side's host key is known by its own port."""
        return ["-p", str(self.port), "-o", f"HostKeyAlias=[127.0.0.1]:{self._far_port}"]

    def cut(self) -> None:
        """Close every connection, and each new one, until it is mended."""
        self._whole = False
        self._do(self._close_all())

    def freeze(self) -> None:
        """Keep the connections, and let nothing through any more."""
        self._frozen = True

    def mend(self) -> None:
        """New connections are relayed again; those that were frozen are closed."""
        self._do(self._close_all())
        self._whole, self._frozen = True, False

    def close(self) -> None:
        self._server.close()
        self._do(self._close_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, what: Awaitable[Any]) -> Any:
        async def run() -> Any:
            return await what

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(timeout=10)

    async def _close_all(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()
        self._writers.clear()

    async def _relay(self, near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        self._writers.add(near_out)
        if not self._whole:
            near_out.transport.abort()
            return
        self.connections += 1
        far_in, far_out = await asyncio.open_connection("127.0.0.1", self._far_port)
        self._writers.add(far_out)
        await asyncio.gather(
            self._pump(near_in, far_out, self._count_up),
            self._pump(far_in, near_out, self._count_down),
            return_exceptions=True,
        )
        self._writers -= {near_out, far_out}

    def _count_up(self, size: int) -> None:
        self.up += size

    def _count_down(self, size: int) -> None:
        self.down += size

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, count: Callable[[int], None]
    ) -> None:
        """Bytes one way, each half a round trip late; what is under way does not hold up what comes after."""
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=4096)
        delivery = asyncio.create_task(self._deliver(waiting, sink))
        try:
            while chunk := await source.read(65536):
                if not self._frozen:
                    count(len(chunk))
                    await waiting.put((self._loop.time() + self.round_trip / 2, chunk))
        except OSError:
            pass  # reset by its end: the same as closed
        if self._frozen or sink.transport.is_closing():
            delivery.cancel()
        else:
            await waiting.put((0, b""))
            await delivery

    async def _deliver(self, waiting: "asyncio.Queue[tuple[float, bytes]]", sink: asyncio.StreamWriter) -> None:
        while True:
            due, chunk = await waiting.get()
            if not chunk:
                break
            await asyncio.sleep(due - self._loop.time())
            if not self._frozen:
                sink.write(chunk)
                await sink.drain()
        sink.close()
