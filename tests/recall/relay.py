"""A relay between a client and a server that keeps every byte the client sent."""

import socket
import threading
from types import TracebackType

CHUNK_BYTES = 65_536


class Relay:
    """Listens on a port of its own and passes everything on to ``port``; ``sent`` is what clients said."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._lock = threading.Lock()
        self._sent = bytearray()
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where to connect to."""
        return int(self._listener.getsockname()[1])

    @property
    def sent(self) -> bytes:
        """Every byte that clients sent so far."""
        with self._lock:
            return bytes(self._sent)

    def forget(self) -> None:
        """Begin anew."""
        with self._lock:
            self._sent.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            self._sockets += [client, server]
            self.connections += 1
            threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, keep: bool) -> None:
        try:
            while data := source.recv(CHUNK_BYTES):
                if keep:
                    with self._lock:
                        self._sent += data
                sink.sendall(data)
        except OSError:
            return

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for one in self._sockets:
            one.close()
