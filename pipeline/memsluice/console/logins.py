"""Logging in with a registered key: the server gives a challenge, the browser signs it, nothing is kept meanwhile.

What is signed says for which console it is, so that a page elsewhere cannot pass a challenge on; it begins unlike
anything else that a key signs, so that no command can be had from it, nor it from a command.
"""

import hmac
import secrets
from collections import OrderedDict
from hashlib import sha256
from threading import Lock

from memsluice.clock import Clock
from memsluice.console.visitors import Visitor
from memsluice.envelope.keys import Algorithm
from memsluice.envelope.registry import check_signing_time, credential_of
from memsluice.errors import ExpiredKey, ForgedSignature, InvalidArgument, NotPermitted
from memsluice.keystore.store import KeyStore

FIRST_LINE = "memsluice console login v1"
VALID_MS = 120_000
USED_MAX = 10_000


def signed_bytes(origin: str, kid: str, challenge: str) -> bytes:
    """Return what a browser signs to log in: four lines, joined by line feeds, as UTF-8."""
    return "\n".join((FIRST_LINE, origin, kid, challenge)).encode()


class Logins:
    """Gives challenges and checks what was signed. A challenge is good for VALID_MS, for one login."""

    def __init__(self, keys: KeyStore, clock: Clock) -> None:
        self._keys, self._clock = keys, clock
        self._secret = secrets.token_bytes(32)
        self._used: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def challenge(self) -> str:
        """Return a new challenge."""
        body = f"{self._clock() + VALID_MS}.{secrets.token_urlsafe(24)}"
        return f"{body}.{self._mark(body)}"

    def visitor(self, origin: str, kid: str, challenge: str, signature: bytes) -> Visitor:
        """Return who signed a challenge for the console at an origin.

        Raises InvalidArgument and ExpiredKey for the challenge, UnknownKey, RevokedKey, ExpiredKey, ForgedSignature and
        NotPermitted for the key.
        """
        self._check(challenge)
        self._keys.refresh()
        keyring = self._keys.keyring()
        credential = credential_of(kid, keyring, self._keys.registry())
        key = keyring.get(kid)
        if key.algorithm is not Algorithm.ED25519:
            raise NotPermitted("the key is no Ed25519 key: only such a one logs in", field="kid")
        check_signing_time(key, self._clock())
        credential.check_time(self._clock())
        if not keyring.direct(kid).verify(signed_bytes(origin, kid, challenge), signature):
            raise ForgedSignature("the signature is not this key's over this console's challenge", field="signature")
        found = Visitor.of(credential)
        self._use(challenge)
        return found

    def standing(self, visitor: Visitor) -> Visitor:
        """Return a visitor as the registry has him now. Raises what :meth:`visitor` raises where his key fell."""
        if visitor.kid is None:
            return visitor
        self._keys.refresh()
        credential = credential_of(visitor.kid, self._keys.keyring(), self._keys.registry())
        check_signing_time(self._keys.keyring().get(visitor.kid), self._clock())
        credential.check_time(self._clock())
        return Visitor.of(credential)

    def _mark(self, body: str) -> str:
        return hmac.new(self._secret, body.encode(), sha256).hexdigest()

    def _check(self, challenge: str) -> None:
        body, _, mark = challenge.rpartition(".")
        if not hmac.compare_digest(self._mark(body).encode(), mark.encode()):
            raise InvalidArgument("challenge: it is none of this console's: load the page again")
        if self._clock() >= int(body.partition(".")[0]):
            raise ExpiredKey("the challenge is too old: load the page again", field="challenge")

    def _use(self, challenge: str) -> None:
        now_ms = self._clock()
        with self._lock:
            for one, until_ms in list(self._used.items()):
                if until_ms > now_ms and len(self._used) < USED_MAX:
                    break
                del self._used[one]
            if challenge in self._used:
                raise InvalidArgument("challenge: it was used already: load the page again")
            self._used[challenge] = int(challenge.partition(".")[0])
