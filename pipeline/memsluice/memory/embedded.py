"""A gate in this process: the same stages over a durable log in a file, and an index beside it. No broker is needed."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Self, TypeVar
from uuid import uuid4

from memsluice.client import arguments
from memsluice.client.build import Message, build, event_type_of, topic_of
from memsluice.client.credentials import check, source_of
from memsluice.client.publisher import Receipt
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.deployment.locked import locked
from memsluice.encoder import Encoder, load_encoder
from memsluice.envelope.registry import Role
from memsluice.errors import ConfigError, MemsluiceError, NotDelivered, StateError
from memsluice.events.models import Channel, Observation, Recall, Write
from memsluice.events.records import Record
from memsluice.gate.policy.model import load_or_default
from memsluice.keystore.files import SigningCredential
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.memory.gate import Event, Instructions
from memsluice.memory.one_thread import OneThread
from memsluice.memory.waiting import Waiting
from memsluice.recall.recaller import Recaller
from memsluice.recall.renewing import Renewals
from memsluice.runtimes.assembly import Assembly
from memsluice.runtimes.embedded import StepReport

CREDENTIALS: dict[type[Event], tuple[Role, Channel]] = {
    Write: (Role.PRODUCER, "agent"),
    Recall: (Role.READER, "agent"),
    Observation: (Role.RUNTIME, "agent"),
}
"""Who signs each kind of event; a home without such a credential is given one."""
LOCK = "embedded.lock"
_T = TypeVar("_T")


class EmbeddedGate:
    """See :class:`~memsluice.memory.gate.Gate`. One at a time on a home; opening a second one raises StateError.

    A published event is decided, and lands, before :meth:`publish` returns. Log, index and stages belong to one thread
    of the gate's own, in which everything is done.
    """

    def __init__(
        self, tenant: str, home: Path | None, encoder: Encoder | None, instructions: Instructions | None
    ) -> None:
        self.tenant = tenant
        self._own = OneThread()
        self._opened = ExitStack()
        try:
            assembly = Assembly.at(Home.at(home))
            place = assembly.home.path
            self._opened.enter_context(locked(place / LOCK, partial(_taken, place)))
            self._own.run(self._begin, assembly, encoder or load_encoder(), instructions)
        except BaseException:
            self.close()
            raise

    def _begin(self, assembly: Assembly, encoder: Encoder, instructions: Instructions | None) -> None:
        self._signing = {kind: _signing(assembly.keys, self.tenant, *who) for kind, who in CREDENTIALS.items()}
        self.waiting = Waiting(self.tenant, assembly.keys.keyring)
        store = assembly.local_store()
        self._opened.callback(store.close)
        self._runtime = assembly.embedded(encoder, store, self._heard)
        self._opened.callback(self._runtime.close)
        self._recaller = Recaller(
            store=store, encoder=encoder, keys=assembly.keys.keyring, permits=self._permits, publish=self._recalled,
            now_ms=wall_ms, new_id=self.new_id, freshness=assembly.local_freshness(self._runtime.log),
            instructions=None if instructions is None else instructions(encoder),
            renewals=Renewals(store, load_or_default(assembly.home.policy_file).of),
        )  # fmt: skip
        self._opened.callback(self._recaller.close)
        self._runtime.run_until_idle()  # what a process left that was killed

    @classmethod
    def open_local(
        cls,
        *,
        tenant: str,
        home: Path | None = None,
        encoder: Encoder | None = None,
        instructions: Instructions | None = None,
    ) -> Self:
        """Open a tenant's gate in a home, which is made, with keys and credentials, where there is none.

        Raises InvalidArgument, ConfigError for another encoder than the store's, and PolicyError.
        """
        arguments.tenant(tenant)
        arguments.home(home)
        return cls(tenant, home, encoder, instructions)

    def publish(self, session: Session, event: Event) -> "Future[Receipt]":
        """Append the event and let the stages run; the future that is returned is done."""
        credential, now_ms = self._signing[type(event)](), wall_ms()
        check(credential, event_type_of(event), event, now_ms)
        message = build(event, [credential.signer()], source=f"/{self.tenant}/embedded")
        done: Future[Receipt] = Future()
        done.set_result(self._own.run(self._decided, event, message, now_ms))
        return done

    def _decided(self, event: Event, message: Message, now_ms: int) -> Receipt:
        topic = topic_of(event)
        partition, offset = self._runtime.append(topic, *message, append_ms=now_ms)
        self.waiting.placed(event.id, (topic, partition, offset))
        try:
            self._runtime.run_until_idle()
        except MemsluiceError as error:  # it is in the log, and is decided at the next start at the latest
            why = f"it was logged, and is decided later: {error}; say it again under the same event id to know"
            raise NotDelivered(why, event_id=event.id, maybe_written=True) from error
        return Receipt(event.id, topic, partition, offset, now_ms)

    def reading(self, call: Callable[[Recaller], _T]) -> _T:
        """See :class:`~memsluice.memory.gate.Gate`."""
        return self._own.run(call, self._recaller)

    def new_id(self) -> str:
        """Return an event id that was not used."""
        return uuid4().hex

    def now(self) -> datetime:
        """Return the time, with a zone."""
        return datetime.now(UTC)

    def close(self) -> None:
        """Close log and index. Closing again does nothing."""
        self._own.close(self._opened.close)

    def _permits(self, recall: Recall) -> None:
        check(self._signing[Recall](), event_type_of(recall), recall, wall_ms())

    def _recalled(self, recall: Recall) -> None:
        self.publish(Session(recall.tenant, recall.agent, recall.principal, recall.session), recall).result()

    def _heard(self, report: StepReport) -> None:
        for source, outputs in zip(report.records, report.outputs, strict=True):
            for one in outputs:
                self.waiting.take(
                    Record(one.topic, one.partition, 0, one.key, one.value, one.headers, source.timestamp_ms)
                )


def _taken(home: Path, pid: str) -> StateError:
    return StateError(
        f"another embedded gate is open on {home}, in process {pid}: share its gate, close it, or name another home"
    )


def _signing(keys: KeyStore, tenant: str, role: Role, channel: Channel) -> Callable[[], SigningCredential]:
    """Return what gives the credential in force: one that is rotated or revoked meanwhile is known within a second."""
    wanted = channel if role is Role.PRODUCER else None
    try:
        kid = keys.find_credential(role, wall_ms(), tenant=tenant, channel=wanted).kid
    except ConfigError:
        issued, _path = issue_credential(keys, role, channel, [tenant], now_ms=wall_ms(), note="made by the first use")
        keys.refresh()
        kid = issued.kid
    return source_of(keys.credential_path(kid), wall_ms)
