"""Guarded ingestion beside a plain script, on the same broker, the same store and the same real texts."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median, quantiles

from memsluice.client.build import Message
from memsluice.clock import wall_ms
from memsluice.envelope.dsse import Signer
from memsluice.errors import StackError
from memsluice.events.models import Write
from memsluice.events.names import TRACEPARENT, EventType
from memsluice.recall.freshness import verified
from memsluice.topics import names
from memsluice_lab.baselines import OWN_BATCHES
from memsluice_lab.figures.accounted import interleaved, tenants_of, unhurried
from memsluice_lab.figures.bed import STAGES, Bed, Sender, Worker, bed, messages, tail
from memsluice_lab.figures.plain import OWN
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import Published, signed

SATURATED_EVENTS = 10_000
"""Events of the streams at most, about half of them writes; the others go ahead: the gate decides on them."""
LIGHT_WRITES, LIGHT_GAP_S = 80, 0.4
WARM_EVENTS = 64
ROUNDS = 5
READY_S_MAX, THROUGH_S_MAX = 120, 420


class Plain:
    """The plain script as a child process; ``landed``: when each event's insert was acknowledged (Unix ms)."""

    def __init__(self, running: Bed, *options: str) -> None:
        self.landed: dict[str, int] = {}
        self._log = running.home / "logs" / "plain.log"
        command = [sys.executable, "-m", "memsluice_lab.figures.plain", str(running.home), *options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=dict(os.environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
            )
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        if not self._ready.wait(READY_S_MAX):
            raise StackError(f"the plain script did not start:\n{tail(self._log)}")

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            if line.startswith(b"{"):
                told = json.loads(line)
                self.landed |= dict.fromkeys(told["ids"], told["ms"])
            else:
                self._ready.set()

    def wait(self, ids: Sequence[str]) -> None:
        """Wait until all these are in the store. Raises StackError where the script dies or takes too long."""
        began = time.monotonic()
        while not all(event_id in self.landed for event_id in ids):
            if self._process.poll() is not None or time.monotonic() - began > THROUGH_S_MAX:
                missing = sum(event_id not in self.landed for event_id in ids)
                raise StackError(f"the plain script has not inserted {missing} of {len(ids)}:\n{tail(self._log)}")
            time.sleep(0.1)

    def close(self) -> None:
        """Kill it: it keeps nothing that is needed."""
        self._process.kill()
        self._process.wait()
        self._thread.join(10)


def _events(paths: Sequence[Path], run: str, count: int) -> list[Published]:
    found = (item for item in interleaved(paths, run) if isinstance(item, Published))
    return list(islice(found, count))


def _warm_events(paths: Sequence[Path], run: str) -> list[Published]:
    """Return the last events: *seal* remembers texts, and must not know those that are timed first."""
    found = (item for item in interleaved(paths, run) if isinstance(item, Published))
    return list(deque(found, WARM_EVENTS))


def burst(running: Bed, events: Sequence[Published], signers: Mapping[tuple[str, str], Signer]) -> int:
    """Publish events, signed beforehand, as fast as the broker takes them; return when that began (Unix ms).

    Each carries a sampled trace of its own, as the SDK's events do.
    """
    ready = [_traced(signed(event, signers)) for event in events]
    sender, began = Sender(running), wall_ms()
    for number, message in enumerate(ready):
        sender.send(number, *message)
    sender.flush()
    return began


def _traced(message: Message) -> Message:
    key, value, headers = message
    parent = f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01".encode()
    return Message(key, value, (*headers, (TRACEPARENT, parent)))


def landed_at(running: Bed) -> dict[str, int]:
    """Return when each event's object was acknowledged by the store and told on memory.store.v1 (Unix ms)."""
    keyring, found = running.store.keyring(), dict[str, int]()
    for message in messages(running, names.STORE):
        stored = verified(keyring, message.value())
        if stored is not None:
            found.setdefault(stored.event_id, message.timestamp()[1])
    return found


@contextmanager
def _both(setting: Setting) -> Iterator[tuple[Bed, Sequence[Path], Mapping[tuple[str, str], Signer]]]:
    with streams(setting) as paths, bed(setting, policy=unhurried()) as running:
        yield running, paths, running.signers(tenants_of(paths))


def _apart(events: Sequence[Published]) -> tuple[list[Published], list[Published]]:
    """Return what goes before (recalls, observations, openings), and the writes, each in order."""
    writes = [event for event in events if event.type is EventType.WRITE]
    return [event for event in events if event.type is not EventType.WRITE], writes


def _writes(events: Sequence[Published]) -> list[str]:
    return [event.payload.id for event in events if event.type is EventType.WRITE]


@dataclass(frozen=True, slots=True)
class Rate:
    """What one side of one round brought into the store."""

    landed: int
    seconds: float

    @property
    def per_s(self) -> float:
        """Landed writes a second."""
        return self.landed / self.seconds

    def __str__(self) -> str:
        return f"{self.landed:,} in {self.seconds:.1f} s = {self.per_s:.0f}/s"


@dataclass(frozen=True, slots=True)
class Burst:
    """A burst of a name of its own: the same texts each time, under other event ids."""

    running: Bed
    paths: Sequence[Path]
    signers: Mapping[tuple[str, str], Signer]
    options: tuple[str, ...] = ()
    """Of ``memsluice work``."""
    environment: Mapping[str, str] = field(default_factory=dict)
    events: int = SATURATED_EVENTS

    def warm(self, name: str) -> list[Published]:
        """Publish a few events, so that the timed ones meet warm processes."""
        events = _warm_events(self.paths, name)
        burst(self.running, events, self.signers)
        return events

    def prepare(self, name: str) -> tuple[list[Worker], list[Published]]:
        """Start the stages; what an earlier round left on the topic is decided before. Return them and the writes."""
        workers = [self.running.start(stage, options=self.options, environment=self.environment) for stage in STAGES]
        self.warm(f"w{name}")
        before, writes = _apart(_events(self.paths, name, self.events))
        burst(self.running, before, self.signers)
        self.running.drain(THROUGH_S_MAX)
        return workers, writes

    def publish(self, writes: Sequence[Published]) -> int:
        """Publish the writes, and wait until the stages are through; return when that began (Unix ms)."""
        began = burst(self.running, writes, self.signers)
        self.running.drain(THROUGH_S_MAX)
        return began

    def landed(self, writes: Sequence[Published]) -> list[int]:
        """Return when each of these that landed was acknowledged (Unix ms)."""
        wanted = set(_writes(writes))
        return [at for event_id, at in landed_at(self.running).items() if event_id in wanted]

    def through(self, writes: Sequence[Published]) -> tuple[int, list[int]]:
        """Publish the writes; return when that began, and when each that landed was acknowledged (Unix ms)."""
        return self.publish(writes), self.landed(writes)

    def guarded(self, name: str) -> Rate:
        """Time the stages."""
        workers, writes = self.prepare(name)
        began, landed = self.through(writes)
        self.running.stop(*workers)
        return Rate(len(landed), (max(landed) - began) / 1_000)

    def plain(self, name: str, *options: str) -> Rate:
        """Time the plain script."""
        script = Plain(self.running, *options)
        try:
            script.wait(_writes(self.warm(f"v{name}")))
            _, writes = _apart(_events(self.paths, name, self.events))
            began = burst(self.running, writes, self.signers)
            ids = _writes(writes)
            script.wait(ids)
            return Rate(len(ids), (max(script.landed[event_id] for event_id in ids) - began) / 1_000)
        finally:
            script.close()


def ingest_ratio(setting: Setting) -> Measured:
    """Landed writes a second, guarded over plain, from the first message of a burst to the last insert acknowledged.

    Both sides take turns on one machine; the figure is the median of the rounds' ratios.
    """
    return _in_turn(setting, (), _NOTE)


def gate_price(setting: Setting) -> Measured:
    """Landed writes a second, guarded over the same plain script with our encoder: what the gate itself costs."""
    return _in_turn(setting, (OWN,), _PRICE_NOTE)


def _in_turn(setting: Setting, options: tuple[str, ...], note: str) -> Measured:
    rounds = []
    with _both(setting) as (running, paths, signers):
        burst = Burst(running, paths, signers)
        for number in range(ROUNDS):
            rounds.append((burst.guarded(f"g{number}"), burst.plain(f"p{number}", *options)))
            guarded, plain = rounds[-1]
            setting.say(f"round {number + 1}: guarded {guarded}, plain {plain}: {guarded.per_s / plain.per_s:.2f}")
        writes = [event.payload for event in _events(paths, "", burst.events) if isinstance(event.payload, Write)]
    ratios = [guarded.per_s / plain.per_s for guarded, plain in rounds]
    repeated = len(writes) - len({(write.tenant, write.principal, write.content) for write in writes})
    rows = [
        ("rounds, guarded and plain in turn, the same texts each time", str(ROUNDS)),
        ("writes that repeat a text of their own writer, which seal may know", f"{repeated:,} of {len(writes):,}"),
    ]
    for number, (guarded, plain) in enumerate(rounds, 1):
        rows.append((f"round {number}: guarded; plain; ratio", f"{guarded}; {plain}; {ratios[number - 1]:.2f}"))
    return Measured(median(ratios), tuple(rows), (note,))


_GUARDED = (
    "Guarded: three workers (seal, screen, land), every write authenticated, embedded, decided on the recalls, "
    "observations and sessions that went before, audited and landed. "
)
_NOTE = (
    f"{_GUARDED}Plain: one process, no gate, SentenceTransformer.encode(batch_size=64) on full batches of 64, "
    "insert_many. Most of the ratio is our encoder's: gate_price has it on both sides."
)
_PRICE_NOTE = (
    f"{_GUARDED}Plain: one process, no gate, the gate's own encoder on full batches of {max(OWN_BATCHES)}, "
    "a part of each for every core, insert_many."
)


def lightly(running: Bed, writes: Sequence[Published], signers: Mapping[tuple[str, str], Signer]) -> dict[str, int]:
    """Publish one event now and then; return when each was handed to the producer (Unix ms)."""
    sender, told = Sender(running, running.producer(**{"linger.ms": 0})), dict[str, int]()
    for event in writes:
        message = signed(event, signers)
        told[event.payload.id] = wall_ms()
        sender.send(event.payload.id, *message)
        sender.flush()
        time.sleep(LIGHT_GAP_S)
    return told


def light_events(paths: Sequence[Path], run: str) -> tuple[list[Published], list[Published]]:
    """Return the sessions' openings and the writes of a light load."""
    events = _events(paths, run, 20 * LIGHT_WRITES)
    writes = [event for event in events if event.type is EventType.WRITE][:LIGHT_WRITES]
    return [event for event in events if event.payload.id.endswith(".open")], writes


def light_extra_ms(setting: Setting) -> Measured:
    """Median milliseconds from produce to insert acknowledged under light load: guarded minus plain."""
    with _both(setting) as (running, paths, signers):
        workers = [running.start(stage) for stage in STAGES]
        opened, writes = light_events(paths, "l")
        burst(running, [*opened, *_warm_events(paths, "w")], signers)
        running.drain(THROUGH_S_MAX)
        told = lightly(running, writes, signers)
        running.drain(THROUGH_S_MAX)
        landed = landed_at(running)
        guarded = [landed[event_id] - at for event_id, at in told.items() if event_id in landed]
        running.stop(*workers)
        setting.say(f"guarded: {len(guarded)} of {len(told)} landed")
        plain = Plain(running)
        warm = _warm_events(paths, "v")
        burst(running, warm, signers)
        plain.wait(_writes(warm))
        _, writes = light_events(paths, "q")
        told = lightly(running, writes, signers)
        plain.wait(list(told))
        unguarded = [plain.landed[event_id] - at for event_id, at in told.items()]
        plain.close()
    rows = (
        ("one write every", f"{LIGHT_GAP_S} s"),
        ("guarded: p50, p90 of landed writes", f"{spread(guarded)} of {len(guarded)}"),
        ("plain: p50, p90 of landed writes", f"{spread(unguarded)} of {len(unguarded)}"),
    )
    return Measured(median(guarded) - median(unguarded), rows, (_LIGHT_NOTE,))


_LIGHT_NOTE = "Guarded is timed to its record on memory.store.v1, which is written after the store's acknowledgement."


def spread(times: Sequence[int]) -> str:
    """Return median and ninth decile of times in ms."""
    return f"{median(times):.0f}, {quantiles(times, n=10)[8]:.0f} ms"
