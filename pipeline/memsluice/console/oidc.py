"""Logging in at an identity provider: OpenID Connect's code flow with PKCE, and who its claims make of somebody.

What comes back is believed for what it proves alone: a token signed by the provider's own keys, for this client, with
the nonce of a login that began in the same browser.
"""

import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.httpx_client import OAuth2Client

from memsluice.clock import Clock
from memsluice.console.settings import Oidc
from memsluice.console.visitors import Visitor
from memsluice.deployment.paths import using
from memsluice.envelope.registry import ANY, Role
from memsluice.errors import ConfigError, ForgedSignature, NotPermitted, RequestRefused
from memsluice.events.limits import NAME_CHARS_MAX
from memsluice.log import get_logger, said

ANSWERS_WITHIN_S = 10.0
LOGIN_MS_MAX = 600_000
LOGINS_MAX = 1_000
"""Logins that have begun and not ended; the oldest is forgotten."""
KNOWN_MS = 3_600_000
"""How long what the provider says of itself stands."""
LEEWAY_S = 60
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""Signatures by a key that only the provider has; never what a token's header asks for."""
REQUIRED = ("iss", "aud", "sub", "exp", "iat", "nonce")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LOG = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pending:
    """A login that has begun. ``browser`` is the digest of what the browser's cookie holds."""

    browser: str
    nonce: str
    verifier: str
    where: str
    until_ms: int


class Provider:
    """One provider, as the settings name it. ``home`` is where a relative ``secret_file`` lies."""

    def __init__(self, settings: Oidc, home: Path, clock: Clock) -> None:
        self._settings, self._home, self._clock = settings, home, clock
        self._pending: OrderedDict[str, Pending] = OrderedDict()
        self._lock = Lock()
        self._known: tuple[int, dict[str, Any]] | None = None
        self._keys: jwt.PyJWKSet | None = None
        host = urlsplit(settings.issuer)
        if host.scheme != "https" and host.hostname not in LOOPBACK:
            raise ConfigError("console.toml: oidc.issuer: it must be https, or on this machine")

    def begin(self, callback: str, where: str) -> tuple[str, str]:
        """Return where to send a browser, and what its cookie holds until it is back. Raises RequestRefused."""
        state, browser, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(4))
        with self._client(callback) as client:
            url, _ = client.create_authorization_url(
                self._endpoint("authorization_endpoint"), state=state, nonce=nonce, code_verifier=verifier
            )
        now_ms = self._clock()
        with self._lock:
            while self._pending and (
                len(self._pending) >= LOGINS_MAX or next(iter(self._pending.values())).until_ms <= now_ms
            ):
                self._pending.popitem(last=False)
            self._pending[state] = Pending(_digest(browser), nonce, verifier, where, now_ms + LOGIN_MS_MAX)
        return str(url), browser

    def finish(self, callback: str, state: str, code: str, browser: str) -> tuple[Visitor, str]:
        """Return who is back, and where he wanted to go. Raises RequestRefused, ForgedSignature, NotPermitted."""
        with self._lock:
            pending = self._pending.pop(state, None)
        if (
            pending is None
            or pending.until_ms <= self._clock()
            or not hmac.compare_digest(pending.browser, _digest(browser))
        ):
            raise RequestRefused(400, "login", "this login did not begin in this browser, or took too long: begin anew")
        try:
            with self._client(callback) as client:
                token = client.fetch_token(self._endpoint("token_endpoint"), code=code, code_verifier=pending.verifier)
        except OAuthError as error:
            _LOG.warning("the identity provider refused a login", problem=str(error.error))
            raise RequestRefused(403, "login", "the identity provider refused the login: begin anew") from None
        except (httpx.HTTPError, ValueError) as error:
            raise self._away(error) from None
        return self.visitor(self._claims(str(token.get("id_token", "")), pending.nonce)), pending.where

    def visitor(self, claims: dict[str, Any]) -> Visitor:
        """Return whom claims let in: as the first of the settings' people that fits. Raises NotPermitted."""
        name = claims.get(self._settings.name_claim)
        if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable() or name == ANY:
            raise NotPermitted(f"the identity provider gives no claim {self._settings.name_claim} that is a name")
        for one in self._settings.people:
            value = claims.get(one.claim)
            if one.value != value and not (isinstance(value, list) and one.value in value):
                continue
            if "email" in (one.claim, self._settings.name_claim) and claims.get("email_verified") is False:
                raise NotPermitted("the identity provider has not verified this e-mail address")
            tenants = None if ANY in one.tenants else frozenset(one.tenants)
            return Visitor(name, Role(one.role), tenants)
        raise NotPermitted("the identity provider knows you, and console.toml lets nobody in with your claims")

    def _claims(self, token: str, nonce: str) -> dict[str, Any]:
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            claims: dict[str, Any] = jwt.decode(
                token, self._key(kid).key, ALGORITHMS, audience=self._settings.client_id,
                issuer=self._settings.issuer, leeway=LEEWAY_S, options={"require": list(REQUIRED)},
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError) as error:
            _LOG.warning("a login's token does not hold", problem=type(error).__name__)
            raise ForgedSignature("the identity provider's token does not hold: begin anew") from None
        if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
            raise ForgedSignature("the identity provider's token is of another login: begin anew")
        if isinstance(claims["aud"], list) and claims.get("azp", self._settings.client_id) != self._settings.client_id:
            raise ForgedSignature("the identity provider's token is for another client: begin anew")
        return claims

    def _key(self, kid: object) -> jwt.PyJWK:
        """Return the provider's key that a token names, or its only one; asked for anew where it is not known."""
        for anew in (False, True):
            if self._keys is None or anew:
                self._keys = jwt.PyJWKSet.from_dict(self._asked(self._endpoint("jwks_uri")))
            fit = [one for one in self._keys.keys if one.public_key_use in (None, "sig")]
            fit = [one for one in fit if one.key_id == kid] if kid is not None else fit
            if len(fit) == 1:
                return fit[0]
        raise jwt.InvalidKeyError("the provider has no such key")

    def _endpoint(self, name: str) -> str:
        now_ms = self._clock()
        if self._known is None or now_ms - self._known[0] >= KNOWN_MS:
            found = self._asked(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
            if found.get("issuer") != self._settings.issuer:
                raise ConfigError("console.toml: oidc.issuer: the provider says that it is another one")
            self._known = now_ms, found
        url = self._known[1].get(name)
        host = urlsplit(url if isinstance(url, str) else "")
        if host.scheme != "https" and host.hostname not in LOOPBACK:
            raise RequestRefused(502, "provider", f"the identity provider names no {name} that can be used")
        return str(url)

    def _asked(self, url: str) -> dict[str, Any]:
        try:
            answer = httpx.get(url, timeout=ANSWERS_WITHIN_S)
            answer.raise_for_status()
            found = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise self._away(error) from None
        if not isinstance(found, dict):
            raise RequestRefused(502, "provider", "the identity provider's answer cannot be read")
        return found

    def _away(self, error: Exception) -> RequestRefused:
        _LOG.warning("the identity provider does not answer", problem=said(error))
        return RequestRefused(503, "provider", "the identity provider does not answer: try again, or log in with a key")

    def _client(self, callback: str) -> OAuth2Client:
        secret = None
        if self._settings.secret_file is not None:
            file = self._home / self._settings.secret_file
            with using(file):
                secret = file.read_text(encoding="utf-8").strip()
        return OAuth2Client(
            self._settings.client_id, secret, redirect_uri=callback, scope=self._settings.scopes,
            code_challenge_method="S256", timeout=ANSWERS_WITHIN_S,
            token_endpoint_auth_method="none" if secret is None else "client_secret_basic",
        )  # fmt: skip


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
