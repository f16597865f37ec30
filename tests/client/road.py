"""A road to the real broker that can be cut, closed for a while, or made slow, for one client and nobody else."""

import socket
import struct
import threading
import time
from contextlib import suppress
from typing import Any, Self

LOOPBACK = "127.0.0.1"
HEADER = struct.Struct(">i")


class Road:
    """A TCP relay. In the broker's answers its port takes the place of theirs, so that all traffic stays on it."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.split(":")
        self._broker = (host, int(port))
        self._way = threading.Event()
        self._way.set()
        self._lock = threading.Lock()
        self.delay_s = 0.0
        """How long a request waits before it goes on to the broker."""
        self._sockets: list[socket.socket] = []
        self._listener = self._bound(0)
        self._port = int(self._listener.getsockname()[1])
        self._listen()
        self._theirs = host.encode() + HEADER.pack(int(port))
        self._ours = host.encode() + HEADER.pack(self._port)

    def of(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return a client's settings that lead over this road."""
        return {**settings, "bootstrap.servers": f"{LOOPBACK}:{self._port}", "reconnect.backoff.max.ms": 200}

    def close_for_now(self) -> None:
        """Let nothing pass; connections stay."""
        self._way.clear()

    def let_pass(self) -> None:
        """Let everything pass again, what waited first."""
        self._way.set()

    def cut(self) -> None:
        """End all connections and refuse new ones. The port stays ours: nobody else listens there meanwhile."""
        with self._lock:
            self._end()
            self._listener = self._bound(self._port)

    def mend(self) -> None:
        """Take connections again, on the same port."""
        self._listen()

    @staticmethod
    def _bound(port: int) -> socket.socket:
        """Return a socket that has the port, and refuses connections until it listens."""
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((LOOPBACK, port))
        return made

    def _listen(self) -> None:
        self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _end(self) -> None:
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._sockets.clear()
        self._way.set()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # cut
                return
            try:
                broker = socket.create_connection(self._broker)
            except OSError:  # the broker itself takes no connection now: the client tries again
                client.close()
                continue
            with self._lock:  # a road that was cut meanwhile lets nothing pass that came before
                if listener is not self._listener:
                    client.close()
                    broker.close()
                    return
                self._sockets += [client, broker]
            threading.Thread(target=self._relay, args=(client, broker, True), daemon=True).start()
            threading.Thread(target=self._relay, args=(broker, client, False), daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, to_broker: bool) -> None:
        try:
            while True:
                size = _exactly(source, HEADER.size)
                frame = _exactly(source, *HEADER.unpack(size))
                if to_broker:
                    time.sleep(self.delay_s)
                self._way.wait()
                target.sendall(size + (frame if to_broker else frame.replace(self._theirs, self._ours)))
        except OSError:
            for one in (source, target):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._end()


def _exactly(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = source.recv(size - len(found))
        if not part:
            raise OSError("the other side has gone")
        found += part
    return found
