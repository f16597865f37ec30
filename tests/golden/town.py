"""Plays a schedule through *seal*, *screen* and *land* in the embedded runtime, and keeps a digest of every byte.

What the gate says is read from the bytes that it sent, not by its own classes: those may change, the bytes may not.
"""

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from tests.golden import ring

from memsluice.client.build import Message, build, topic_of
from memsluice.events.models import MODELS, Action, Origin
from memsluice.events.names import EventType
from memsluice.events.records import Headers, Output, Record, RowChange, Rows
from memsluice.gate.policy.model import PolicySet
from memsluice.runtimes.embedded import Embedded, LocalLog, StepReport
from memsluice.stages.base import StatefulStage, Step
from memsluice.stages.land import LandStage
from memsluice.stages.screen import ScreenStage
from memsluice.stages.seal import SealStage
from memsluice.stores.faiss.store import FaissStore
from memsluice.topics.names import ACCEPTED, AUDIT, PARTITIONS, QUARANTINE, SEALED

CHANGELOG = "changelog"
"""Stands for a topic: all row changes of one sealed record, in order, are one record of it."""
TICK_MS = 1_000
DIGITS = 12
ROWS_MAX = 1_000_000
INPUTS = {"seal": ("memory.events.v1", "memory.commands.v1"), "screen": (SEALED,), "land": (ACCEPTED,)}
Ends = Mapping[str, Sequence[int]]


def short(*parts: object) -> str:
    """Return 12 hex digits that stand for some bytes, texts and numbers."""
    return sha256(repr(parts).encode()).hexdigest()[:DIGITS]


def inside(value: bytes) -> Any:
    """Return what an envelope that the gate signed says."""
    return json.loads(base64.b64decode(json.loads(value)["payload"]))


@dataclass(slots=True)
class Sent:
    """What was sent, by topic in order: a digest of each record, and a label for people."""

    digests: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    labels: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    codes: set[str] = field(default_factory=set)
    """Codes of findings, and reason codes of dead letters."""

    def add(self, topic: str, digest: str, label: str) -> None:
        """Take one record."""
        self.digests[topic].append(digest)
        self.labels[topic].append(label)

    def output(self, output: Output, timestamp_ms: int) -> None:
        """Take what a stage sent for an input of that append time."""
        headers, label = dict(output.headers), f"key {output.key!r}"
        if output.topic == AUDIT:
            said = inside(output.value or b"")
            label = f"{said['tenant']}/{said['event_id']}: {said['decision']} {said['reasons']}"
            self.codes |= {found["code"] for found in said["findings"]}
        elif "memsluice-dead-letter" in headers:
            why = json.loads(headers["memsluice-dead-letter"] or b"")
            label = f"dead letter of {why['topic']} {why['partition']}/{why['offset']}: {why['reason']}"
            self.codes.add(why["reason"])
        elif "memsluice-event-id" in headers:
            label = f"{label}, event {headers['memsluice-event-id']!r}"
        whole = (output.partition, output.key, output.value, output.headers, timestamp_ms)
        self.add(output.topic, short(*whole), label)

    def step(self, record: Record, step: Step) -> None:
        """Take the rows that one sealed record changed."""
        changed = [(change.key, change.value) for change in step.changes]
        self.add(CHANGELOG, short(changed), f"{len(changed)} rows, of {changed[0][0]!r} first" if changed else "no row")


class Watched:
    """*screen*, and who is told of every step."""

    def __init__(self, stage: StatefulStage, told: Callable[[Record, Step], None]) -> None:
        self._stage, self._told = stage, told

    def process(self, record: Record, rows: Rows) -> Step:
        """Decide as the stage does."""
        step = self._stage.process(record, rows)
        self._told(record, step)
        return step

    def forget(self, partition: int) -> None:
        """Pass on."""
        self._stage.forget(partition)


@dataclass(frozen=True, slots=True)
class Taped:
    """One message as it came in; ``message`` None: what came in before it is worked on."""

    now_ms: int
    append_ms: int
    topic: str = ""
    message: Message | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What a worker finds when it starts: the rows by partition, and how many records each topic has by partition."""

    rows: tuple[tuple[int, bytes, bytes], ...]
    ends: Ends


@dataclass(frozen=True, slots=True)
class Held:
    """A held write: its sealed record, its intake offset, and the digest of its content."""

    sealed: str
    offset: int
    digest: str


class Town:
    """The gate with a clock of its own. ``tape`` is all that came in, ``sent`` all that was sent."""

    def __init__(self, path: Path, policies: PolicySet) -> None:
        self._path, self._policies, self._keys, self._store = path, policies, ring.keyring(), FaissStore(":memory:")
        self.now_ms = ring.START_MS
        self.sent, self.tape = Sent(), list[Taped]()
        self.said: dict[tuple[str, str], Any] = {}
        self.held: dict[tuple[str, str], list[Held]] = defaultdict(list)
        self.accepted: dict[tuple[str, str], str] = {}
        self._runtime = self._started()

    def _started(self) -> Embedded:
        screen = ScreenStage(lambda: self._keys, self._policies.of, PARTITIONS, self._clock)
        return Embedded(
            self._path,
            seal=SealStage(
                *(lambda: self._keys, ring.registry, ring.WordEncoder(), PARTITIONS, self._clock),
                policies=self._policies.of,
            ),
            screen=Watched(screen, self.sent.step),
            land=LandStage(lambda: self._keys, self._store, PARTITIONS, self._clock),
            now_ms=self._clock,
            durable=False,
            listener=self._hear,
        )

    def _clock(self) -> int:
        return self.now_ms

    def _hear(self, report: StepReport) -> None:
        for record, outputs in zip(report.records, report.outputs, strict=True):
            for output in outputs:
                self.sent.output(output, record.timestamp_ms)
                self._remember(output)

    def _remember(self, output: Output) -> None:
        tenant, value, headers = (output.key or b"").decode(), output.value or b"", dict(output.headers)
        if output.topic == AUDIT:
            said = inside(value)
            if said["decision"] != "duplicate":
                self.said.setdefault((tenant, said["event_id"]), said)
        elif output.topic == QUARANTINE:
            held = inside(value)
            sealed = orjson.dumps(held["sealed"], option=orjson.OPT_SORT_KEYS).decode()
            said = held["verdict"]
            self.held[tenant, said["event_id"]].append(Held(sealed, said["offset"], said["content_digest"]))
        elif output.topic == ACCEPTED and headers["memsluice-decision"] != b"withdraw":
            self.accepted[tenant, (headers["memsluice-event-id"] or b"").decode()] = value.decode()

    def restart(self) -> State:
        """Have everything done, stop and start the worker, and return what it found."""
        self.settle()
        self._runtime.close()
        self._runtime = self._started()
        return self.state()

    def wait(self, ms: int) -> None:
        """Have everything done that came in so far, and let time pass."""
        self.settle()
        self.now_ms += ms

    def send(self, topic: str, message: Message, *, partition: int | None = None, late_ms: int = 0) -> None:
        """Have a message appended, by a clock that is ``late_ms`` behind."""
        self.now_ms += TICK_MS
        self.play([Taped(self.now_ms, self.now_ms - late_ms, topic, message, partition)])

    def settle(self) -> None:
        """Have everything done that came in so far."""
        if self.tape and self.tape[-1].message is not None:
            self.play([Taped(self.now_ms, self.now_ms)])

    def play(self, tape: Iterable[Taped]) -> None:
        """Have these messages come in, and be worked on where the tape says so."""
        for taped in tape:
            self.now_ms = taped.now_ms
            self.tape.append(taped)
            if taped.message is None:
                self._runtime.run_until_idle()
                continue
            place = self._runtime.append(
                taped.topic, *taped.message, append_ms=taped.append_ms, partition=taped.partition
            )
            self.sent.add(taped.topic, short(place, *taped.message, taped.append_ms), f"key {taped.message.key!r}")

    def state(self) -> State:
        """Return rows and ends, once everything is done."""
        self.settle()
        log = self._runtime.log
        rows = [(part, *row) for part in range(PARTITIONS) for row in log.rows(part).scan(b"", ROWS_MAX)]
        topics = [topic for topics in INPUTS.values() for topic in topics]
        return State(tuple(rows), {topic: [log.end(topic, part) for part in range(PARTITIONS)] for topic in topics})

    def close(self) -> None:
        """Stop."""
        self._runtime.close()
        self._store.close()


def restored(path: Path, policies: PolicySet, state: State) -> Town:
    """Return a town whose worker starts with this state; records that were done with are there in number alone."""
    log = LocalLog(path, partitions=PARTITIONS, durable=False)
    with log.transaction():
        for part, key, value in state.rows:
            log.rows(part).apply(RowChange(key, value))
        for stage, topics in INPUTS.items():
            for topic in topics:
                for part, end in enumerate(state.ends[topic]):
                    for _ in range(end):
                        log.put(Output(topic, part, None, None), 0)
                    log.advance(stage, topic, part, end)
    log.close()
    return Town(path, policies)


CARRIES = {action: action in ("release", "replay", "promote", "declassify", "revoke", "renew") for action in Action}
PEOPLE = {"s": ("planner", "ana"), "b": ("clerk", "bob"), "c": ("clerk", "cleo"), "m": ("clerk", "mallory")}
"""Agent and principal of a session, by its first letter."""


class Tenant:
    """One tenant of a town: sessions, writes, recalls and commands, each with an event id of the schedule's choice."""

    def __init__(self, town: Town, name: str) -> None:
        self.town, self.name = town, name

    def publish(
        self, kind: EventType, event_id: str, by: str | Sequence[str], fields: Mapping[str, Any], **sending: Any
    ) -> None:
        """Sign and send one event. ``sending``: ``age_ms``, ``bend``, ``structured``, ``traceparent``, and what
        :meth:`Town.send` takes; ``topic`` where it goes elsewhere than it should."""
        age = sending.pop("age_ms", 0)
        time = datetime.fromtimestamp((self.town.now_ms + TICK_MS - age) / 1_000, UTC)
        payload = MODELS[kind].model_validate({"id": event_id, "tenant": self.name, "time": time, **fields})
        names = (by,) if isinstance(by, str) else by
        how = {name: sending.pop(name) for name in ("structured", "traceparent") if name in sending}
        bend, topic = sending.pop("bend", None), sending.pop("topic", topic_of(payload))
        message = build(payload, [ring.signer(name) for name in names], source=f"/{self.name}/{names[0]}", **how)
        self.town.send(topic, message if bend is None else bend(message), **sending)

    def _in(self, session: str, fields: dict[str, Any]) -> dict[str, Any]:
        agent, principal = PEOPLE[session[0]]
        return {"agent": agent, "principal": principal, "session": session, **fields}

    def open(self, *sessions: str) -> None:
        """Have the platform open sessions."""
        for session in sessions:
            self.see(f"open-{session}-{self.town.now_ms}", session, Origin.OPEN)

    def see(self, event_id: str, session: str, origin: str, content: str | None = None, **more: Any) -> None:
        """Have the platform say what a session saw."""
        sending = {name: more.pop(name) for name in list(more) if name in SENDING}
        fields = self._in(session, {"origin": origin, "content": content, **more})
        self.publish(EventType.OBSERVATION, event_id, sending.pop("by", "runtime"), fields, **sending)

    def write(self, event_id: str, source: str, session: str, content: str, **more: Any) -> None:
        """Have somebody ask for something to be remembered."""
        sending = {name: more.pop(name) for name in list(more) if name in SENDING}
        self.publish(EventType.WRITE, event_id, source, self._in(session, {"content": content, **more}), **sending)

    def ask(self, event_id: str, session: str, question: str, *given: str, **more: Any) -> None:
        """Have a reader say what it was asked and which entries it gave, as they lie there."""
        sending = {name: more.pop(name) for name in list(more) if name in SENDING}
        fields = {"question": question, "returned": [self.returned(name) for name in given], **more}
        self.publish(EventType.RECALL, event_id, sending.pop("by", "reader"), self._in(session, fields), **sending)

    def returned(self, event_id: str) -> dict[str, Any]:
        """Return an entry as a reader names it."""
        self.town.settle()
        told = inside_admission(self.town.accepted[self.name, event_id])
        return {"event_id": event_id} | {name: told[name] for name in ("object_id", "version", "tier", "taint")}

    def order(self, event_id: str, action: str, target: str, *by: str, **more: Any) -> None:
        """Give a command, bound to its target's content and with the gate's record of it; ``more`` says otherwise."""
        sending = {name: more.pop(name) for name in list(more) if name in SENDING}
        self.town.settle()
        about, said = (self.name, target), self.town.said.get((self.name, target))
        held, accepted = self.town.held.get(about), self.town.accepted.get(about)
        valid = more.pop("valid_ms", 900_000)
        expires = datetime.fromtimestamp((self.town.now_ms + valid) / 1_000, UTC)
        fields: dict[str, Any] = {"action": action, "target": target, "expires_at": expires}
        if said is not None and action != Action.APPEAL:
            fields["digest"] = said["content_digest"] or None
        if CARRIES[Action(action)]:
            fields["held"] = accepted or (held[0].sealed if held else None)
        self.publish(EventType.COMMAND, event_id, by or "reviewer", fields | more, **sending)

    def later(self, event_id: str) -> dict[str, Any]:
        """Return how a command names the second held write of an id."""
        self.town.settle()
        held = self.town.held[self.name, event_id][1]
        return {"held": held.sealed, "digest": held.digest, "parameters": {"offset": str(held.offset)}}

    def everybody(self, event_id: str, action: str, target: str, *by: str, **more: Any) -> None:
        """Give a command that is addressed to all tenants: the same bytes on every partition."""
        expires = datetime.fromtimestamp(self.town.now_ms / 1_000, UTC) + timedelta(hours=1)
        fields = {"tenant": "*", "action": action, "target": target, "expires_at": expires, **more}
        time = datetime.fromtimestamp((self.town.now_ms + TICK_MS) / 1_000, UTC)
        payload = MODELS[EventType.COMMAND].model_validate({"id": event_id, "time": time, **fields})
        message = build(payload, [ring.signer(name) for name in by], source="/everybody")
        for partition in range(PARTITIONS):
            self.town.send(topic_of(payload), message, partition=partition)


SENDING = ("age_ms", "bend", "by", "late_ms", "partition", "structured", "topic", "traceparent")
"""What says how an event is sent, not what it says."""


def inside_admission(accepted: str) -> Any:
    """Return what an accepted record admits."""
    return json.loads(base64.b64decode(json.loads(accepted)["admission"]["payload"]))


def bent(message: Message, *, value: bytes | None = None, key: bytes | None = None, headers: Headers = ()) -> Message:
    """Return a message that somebody changed on its way; ``headers`` come in addition."""
    return Message(key or message.key, value if value is not None else message.value, (*message.headers, *headers))
