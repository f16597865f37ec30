"""Notices on their way to real receivers: encrypted, signed, cut off in time, and no further than that."""

import hmac
import json
import socket
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.notices.receivers import PASSWORD, SECRET, USER, certificate, hook, post

from memsluice.errors import ConfigError, NotSent
from memsluice.operations.notices import sending
from memsluice.operations.notices.judging import trial
from memsluice.operations.notices.sending import NOTICE_ID, SIGNATURE, Channel, channels
from memsluice.operations.notices.settings import NoticeSettings

NOW = 1_800_000_000_000
NOTICE = trial(NOW)


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's certificate and key."""
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment holds."""
    monkeypatch.setenv("HOOK", SECRET)
    monkeypatch.setenv("MAIL", PASSWORD)


def webhook(url: str, ca_file: Path | None = None) -> Channel:
    """Return the channel of a webhook."""
    told: dict[str, Any] = {"url": url, "secret": {"environment": "HOOK"}, "ca_file": ca_file}
    (made,) = channels(NoticeSettings.model_validate({"console": "https://desk.example.org", "webhook": told}))
    return made


def mail(port: int, **more: Any) -> Channel:
    """Return the channel of one recipient."""
    told = {"host": "127.0.0.1", "port": port, "from": "gate@example.org", "to": ["ana@example.org"], **more}
    return channels(NoticeSettings.model_validate({"mail": told}))[0]


def test_a_receiver_can_verify_who_sent_a_notice_and_when(pem: Path) -> None:
    """The signature is over the time and the bytes as they were sent, under the shared secret alone."""
    with hook(pem) as told:
        webhook(told.url("/a/b?c=d", "https"), pem).send(NOTICE, NOW)
    ((path, headers, body),) = told.got
    at, mac = (part.partition("=")[2] for part in headers[SIGNATURE].split(","))
    assert hmac.compare_digest(hmac.new(SECRET.encode(), f"{at}.".encode() + body, sha256).hexdigest(), mac)
    assert (path, headers[NOTICE_ID], at) == ("/a/b?c=d", NOTICE.id, str(NOW // 1_000))
    assert json.loads(body)["link"] == "https://desk.example.org/held"


def test_no_redirect_is_followed() -> None:
    """Whoever answers with another address does not choose where the notice goes; the operator is told."""
    with hook() as there, hook() as here:
        here.answer = (307, {"Location": there.url()})
        with pytest.raises(NotSent, match="answered 307: redirects are not followed"):
            webhook(here.url()).send(NOTICE, NOW)
        assert (len(here.got), there.got) == (1, [])


def test_a_receiver_with_a_certificate_that_nobody_vouches_for_is_told_nothing(pem: Path) -> None:
    """Without its authority in ca_file the connection ends before a byte of the notice was sent."""
    with hook(pem) as told:
        with pytest.raises(NotSent, match="its certificate is not trusted"):
            webhook(told.url(scheme="https")).send(NOTICE, NOW)
        assert told.got == []


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_what_a_receiver_refuses_is_not_sent(status: int) -> None:
    """The number is said, and nothing else that it answered; nor the path, which may be a secret."""
    with hook() as told:
        told.answer = (status, {"X-Why": "a word of theirs"})
        with pytest.raises(NotSent) as error:
            webhook(told.url("/secret-path")).send(NOTICE, NOW)
    assert str(error.value) == f"webhook 127.0.0.1 answered {status}"


@pytest.mark.parametrize("kind", ["webhook", "mail", "tls"])
def test_a_receiver_that_answers_a_byte_at_a_time_is_cut_off(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time and the answer never: the sending ends all the same."""
    monkeypatch.setattr(sending, "SEND_S_MAX", 2.0)
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            with server.accept()[0] as one:
                try:
                    while not stop.wait(0.02):
                        one.sendall(b"H" if kind != "tls" else b"\x16")
                except OSError:
                    return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        made = webhook(f"http://127.0.0.1:{port}/") if kind == "webhook" else mail(
            port, tls="none" if kind == "mail" else "tls"
        )  # fmt: skip
        with pytest.raises(NotSent):
            made.send(NOTICE, NOW)
        stop.set()
        thread.join()


def test_a_mail_says_what_and_where_and_has_an_id_of_its_own(pem: Path) -> None:
    """Over STARTTLS, with a login: title, text and link; marked as sent by a machine."""
    with post(pem, login=True) as told:
        mail(told.port, user=USER, password={"environment": "MAIL"}, ca_file=pem).send(NOTICE, NOW)
    ((to, message),) = told.mails
    assert (to, message["Subject"], told.logins) == (["ana@example.org"], NOTICE.title, [True])
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"].startswith(f"<{NOTICE.id}.")
    assert "http://127.0.0.1:8714/held" in message.get_payload()


def test_mail_that_is_encrypted_from_the_first_byte(pem: Path) -> None:
    """tls: tls, as on port 465."""
    with post(pem, tls=True) as told:
        mail(told.port, tls="tls", ca_file=pem).send(NOTICE, NOW)
        assert len(told.mails) == 1


def test_no_password_goes_in_the_clear(pem: Path) -> None:
    """A server that offers no STARTTLS, or whose certificate nobody vouches for, is told nothing."""
    with post(login=True) as told:
        with pytest.raises(NotSent, match="offers no STARTTLS"):
            mail(told.port, user=USER, password={"environment": "MAIL"}).send(NOTICE, NOW)
        assert (told.mails, told.logins) == ([], [])
    with post(pem, login=True) as told:
        with pytest.raises(NotSent, match="certificate is not trusted"):
            mail(told.port, user=USER, password={"environment": "MAIL"}).send(NOTICE, NOW)
        assert (told.mails, told.logins) == ([], [])


def test_what_a_mail_server_says_is_not_repeated(pem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipient it does not take, a password it does not know: said in our words."""
    with post() as told:
        told.refused.add("ana@example.org")
        with pytest.raises(NotSent, match="does not take this recipient") as error:
            mail(told.port, tls="none").send(NOTICE, NOW)
    assert "secret of mine" not in str(error.value)
    monkeypatch.setenv("MAIL", "another word")
    with post(pem, login=True) as told, pytest.raises(NotSent, match="does not take the user and password") as error:
        mail(told.port, user=USER, password={"environment": "MAIL"}, ca_file=pem).send(NOTICE, NOW)
    assert "another word" not in str(error.value)


def test_each_recipient_is_a_receiver_of_its_own() -> None:
    """One address that does not exist keeps no notice from the others."""
    told = {"host": "127.0.0.1", "from": "a@b", "to": ["c@d", "e@f", "c@d"], "tls": "none"}
    assert [one.name for one in channels(NoticeSettings.model_validate({"mail": told}))] == ["mail c@d", "mail e@f"]


def test_a_secret_that_could_be_guessed_signs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than sixteen bytes: refused when it is read, and not at the first notice."""
    monkeypatch.setenv("HOOK", "short")
    with pytest.raises(ConfigError, match="could be guessed"):
        webhook("https://hooks.example.org/")
