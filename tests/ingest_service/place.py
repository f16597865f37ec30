"""An embedded gate that a service publishes to, and a real server in front of it."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from tests.patience import HANG_S

from memsluice.client import requests
from memsluice.client.build import Message, build
from memsluice.client.publisher import Prepared, Receipt
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.encoder import Encoder
from memsluice.envelope.keys import Algorithm
from memsluice.envelope.registry import Role
from memsluice.events.models import Origin
from memsluice.events.records import Record
from memsluice.http_service.callers import Callers
from memsluice.ingest_service.app import Serving, application
from memsluice.ingest_service.ledger import Ledger
from memsluice.ingest_service.status import Statuses
from memsluice.keystore.files import SigningCredential
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.memory.embedded import EmbeddedGate
from memsluice.memory.outcome import Status
from memsluice.recall.bearer import INGEST_AUDIENCE, mint
from memsluice.stages.quota import Quota
from memsluice.telemetry.meters import Meters
from memsluice.topics.names import AUDIT, DEAD_LETTER, PARTITIONS, STORE

FREE = Quota(10_000, 10_000)
ADA = Session("acme", "assistant", "ada", "t1")
WHO = {"agent": "assistant", "principal": "ada", "session": "t1"}


@dataclass
class Place:
    """The gate of tenant acme, and the credentials of its home. ``ours`` is Ed25519; ``theirs`` is globex's."""

    gate: EmbeddedGate
    keys: KeyStore
    ours: SigningCredential
    other: SigningCredential
    theirs: SigningCredential
    platform: SigningCredential
    operator: SigningCredential

    @classmethod
    def open(cls, home: Path, encoder: Encoder) -> "Place":
        """Open it."""
        gate, keys = EmbeddedGate.open_local(tenant="acme", home=home, encoder=encoder), KeyStore(home)
        now_ms = wall_ms() - 1_000

        def held(role: Role, tenant: str, algorithm: Algorithm | None = None) -> SigningCredential:
            channel = "operator" if role is Role.OPERATOR else "agent"
            return keys.credential(
                issue_credential(keys, role, channel, [tenant], algorithm=algorithm, now_ms=now_ms)[0].kid
            )

        made = cls(
            gate, keys, held(Role.PRODUCER, "acme", Algorithm.ED25519), held(Role.PRODUCER, "acme"),
            held(Role.PRODUCER, "globex"), held(Role.RUNTIME, "acme"), held(Role.OPERATOR, "acme"),
        )  # fmt: skip
        keys.refresh()
        made.open_session(ADA)
        return made

    def open_session(self, session: Session) -> None:
        """Say that the platform opened a session: what is written in any other is outside content."""
        event = requests.observation(self.gate.new_id(), self.gate.now(), session, Origin.OPEN, None, None)
        self.gate.publish(session, event).result()

    def records(self, topic: str, partition: int, from_offset: int = 0) -> list[Record]:
        """Return what lies in a partition of the gate's log."""
        return self.gate._own.run(lambda: list(self.gate._runtime.read(topic, from_offset, partition=partition)))

    def audit(self, partition: int, offset: int) -> Record | None:
        """Return one record of the audit, as the broker would."""
        found = self.records(AUDIT, partition, offset)[:1]
        return found[0] if found and found[0].offset == offset else None

    def append(self, message: Message) -> tuple[int, int]:
        """Append an event to the intake."""
        return self.gate._own.run(self.gate._runtime.append, "memory.events.v1", *message)

    def decide(self) -> None:
        """Let the stages run."""
        self.gate._own.run(self.gate._runtime.run_until_idle)


@dataclass
class Service:
    """What runs, and what a test breaks: ``fails`` makes the broker fail so, ``silent`` never acknowledge, ``waits``
    keeps the gate from deciding until :meth:`decide`."""

    place: Place
    ledger: Ledger
    url: str = ""
    now_ms: Callable[[], int] = wall_ms
    fails: Exception | None = None
    refused: Exception | None = None
    silent: bool = False
    waits: bool = False
    missing: list[str] = field(default_factory=list)
    meters: Meters = field(default_factory=Meters)
    serving: Serving | None = None
    _heard: dict[tuple[str, int], int] = field(default_factory=dict)

    def clock(self) -> int:
        """Return the time in Unix ms, which a test may stop."""
        return self.now_ms()

    def send(self, prepared: Prepared) -> "Future[Receipt]":
        """Take an event as a publisher does."""
        if self.refused is not None:
            raise self.refused
        done: Future[Receipt] = Future()
        if self.fails is not None:
            done.set_exception(self.fails)
        elif not self.silent:
            partition, offset = self.place.append(prepared.message)
            done.set_result(Receipt(prepared.event_id, prepared.topic, partition, offset, wall_ms()))
            if not self.waits:
                threading.Thread(target=self.decide).start()
        return done

    def decide(self) -> None:
        """Let the gate decide, and hear what it says."""
        self.place.decide()
        self.hear()

    def hear(self) -> None:
        """Hear what the gate's log says that was not heard yet."""
        for topic in (AUDIT, STORE, DEAD_LETTER):
            for partition in range(PARTITIONS):
                for record in self.place.records(topic, partition, self._heard.get((topic, partition), 0)):
                    self._heard[topic, partition] = record.offset + 1
                    self.ledger.take(record)

    def token(self, credential: SigningCredential) -> str:
        """Return a bearer token."""
        return mint(credential, self.now_ms(), INGEST_AUDIENCE)

    def ask(self, method: str, path: str, credential: SigningCredential | None, **more: Any) -> httpx.Response:
        """Send a request with a credential's token."""
        headers = more.pop("headers", {})
        if credential is not None:
            headers = {"authorization": f"Bearer {self.token(credential)}", **headers}
        return httpx.request(method, self.url + path, headers=headers, trust_env=False, timeout=HANG_S, **more)

    def write(self, credential: SigningCredential | None, content: str = "Ada drinks tea.", **more: Any) -> Any:
        """Have the service sign a write; ``key`` is its Idempotency-Key."""
        key = more.pop("idempotency_key", None)
        headers = more.pop("headers", {}) | ({} if key is None else {"idempotency-key": key})
        return self.ask("POST", "/v1/writes", credential, json={**WHO, "content": content, **more}, headers=headers)

    def post(self, payload: Any, credential: SigningCredential, **more: Any) -> httpx.Response:
        """Publish an event that a credential signs, as a program in any language does; ``bearer`` asks for it."""
        _, value, headers = build(payload, [credential.signer()], source="/tests", structured=more.pop("whole", False))
        bearer = more.pop("bearer", credential)
        named = {name.replace("ce_", "ce-"): (text or b"").decode() for name, text in headers}
        named |= more.pop("headers", {})
        return self.ask("POST", "/v1/events", bearer, content=more.pop("value", value), headers=named, **more)

    def status(self, accepted: httpx.Response, credential: SigningCredential, wait: float = 20) -> dict[str, Any]:
        """Return what became of what was accepted; who waits at all asks again, as long as nothing was decided."""
        deadline = time.monotonic() + HANG_S
        while True:
            found = self.ask("GET", f"{accepted.json()['url']}&wait={wait}", credential)
            assert found.status_code == 200, found.text
            if found.json()["status"] != Status.ACCEPTED or not wait or time.monotonic() > deadline:
                return dict(found.json())


@contextmanager
def serving(place: Place, quota: Quota = FREE, *, heard: bool = True) -> Iterator[Service]:
    """Give a running service; ``heard`` False has it hear nothing of what was decided before it started."""
    ledger, keys = Ledger(place.keys.keyring), place.keys
    service = Service(place, ledger)
    if heard:
        service.hear()
    else:
        silent = Service(place, Ledger(keys.keyring))
        silent.hear()
        service._heard = silent._heard
    statuses = Statuses(ledger, keys.keyring, place.audit)
    callers = Callers(keys.keyring, keys.registry, service.clock, quota, INGEST_AUDIENCE, "send {} requests")
    stands_on = service.serving = Serving(
        keys.keyring, keys.registry, keys.credential, service.send, ledger, statuses, service.meters,
        service.clock, callers, lambda: service.missing,
    )  # fmt: skip
    with served(application(stands_on)) as service.url:
        yield service
    statuses.close()


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Give the address of a real server of an application."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + HANG_S
    while not server.started and time.monotonic() < until:
        time.sleep(0.005)
    assert server.started
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(HANG_S)
