"""The whole product as a scenario sees it: sessions, writes, recalls, commands; the same on both runtimes.

A scenario is written once and played on the embedded runtime (:mod:`.world_embedded`) and on the real stack
(:mod:`.world_stack`). Everything goes in as signed messages and comes out through *seal*, *screen*, *land* and a real
recall; nothing here decides.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Unpack

from memsluice.client import requests
from memsluice.client.build import Message, build, make, topic_of
from memsluice.client.requests import Session, WriteOptions
from memsluice.envelope.dsse import Signer
from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import held_from_bytes, verdict_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.errors import StateError
from memsluice.events.headers import EVENT_ID
from memsluice.events.models import Action, AnyPayload, Observation, Origin, Zone
from memsluice.events.names import DECISION_HEADER, WITHDRAWS
from memsluice.events.records import Headers
from memsluice.recall.recaller import Question, Recalled, Recaller
from memsluice.topics.names import ACCEPTED, AUDIT, QUARANTINE
from memsluice_lab.cast import Signers

VALID = timedelta(minutes=15)


@dataclass(slots=True)
class Heard:
    """What the gate said, by tenant and event id: first verdicts, held records, and the last accepted record."""

    verdicts: dict[tuple[str, str], Verdict] = field(default_factory=dict)
    held: dict[tuple[str, str], str] = field(default_factory=dict)
    accepted: dict[tuple[str, str], str] = field(default_factory=dict)

    def take(self, keyring: Keyring, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Take one record. Raises SealError where its seal does not hold."""
        tenant = (key or b"").decode()
        if topic == AUDIT:
            verdict = verdict_from_bytes(keyring, tenant, value or b"")
            if verdict.decision != "duplicate":
                self.verdicts.setdefault((tenant, verdict.event_id), verdict)
        elif topic == QUARANTINE:
            sealed, verdict = held_from_bytes(keyring, tenant, value or b"")
            self.held.setdefault((tenant, verdict.event_id), sealed.decode())
        elif topic == ACCEPTED and dict(headers).get(DECISION_HEADER) != WITHDRAWS:
            event_id = dict(headers).get(EVENT_ID) or b""
            self.accepted[tenant, event_id.decode()] = (value or b"").decode()


HEARD_TOPICS = (AUDIT, QUARANTINE, ACCEPTED)


class World(ABC):
    """One deployment with credentials for some tenants. ``run`` is put before every event id."""

    def __init__(self, signers: Signers, run: str) -> None:
        self.signers = signers
        self.heard = Heard()
        self._numbers = itertools.count()
        self._run = run
        self._recaller: Recaller | None = None

    @abstractmethod
    def now_ms(self) -> int:
        """Return the broker's time (Unix ms)."""

    @abstractmethod
    def wait(self, ms: int) -> None:
        """Let time pass."""

    @abstractmethod
    def send(self, topic: str, message: Message) -> None:
        """Publish one message, in order after those before it."""

    @abstractmethod
    def settle(self) -> None:
        """Return once everything published is decided and landed, and what the gate said of it is heard."""

    @abstractmethod
    def recaller(self) -> Recaller:
        """Return what asks this deployment's store, its events published by :meth:`publish`."""

    @abstractmethod
    def close(self) -> None:
        """Stop what runs."""

    def name(self) -> str:
        """Return an event id that was not used."""
        return f"{self._run}.{next(self._numbers)}"

    def publish(self, source: str, payload: AnyPayload, *more: str) -> str:
        """Sign as ``source`` (and ``more``) of the payload's tenant, publish, and return the event id."""
        found: list[Signer] = [self.signers[payload.tenant, one] for one in (source, *more)]
        self.send(topic_of(payload), build(payload, found, source=f"/{payload.tenant}/{source}"))
        return payload.id

    def observe(self, session: Session, origin: Origin = Origin.OPEN) -> str:
        """Have the platform say what a session saw."""
        return self.publish(
            "runtime", make(Observation, id=self.name(), time=self._time(), origin=origin, **session.fields())
        )

    def write(self, source: str, session: Session, content: str, **options: Unpack[WriteOptions]) -> str:
        """Have somebody ask for something to be remembered."""
        return self.publish(source, requests.write(self.name(), self._time(), session, content, options))

    def ask(
        self, session: Session, question: str, *, namespace: str = "default", zone: Zone = Zone.GUIDANCE
    ) -> Recalled:
        """Ask the memory after all that was published is through, and have the recall recorded as well."""
        self.settle()
        if self._recaller is None:
            self._recaller = self.recaller()
        who = (session.agent, session.principal, session.session)
        return self._recaller.ask(Question(session.tenant, question, *who, namespace=namespace, zone=zone, k=50))

    def order(
        self, tenant: str, action: Action, target: str, *, by: Sequence[str] = ("reviewer",), **parameters: str
    ) -> str:
        """Give a command about a write (or to ``protect`` a key), with what the gate has of it once all is through."""
        if action is not Action.PROTECT:
            self.settle()
        held, accepted = self.heard.held.get((tenant, target)), self.heard.accepted.get((tenant, target))
        known = self.heard.verdicts.get((tenant, target))
        digest = known.content_digest if known is not None and action is not Action.PROTECT else None
        now = self._time()
        command = requests.command(
            self.name(), now, tenant, action, target, now + VALID, digest=digest, parameters=parameters,
            held=(accepted or held) if CARRIES[action] else None,
        )  # fmt: skip
        return self.publish(by[0], command, *by[1:])

    def said(self, tenant: str, event_id: str) -> Verdict:
        """Return the verdict on an event. Raises StateError where there is none."""
        if (tenant, event_id) not in self.heard.verdicts:
            self.settle()
        verdict = self.heard.verdicts.get((tenant, event_id))
        if verdict is None:
            raise StateError(f"{event_id} of {tenant} has no verdict")
        return verdict

    def _time(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms() / 1000, UTC)


CARRIES = dict.fromkeys(Action, False) | dict.fromkeys((Action.RELEASE, Action.REPLAY, Action.PROMOTE), True)
CARRIES |= dict.fromkeys((Action.DECLASSIFY, Action.REVOKE, Action.RENEW), True)
"""The commands that carry the record of what they are about."""
