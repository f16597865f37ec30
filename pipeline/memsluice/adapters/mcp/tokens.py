"""Who calls over HTTP: bearer tokens that a credential of the registry signs, and whose graph such a credential has."""

import logging
from collections.abc import Callable, Generator
from datetime import UTC, datetime

import httpx2
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken

from memsluice.adapters.mcp.callers import Person
from memsluice.client import requests
from memsluice.client.credentials import Credentials, source_of
from memsluice.client.requests import Session
from memsluice.clock import Clock, wall_ms
from memsluice.envelope.keys import Keyring
from memsluice.envelope.registry import ANY, DEFAULT_TIER, Credential, Registry, Role
from memsluice.errors import InputError, NotPermitted
from memsluice.events.names import EventType
from memsluice.recall.bearer import caller_of, mint

AUDIENCE = "memsluice-mcp"
"""What a token says that is for this server: :func:`memsluice.recall.bearer.mint` makes one with it."""
READS, WRITES = "read", "write"
TOLD_EVERY_MS = 60_000
"""How often the log says of one reason that somebody was turned away: anybody may ask, as often as he likes."""
_log = logging.getLogger(__name__)


class RegistryTokens:
    """An MCP ``TokenVerifier``. A token is good where the registry's credential that signed it names one person.

    That is an agent and a principal, each one alone, of ``tenant``: whose graph a call is about is the credential's to
    say, and nothing in a call or a token changes it. A producer's reads and writes, a reader's reads.
    """

    def __init__(
        self,
        tenant: str,
        keyring: Callable[[], Keyring],
        registry: Callable[[], Registry],
        now_ms: Clock = wall_ms,
    ) -> None:
        self._tenant = tenant
        self._keyring = keyring
        self._registry = registry
        self._now_ms = now_ms
        self._told_ms: dict[str, int] = {}

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose call it is; None, which is answered with 401, where that is nobody's. The log says why, once a
        minute."""
        now_ms = self._now_ms()
        try:
            credential = caller_of(token, self._keyring(), self._registry(), now_ms, audience=AUDIENCE)
            person = self._person(credential, now_ms)
        except InputError as error:
            self._tell(error, now_ms)
            return None
        scopes = [READS, WRITES] if person.writes else [READS]
        claims = {"agent": person.agent, "principal": person.principal}
        return AccessToken(
            token=token, client_id=credential.kid, scopes=scopes, subject=person.principal, claims=claims
        )

    def _tell(self, error: InputError, now_ms: int) -> None:
        if now_ms - self._told_ms.get(error.code, -TOLD_EVERY_MS) >= TOLD_EVERY_MS:
            self._told_ms[error.code] = now_ms
            _log.warning("a caller was turned away: %s: %s", error.code, error.reason)

    def _person(self, credential: Credential, now_ms: int) -> Person:
        """Return whom a credential names, after the gate's own rule for what it would publish for him."""
        for field, names in (("agent", credential.agents), ("principal", credential.principals)):
            if len(names) != 1 or ANY in names:
                raise NotPermitted(f"the credential must be for one {field} alone", field=field)
        if credential.channel != "agent" or credential.tier > DEFAULT_TIER["agent"]:
            # the gate would take what it says for an agent's
            raise NotPermitted("the credential has less trust than an agent's, or another channel", field="channel")
        person = Person(credential.agents[0], credential.principals[0], writes=credential.role is Role.PRODUCER)
        whose = Session(self._tenant, person.agent, person.principal, "draft")
        at = datetime.fromtimestamp(now_ms / 1_000, UTC)
        if person.writes:
            credential.check(EventType.WRITE, requests.write("draft", at, whose, "draft", {}), now_ms)
        else:
            credential.check(EventType.RECALL, requests.recall("draft", at, whose, "draft", ()), now_ms)
        return person


class SignedRequests(httpx2.Auth):
    """Signs each request of an MCP client over HTTP: a token that is a minute old is worth nothing.

    ``credential`` is a producer's or a reader's, its file, or a function that gives the one in force:
    ``streamable_http_client(url, http_client=httpx2.AsyncClient(auth=SignedRequests("producer.json")))``.
    """

    def __init__(self, credential: Credentials, now_ms: Clock = wall_ms) -> None:
        self._credential = source_of(credential, now_ms)
        self._now_ms = now_ms

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Give a request its token."""
        token = mint(self._credential(), self._now_ms(), audience=AUDIENCE)
        request.headers["authorization"] = f"Bearer {token}"
        yield request


def bearer() -> Person:
    """Return whose call this is, as its token was verified. Raises NotPermitted without one."""
    token = get_access_token()
    if token is None or token.claims is None:
        raise NotPermitted("the call has no token that is good", field="authorization")
    return Person(str(token.claims["agent"]), str(token.claims["principal"]), writes=WRITES in token.scopes)
