"""A gate at the other end of HTTP: an ingest service and a recall service; no broker and no key of the gate is here."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar, cast
from uuid import uuid4

import httpx
from opentelemetry.propagate import inject

from memsluice.client import arguments
from memsluice.client.build import Message, build, event_type_of
from memsluice.client.credentials import Credentials, check, source_of
from memsluice.client.publisher import Receipt
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.envelope.keys import Keyring
from memsluice.errors import (
    InvalidArgument,
    MemsluiceError,
    NotDelivered,
    OverQuota,
    RecallFailed,
    StoreError,
    WriterClosed,
)
from memsluice.events.models import Observation, Write
from memsluice.keystore.files import SigningCredential
from memsluice.memory.gate import Event
from memsluice.memory.outcome import Outcome, Place, Status
from memsluice.memory.waiting import Waiting
from memsluice.recall.bearer import INGEST_AUDIENCE, mint
from memsluice.recall.recaller import Recaller
from memsluice.recall.remote import RemoteRecaller, error_of

_T = TypeVar("_T")
EVENTS_PATH = "/v1/events"
TIMEOUT_S = 30.0
ASKED_S = 5
"""How long a question about an outcome stays open; whoever waits longer asks again."""
AGAIN_S = 1.0
"""How long is waited, at least, before a service that did not answer is asked again."""
OVER_QUOTA = 429
HEARERS = 8
"""Outcomes that are asked for at the same time; further ones take turns."""


class RemoteGate:
    """See :class:`~memsluice.memory.gate.Gate`. ``writer`` and ``runtime`` sign what is published, ``reader`` asks.

    ``ingest`` and ``recall`` are the services' addresses, http or https, without a path; a credential is one, its file,
    or a function that gives the one in force. Events reach the log in the order of the calls, one after the other: one
    over the credential's quota is sent again as the service asks for it, for TIMEOUT_S at most. Raises InvalidArgument.
    """

    def __init__(
        self, tenant: str, *, ingest: str, recall: str, writer: Credentials, runtime: Credentials, reader: Credentials
    ) -> None:
        arguments.tenant(tenant)
        for name, url in (("ingest", ingest), ("recall", recall)):
            arguments.instance(name, url, str, "the address of a service, a string")
            if not url.startswith(("http://", "https://")):
                raise InvalidArgument(f"argument {name} must be an http or https address")
        self.tenant = tenant
        self.waiting = Waiting(tenant, lambda: Keyring([]))
        self._sources: dict[type[Event], Callable[[], SigningCredential]] = {
            Write: source_of(writer, wall_ms), Observation: source_of(runtime, wall_ms),
        }  # fmt: skip
        self._recaller = RemoteRecaller(recall, reader, timeout_s=TIMEOUT_S)
        self._client = httpx.Client(base_url=ingest, timeout=TIMEOUT_S, follow_redirects=False)
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="memsluice-ingest")
        self._hearers = ThreadPoolExecutor(HEARERS, thread_name_prefix="memsluice-outcomes")
        self._closed = threading.Event()

    def publish(self, session: Session, event: Event) -> "Future[Receipt]":
        """Sign an event and send it; the future resolves once the service says that the log has it."""
        source = self._sources.get(type(event))
        if source is None:
            raise InvalidArgument("argument event is a recall, which the recall service publishes")
        credential = source()
        check(credential, event_type_of(event), event, wall_ms())
        message = build(event, [credential.signer()], source=f"/{self.tenant}/remote")
        try:
            return self._sender.submit(self._send, event, message, credential, time.monotonic() + TIMEOUT_S)
        except RuntimeError:
            raise WriterClosed("the gate is closed", event_id=event.id) from None

    def reading(self, call: Callable[[Recaller], _T]) -> _T:
        """See :class:`~memsluice.memory.gate.Gate`. What a memory asks a recaller, the remote one answers."""
        return call(cast(Recaller, self._recaller))

    def new_id(self) -> str:
        """Return an event id that was not used."""
        return uuid4().hex

    def now(self) -> datetime:
        """Return the time, with a zone."""
        return datetime.now(UTC)

    def close(self) -> None:
        """Send what was published, and close the connections."""
        self._closed.set()
        self._sender.shutdown()
        self._hearers.shutdown(cancel_futures=True)
        self._client.close()
        self._recaller.close()

    def _send(self, event: Event, message: Message, credential: SigningCredential, until: float) -> Receipt:
        headers = {name.replace("ce_", "ce-", 1): (value or b"").decode() for name, value in message.headers}
        more = {"headers": headers, "content": message.value}
        answer = self._asked("POST", EVENTS_PATH, credential, event.id, until, **more)
        try:
            url, place = str(answer["url"]), _place(answer["place"])
        except (LookupError, TypeError, ValueError):
            why = "the ingest service's answer says not where the event lies"
            raise NotDelivered(why, event_id=event.id, maybe_written=True) from None
        if isinstance(event, Write):
            self._hearers.submit(self._hear, event.id, url, credential)
        return Receipt(event.id, *place, wall_ms())

    def _asked(
        self, method: str, path: str, credential: SigningCredential, event_id: str, until: float = 0.0, **more: Any
    ) -> Any:
        """Return what the service answers; over the quota asked again ``until`` then, of the monotonic clock.

        Raises InputError for what it will not take, NotDelivered for anything that leaves open whether it has the
        event.
        """
        given: Mapping[str, str] = more.pop("headers", {})
        try:
            while True:
                bearer = mint(credential, wall_ms(), INGEST_AUDIENCE)
                headers = {**given, "authorization": f"Bearer {bearer}"}
                inject(headers)
                response = self._client.request(method, path, headers=headers, **more)
                again_s = _again_s(response)
                if response.status_code != OVER_QUOTA or time.monotonic() + again_s > until:
                    break
                if self._closed.wait(again_s):
                    break
            if response.is_success:
                return response.json()
            raise error_of(response, "ingest")
        except (httpx.HTTPError, ValueError) as error:
            why = f"the ingest service did not answer ({type(error).__name__})"
        except OverQuota as error:
            raise NotDelivered(str(error), event_id=event_id) from None
        except (StoreError, RecallFailed) as error:
            why = str(error)
        raise NotDelivered(why, event_id=event_id, maybe_written=True)

    def _hear(self, event_id: str, url: str, credential: SigningCredential) -> None:
        """Ask once what became of an event; while somebody waits for it, ask again after those that wait their turn."""
        if not self.waiting.waits_for(event_id) or self._closed.is_set():
            return
        try:
            outcome = _outcome(self._asked("GET", f"{url}&wait={ASKED_S}", credential, event_id))
        except (MemsluiceError, LookupError, TypeError, ValueError):  # away, or no answer that can be read
            self._closed.wait(AGAIN_S)
        else:
            if outcome.status is not Status.ACCEPTED:
                self.waiting.heard(outcome)
                return
        with suppress(RuntimeError):  # the gate was closed meanwhile
            self._hearers.submit(self._hear, event_id, url, credential)


def _again_s(response: httpx.Response) -> float:
    """Return after how many seconds a service wants to be asked again."""
    said = response.headers.get("retry-after", "")
    return max(AGAIN_S, float(said) if said.isascii() and said.isdigit() else 0.0)


def _outcome(said: Mapping[str, Any]) -> Outcome:
    """Return an outcome from its status resource."""
    place, reasons = said["place"], tuple(str(one["code"]) for one in said["reasons"])
    where = None if place is None else _place(place)
    return Outcome(said["id"], Status(said["status"]), reasons, said["object_id"], said["version"], where)


def _place(said: Mapping[str, Any]) -> Place:
    return str(said["topic"]), int(said["partition"]), int(said["offset"])
