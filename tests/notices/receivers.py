"""Real receivers of notices: an HTTP server and a mail server, with certificates of an authority of their own."""

import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USER, PASSWORD = "gate", "open sesame, 2026"
SECRET = "a secret of the webhook"


def certificate(folder: Path) -> Path:
    """Write a certificate for 127.0.0.1 and localhost with its key into one file, and return that."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "server.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return file


def context(pem: Path) -> ssl.SSLContext:
    """Return a server's context."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(pem)
    return made


@dataclass
class Hook:
    """An HTTP server: what it was sent, and what it answers (status, headers)."""

    port: int = 0
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answer: tuple[int, dict[str, str]] = (204, {})

    def url(self, path: str = "/hook", scheme: str = "http") -> str:
        """Return an address of it."""
        return f"{scheme}://127.0.0.1:{self.port}{path}"


@contextmanager
def hook(pem: Path | None = None, before: Callable[[], None] = lambda: None) -> Iterator[Hook]:
    """Serve a webhook's receiver; ``before`` is called before it answers."""
    told = Hook()

    class Handler(BaseHTTPRequestHandler):
        """Takes down what it is sent."""

        def do_POST(self) -> None:
            """Answer as was set."""
            told.got.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            before()
            status, headers = told.answer
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if pem is not None:
        server.socket = context(pem).wrap_socket(server.socket, server_side=True)
    told.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Post:
    """A mail server: the mails that it took, and recipients that it refuses."""

    port: int = 0
    mails: list[tuple[list[str], Message]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    logins: list[bool] = field(default_factory=list)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        """Take a recipient, or not."""
        if address in self.refused:
            return "550 no such person, and here is a secret of mine"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        """Take a mail."""
        self.mails.append((envelope.rcpt_tos, message_from_bytes(envelope.content, policy=default)))
        return "250 OK"

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        """Take the one user's password."""
        good = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        self.logins.append(good)
        return AuthResult(success=good, handled=False)


@contextmanager
def post(pem: Path | None = None, *, tls: bool = False, login: bool = False) -> Iterator[Post]:
    """Serve mail; with a certificate by STARTTLS, or (``tls``) encrypted from the first byte."""
    told = Post()
    options: dict[str, Any] = {"authenticator": told.authenticate, "auth_required": True} if login else {}
    if pem is not None and not tls:
        options |= {"tls_context": context(pem), "require_starttls": True}
    elif login:
        options["auth_require_tls"] = False
    wrapped = context(pem) if pem is not None and tls else None
    served = Controller(told, hostname="127.0.0.1", port=0, ssl_context=wrapped, ready_timeout=240, **options)
    _start(served)
    told.port = served.server.sockets[0].getsockname()[1]
    try:
        yield told
    finally:
        served.stop()


def _start(served: Controller) -> None:
    """Start a server on a free port: the library looks whether it answers at the port that was asked for."""
    look = served._trigger_server

    def at_its_port() -> None:
        served.port = served.server.sockets[0].getsockname()[1]
        look()

    served._trigger_server = at_its_port  # type: ignore[method-assign]
    served.start()
