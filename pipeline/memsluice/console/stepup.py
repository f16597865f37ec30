"""A security key (WebAuthn) as a second word of the same person, about the very commands that he signed.

It replaces no signature: it makes a browser that somebody else took over, key and all, good for nothing without a touch
of the key. A security key is registered once, by a visitor's own signature; who lost it asks an operator of the console
to take its entry out of the file.
"""

import hmac
import secrets
from collections.abc import Callable, Sequence
from hashlib import sha256
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import orjson
import webauthn
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import PublicKeyCredentialDescriptor

from memsluice.console.serving import Serving
from memsluice.console.sessions import Session
from memsluice.console.visitors import Visitor
from memsluice.deployment.paths import using
from memsluice.errors import ConfigError, ForgedSignature, MalformedEvent, NotPermitted
from memsluice.keystore.files import read_guarded, write_atomic

FILE = "console-security-keys.json"
FIRST_LINE = "memsluice console step-up v1"
ASKED, REGISTERING = "step-up", "step-up-register"
CHALLENGE_BYTES = 32
NAME = "memsluice console"
SINGLE_MAX = 10
"""Commands sent one by one that "bulk" lets through between two confirmations: one by one is no way around it."""
_LOCK = Lock()


def person_of(serving: Serving, visitor: Visitor) -> str:
    """Return under which name a visitor's security key is kept: one person has one, by whichever of his keys, or by an
    identity provider, he came in. Otherwise whoever sits at his browser comes in another way and registers another.

    Raises UnknownKey.
    """
    if visitor.kid is None:
        return visitor.name
    return serving.keys.registry().get(visitor.kid).person or visitor.kid


def needed(serving: Serving, name: str, count: int) -> bool:
    """Whether so many commands at once of this person want a security key."""
    wanted = serving.settings.step_up
    return wanted == "always" or (wanted == "bulk" and (count > 1 or serving.unconfirmed[name] >= SINGLE_MAX))


def batch_of(envelopes: Sequence[Any]) -> str:
    """Return what a confirmation is about: the digest of payloads and signatures, as the browser computes it."""
    try:
        lines = [".".join([one["payload"], *(each["sig"] for each in one["signatures"])]) for one in envelopes]
    except (KeyError, TypeError):
        raise MalformedEvent("is not a list of signed envelopes", field="envelopes") from None
    return sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()


def begin(serving: Serving, session: Session, origin: str, batch: str, count: int) -> Any:
    """Return what the browser asks the security key, as JSON values; None where none is wanted. Raises NotPermitted."""
    name = person_of(serving, session.visitor)
    if not needed(serving, name, count):
        return None
    held = _known(serving).get(name)
    if held is None:
        raise NotPermitted("this console wants a security key besides: register yours at /keys first")
    challenge = secrets.token_bytes(CHALLENGE_BYTES)
    session.notes[ASKED] = f"{batch}.{bytes_to_base64url(challenge)}"
    there = [PublicKeyCredentialDescriptor(id=base64url_to_bytes(held["id"]))]
    options = webauthn.generate_authentication_options(
        rp_id=_host(origin), challenge=challenge, allow_credentials=there
    )
    return orjson.loads(webauthn.options_to_json(options))


def check(serving: Serving, session: Session, origin: str, envelopes: Sequence[Any], said: Any) -> None:
    """Raise NotPermitted or ForgedSignature where a security key was wanted and did not confirm these envelopes."""
    name = person_of(serving, session.visitor)
    with _LOCK:
        if not needed(serving, name, len(envelopes)):
            serving.unconfirmed[name] += len(envelopes)
            return
    batch, _, challenge = session.notes.pop(ASKED, "").partition(".")
    if not said or not hmac.compare_digest(batch, batch_of(envelopes)):
        raise NotPermitted("the security key has not confirmed these commands", field="step_up")

    def confirmed(keys: dict[str, dict[str, Any]]) -> None:
        held = keys.get(name)
        if held is None:
            raise NotPermitted("no security key of yours is registered", field="step_up")
        held["sign_count"] = _verified(
            lambda: webauthn.verify_authentication_response(
                credential=said, expected_challenge=base64url_to_bytes(challenge), expected_rp_id=_host(origin),
                expected_origin=origin, credential_public_key=base64url_to_bytes(held["public_key"]),
                credential_current_sign_count=held["sign_count"],
            )
        ).new_sign_count  # fmt: skip
        del serving.unconfirmed[name]

    _change(serving, confirmed)


def registration(serving: Serving, session: Session, origin: str) -> Any:
    """Return what the browser asks a new security key, as JSON values. Raises NotPermitted where there is one."""
    name = person_of(serving, session.visitor)
    if name in _known(serving):
        raise NotPermitted("a security key of yours is registered: an operator of the console takes it out of its file")
    challenge = secrets.token_bytes(CHALLENGE_BYTES)
    session.notes[REGISTERING] = bytes_to_base64url(challenge)
    options = webauthn.generate_registration_options(
        rp_id=_host(origin), rp_name=NAME, user_name=name, user_id=sha256(name.encode()).digest(), challenge=challenge
    )
    return orjson.loads(webauthn.options_to_json(options))


def register(serving: Serving, session: Session, origin: str, kid: str, credential: Any, signature: bytes) -> None:
    """Keep a security key, which its owner's signing key vouches for: a session alone registers none.

    Raises NotPermitted, UnknownKey, RevokedKey, ForgedSignature.
    """
    challenge, visitor = session.notes.pop(REGISTERING, ""), session.visitor
    serving.keys.refresh()
    keyring = serving.keys.keyring()
    if not challenge or not isinstance(credential, dict) or not visitor.owns(kid, serving.keys.registry()):
        raise NotPermitted("ask for a registration first, and sign it with your own key", field="kid")
    said = "\n".join((FIRST_LINE, origin, kid, challenge, str(credential.get("id")))).encode("utf-8", "replace")
    if not keyring.direct(kid).verify(said, signature):
        raise ForgedSignature("the signature is not this key's over this security key", field="signature")
    made = _verified(
        lambda: webauthn.verify_registration_response(
            credential=credential, expected_challenge=base64url_to_bytes(challenge), expected_rp_id=_host(origin),
            expected_origin=origin,
        )
    )  # fmt: skip

    name = person_of(serving, visitor)

    def kept(keys: dict[str, dict[str, Any]]) -> None:
        if name in keys:
            raise NotPermitted("a security key of yours is registered already", field="credential")
        keys[name] = {
            "id": bytes_to_base64url(made.credential_id), "public_key": bytes_to_base64url(made.credential_public_key),
            "sign_count": made.sign_count,
        }  # fmt: skip

    _change(serving, kept)


def is_registered(serving: Serving, visitor: Visitor) -> bool:
    """Whether a visitor has a security key here."""
    return person_of(serving, visitor) in _known(serving)


def _verified(verify: Callable[[], Any]) -> Any:
    try:
        return verify()
    except (WebAuthnException, ValueError, TypeError, KeyError):
        raise ForgedSignature("the security key's answer does not hold", field="step_up") from None


def _host(origin: str) -> str:
    return urlsplit(origin).hostname or ""


def _known(serving: Serving) -> dict[str, dict[str, Any]]:
    file = serving.home / FILE
    if not file.exists():
        return {}
    try:
        found: dict[str, dict[str, Any]] = orjson.loads(read_guarded(file, secret=True, remedy="register them again"))
    except orjson.JSONDecodeError:
        raise ConfigError(f"{file} is no JSON: restore it, or remove it and register security keys again") from None
    return found


def _change(serving: Serving, change: Callable[[dict[str, dict[str, Any]]], None]) -> None:
    with _LOCK, using(serving.home / FILE):
        keys = _known(serving)
        change(keys)
        write_atomic(serving.home / FILE, orjson.dumps(keys, option=orjson.OPT_INDENT_2) + b"\n")
