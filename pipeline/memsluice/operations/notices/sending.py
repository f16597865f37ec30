"""How a notice leaves: as a signed HTTP POST, or as an e-mail. Whatever a receiver does, it ends within SEND_S_MAX.

The address is the operator's own setting, and may lie in the operator's own network. No redirect is followed, so that
nobody else chooses where a notice goes, and nothing that a receiver answers is shown but a number.
"""

import hmac
import http.client
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import orjson

from memsluice.deployment.paths import using
from memsluice.errors import ConfigError, NotSent
from memsluice.operations.notices.judging import Notice
from memsluice.operations.notices.settings import SECRET_BYTES_MIN, Mail, NoticeSettings, Webhook

STEP_S_MAX = 10.0
"""How long a receiver may take for each step: to accept the connection, to answer."""
SEND_S_MAX = 30.0
"""How long one sending may take in all; then the connection is cut."""
SIGNATURE, NOTICE_ID = "Memsluice-Signature", "Memsluice-Notice"
TAKEN = range(200, 300)


class Channel(Protocol):
    """Somebody who is told."""

    @property
    def name(self) -> str:
        """What it is called in the journal and in logs."""

    @property
    def kind(self) -> str:
        """``webhook`` or ``mail``, for a metric."""

    def send(self, notice: Notice, now_ms: int) -> None:
        """Send a notice, and return once the receiver took it. Raises NotSent."""


def channels(settings: NoticeSettings) -> list[Channel]:
    """Return everybody who is told. Raises ConfigError for a secret that cannot be read."""
    found: list[Channel] = []
    if settings.webhook is not None:
        found.append(WebhookChannel(settings.webhook, settings.console))
    if settings.mail is not None:
        found += [MailChannel(settings.mail, to, settings.console) for to in settings.mail.to]
    return found


def signature(secret: bytes, at_s: int, body: bytes) -> str:
    """Return the header by which a receiver verifies a notice: when it was signed (Unix s), and the HMAC-SHA-256 of
    that, a full stop and the body under the shared secret."""
    mac = hmac.new(secret, f"{at_s}.".encode() + body, sha256).hexdigest()
    return f"t={at_s},v1={mac}"


class WebhookChannel:
    """Posts JSON to one address."""

    kind = "webhook"

    def __init__(self, webhook: Webhook, console: str) -> None:
        self.name = f"webhook {webhook.host}"
        self._webhook, self._console = webhook, console
        self._secret = webhook.secret.read().get_secret_value().encode()
        if len(self._secret) < SECRET_BYTES_MIN:
            raise ConfigError(f"webhook.secret: is shorter than {SECRET_BYTES_MIN} bytes, so it could be guessed")
        self._trusted = _trusted(webhook.ca_file)

    def send(self, notice: Notice, now_ms: int) -> None:
        """Post it. Raises NotSent."""
        parts, body = urlsplit(self._webhook.url), orjson.dumps(notice.as_data(self._console, now_ms))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "memsluice-notices/1",
            NOTICE_ID: notice.id,
            SIGNATURE: signature(self._secret, now_ms // 1_000, body),
            "Connection": "close",
        }
        made: http.client.HTTPConnection
        if parts.scheme == "https":
            trusted = self._trusted
            made = http.client.HTTPSConnection(self._webhook.host, parts.port, timeout=STEP_S_MAX, context=trusted)
        else:
            made = http.client.HTTPConnection(self._webhook.host, parts.port, timeout=STEP_S_MAX)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            with _cut_off(lambda: made.sock):
                made.request("POST", path, body, headers)
                status = made.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise NotSent(f"{self.name}: {_why(error)}") from None
        finally:
            made.close()
        if status not in TAKEN:
            redirected = ": redirects are not followed, so name the address itself" if 300 <= status < 400 else ""
            raise NotSent(f"{self.name} answered {status}{redirected}")


class MailChannel:
    """Writes to one recipient."""

    kind = "mail"

    def __init__(self, mail: Mail, to: str, console: str) -> None:
        self.name = f"mail {to}"
        self._mail, self._to, self._console = mail, to, console
        self._password = None if mail.password is None else mail.password.read()
        self._trusted = _trusted(mail.ca_file)

    def send(self, notice: Notice, now_ms: int) -> None:
        """Hand it to the mail server. Raises NotSent."""
        server = smtplib.SMTP(timeout=STEP_S_MAX)
        if self._mail.tls == "tls":
            server = smtplib.SMTP_SSL(timeout=STEP_S_MAX, context=self._trusted)
        server._host = self._mail.host  # type: ignore[attr-defined]  # as its constructor would; that waits, uncut
        try:
            with _cut_off(lambda: server.sock):
                self._hand_over(server, self._message(notice, now_ms))
        except (OSError, smtplib.SMTPException) as error:
            raise NotSent(f"{self.name}, by {self._mail.host}: {_why(error)}") from None
        finally:
            with suppress(OSError, smtplib.SMTPException):
                server.close()

    def _hand_over(self, server: smtplib.SMTP, message: EmailMessage) -> None:
        server.connect(self._mail.host, self._mail.port)
        if self._mail.tls == "starttls":
            server.starttls(context=self._trusted)  # fails where the server offers none: nothing goes in the clear
        if self._mail.user is not None and self._password is not None:
            server.login(self._mail.user, self._password.get_secret_value())
        server.send_message(message, self._mail.sender, [self._to])
        with suppress(smtplib.SMTPException):  # it was taken
            server.quit()

    def _message(self, notice: Notice, now_ms: int) -> EmailMessage:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._mail.sender, self._to, notice.title
        message["Date"] = format_datetime(datetime.fromtimestamp(now_ms / 1_000, UTC))
        message["Message-ID"] = f"<{notice.id}.{sha256(self._to.encode()).hexdigest()[:8]}@memsluice.notices>"
        message["Auto-Submitted"] = "auto-generated"
        link = f"{self._console}{notice.path}"
        message.set_content(f"{notice.text}\n\n{link}\n\nNotice {notice.id}. It has no content: the page shows it.\n")
        return message


def _trusted(ca_file: Path | None) -> ssl.SSLContext:
    """Return a context that verifies a receiver's certificate and name. Raises ConfigError."""
    if ca_file is None:
        return ssl.create_default_context()
    with using(ca_file):
        ca_file.open("rb").close()
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except ssl.SSLError:
        raise ConfigError(f"{ca_file} is no PEM file of certificates") from None


@contextmanager
def _cut_off(connection: Callable[[], socket.socket | None]) -> Iterator[None]:
    """Cut a connection once SEND_S_MAX are over: a receiver that answers a byte at a time keeps nobody."""

    def cut() -> None:
        made = connection()
        if made is not None:
            with suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(SEND_S_MAX, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _why(error: Exception) -> str:
    """Return why a sending failed, in words that have none of the receiver's."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return "the mail server does not take the user and password"
        case smtplib.SMTPNotSupportedError():
            return "the mail server offers no STARTTLS, or no login: nothing is sent in the clear"
        case smtplib.SMTPRecipientsRefused():
            return "the mail server does not take this recipient"
        case smtplib.SMTPResponseException():
            return f"the mail server answered {error.smtp_code}"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({error.verify_message}); ca_file names another authority"
        case TimeoutError():
            return f"no answer within {STEP_S_MAX:.0f} s"
        case OSError() if error.strerror:
            return error.strerror.lower()
    return f"the connection failed ({type(error).__name__})"
