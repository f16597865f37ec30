"""A request whose body never comes."""

import socket
from urllib.parse import urlsplit

from tests.patience import HANG_S


def status_of(url: str, path: str, token: str = "") -> int:
    """Return the status that a service answers to a request, of which it gets the headers alone."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=HANG_S) as client:
        client.sendall(
            f"POST {path} HTTP/1.1\r\nhost: {where.netloc}\r\ncontent-type: application/json\r\n"
            f"content-length: 60000\r\nauthorization: Bearer {token or 'x.y.z'}\r\n\r\n".encode()
        )
        return int(client.makefile("rb").readline().split()[1])
