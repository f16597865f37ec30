"""Which key a running process signs with: re-read from its file, so that a rotation needs no restart."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from memsluice.client import arguments
from memsluice.deployment.reloading import Watched
from memsluice.envelope.registry import ANY, Role, may_publish
from memsluice.errors import ConfigError, CrossTenant, ExpiredKey, InvalidArgument, NotPermitted
from memsluice.events.models import AnyPayload, SessionPayload
from memsluice.events.names import EventType
from memsluice.keystore.files import SigningCredential
from memsluice.keystore.store import load_credential

SUCCESSORS_MAX = 16
"""Rotations that one running process follows from the file it was started with, before it says so."""

Credentials = SigningCredential | Path | str | Callable[[], SigningCredential]
"""A credential, its file, or a function that gives the one in force."""
MUST = "a SigningCredential, the path of its file, or a function that returns one"

CHANNELS = {
    Role.PRODUCER: "MemoryWriter",
    Role.USER_CHANNEL: "MemoryWriter",
    Role.READER: "RecallChannel",
    Role.RUNTIME: "RuntimeChannel",
    Role.OPERATOR: "OperatorChannel",
    Role.REVIEWER: "OperatorChannel",
}
"""What publishes with a credential of each role."""
_log = logging.getLogger(__name__)


class CredentialFile:
    """A credential's file and, once it was rotated, its successors' beside it."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._directory = path.parent
        self._files: dict[str, Watched[SigningCredential]] = {}
        self._reported: set[str] = set()  # at most one a successor
        self._first = self._watch(path)
        self._first.get()  # a file that cannot be read is found at start-up

    @staticmethod
    def _watch(path: Path) -> Watched[SigningCredential]:
        return Watched(lambda: load_credential(path), path)

    def __call__(self) -> SigningCredential:
        """Return the newest credential that may sign now, else the first. Raises ConfigError."""
        current = best = self._first.get()
        for _ in range(SUCCESSORS_MAX):
            if current.successor is None:
                return best
            if current.successor not in self._files:
                self._files[current.successor] = self._watch(self._directory / f"{current.successor}.json")
            try:
                current = self._files[current.successor].get()
            except ConfigError as error:  # not handed out yet: sign on with what there is, as long as it may
                self._report(str(error))
                return best
            if current.signs_at(self._now_ms()):
                best = current
        raise ConfigError(
            f"more than {SUCCESSORS_MAX} rotations since {self._first.get().kid}: start with a newer file"
        )

    def _report(self, problem: str) -> None:
        if problem not in self._reported:
            self._reported.add(problem)
            _log.warning(
                "the successor of a credential cannot be read, signing goes on with its predecessor: %s", problem
            )


def source_of(credentials: object, now_ms: Callable[[], int]) -> Callable[[], SigningCredential]:
    """Return the function that gives the credential in force."""
    if isinstance(credentials, SigningCredential):
        fixed = credentials
        return lambda: fixed
    if isinstance(credentials, Path | str):
        return CredentialFile(Path(credentials), now_ms)
    if callable(credentials):
        return credentials
    raise arguments.wrong("credentials", credentials, MUST)


def check_roles(what: str, roles: Sequence[Role], sources: Sequence[Callable[[], SigningCredential]]) -> None:
    """Raise ConfigError unless there are credentials, all of roles that may publish what this channel publishes."""
    wanted = " or ".join(role.value for role in roles)
    if not sources:
        raise InvalidArgument(f"argument credentials is empty: a {what} signs with a credential of role {wanted}")
    for source in sources:
        credential = source()
        arguments.instance("credentials", credential, SigningCredential, MUST)
        if credential.role not in roles:
            raise ConfigError(
                f"credential {credential.kid} has the role {credential.role.value}, and a {what} needs one of role "
                f"{wanted}: open a {CHANNELS[credential.role]} with it, or give the {what} another credential"
            )


def check(credential: SigningCredential, event_type: EventType, payload: AnyPayload, now_ms: int) -> None:
    """Raise ExpiredKey or NotPermitted here and now for what the gate would refuse later, unseen by the caller."""
    if not credential.signs_at(now_ms):
        raise ExpiredKey(f"credential {credential.kid} may not sign now; rotate it or issue a new one", field="keyid")
    if not may_publish(credential.role, event_type, payload):
        raise NotPermitted(f"a {credential.role.value} credential may not publish {event_type.value}", field="type")
    if not credential.speaks_for(payload.tenant):
        raise CrossTenant(f"credential {credential.kid} is not of this tenant", field="tenant")
    if isinstance(payload, SessionPayload):
        if ANY not in credential.agents and payload.agent not in credential.agents:
            raise NotPermitted(f"credential {credential.kid} may not speak for this agent", field="agent")
        if ANY not in credential.principals and payload.principal not in credential.principals:
            raise NotPermitted(f"credential {credential.kid} may not speak for this principal", field="principal")
