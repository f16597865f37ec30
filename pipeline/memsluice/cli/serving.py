"""How a command serves HTTP: where it listens, and that what it serves is encrypted on its way."""

import socket
from pathlib import Path

from memsluice.errors import ConfigError, InvalidArgument
from memsluice.escaping import visible

LOOPBACK = ("127.0.0.1", "::1", "localhost")
HOST_CHARS_MAX = 80
STOP_S = 8
"""How long requests in work may go on once a server is told to stop."""


def check_encrypted(host: str, certificate: Path | None, key: Path | None, *, plain: bool) -> None:
    """Raise InvalidArgument where memory and tokens would be served unencrypted to other machines."""
    if (certificate is None) != (key is None):
        raise InvalidArgument("--tls-certificate and --tls-key go together")
    if certificate is None and host not in LOOPBACK and not plain:
        raise InvalidArgument(
            f"on {visible(host, HOST_CHARS_MAX)} memory and tokens would go unencrypted: give --tls-certificate and "
            "--tls-key, or --plain where TLS ends in front of it"
        )


def ended(*_: object) -> None:
    """Do nothing: uvicorn, which stops at a SIGTERM in order, raises it once more when it has."""


def listen_on(what: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens; ``what`` does. Raises ConfigError."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        where = f"{visible(host, HOST_CHARS_MAX)}:{port}"
        raise ConfigError(f"{what} cannot listen on {where}: {error.strerror or error}") from None
