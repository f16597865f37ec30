"""Two bursts of real texts through the real stack: one without the profiler, which costs are read from, one with it."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memsluice.devstack import control
from memsluice.errors import StackError
from memsluice.topics import names
from memsluice_lab.figures.accounted import tenants_of, unhurried
from memsluice_lab.figures.bed import STAGES, Bed, Worker, bed, messages
from memsluice_lab.figures.ingest import SATURATED_EVENTS, THROUGH_S_MAX, Burst, landed_at
from memsluice_lab.figures.ingest import burst as publish
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Setting
from memsluice_lab.profile.attaching import Profiler
from memsluice_lab.profile.processes import IDLE, Memory, Reading, memory, passed, spent, threads_of, watched
from memsluice_lab.profile.stacks import Weighed, parse, scaled, weighed
from memsluice_lab.streams import Published

EVENTS_DEFAULT = SATURATED_EVENTS
PRODUCER = "producer"
SERVERS = control.SERVICES
PROCESSES = (*STAGES, *SERVERS, PRODUCER)
TOPICS = (
    names.EVENTS, names.COMMANDS, names.OVERFLOW, names.SEALED, names.ACCEPTED, names.STORE, names.QUARANTINE,
    names.AUDIT, names.DEAD_LETTER, names.SCREEN_CHANGELOG,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a burst added to a topic: records, their bytes (key, value, headers), and the marks of transactions."""

    records: int
    size: int
    marks: int
    """Offsets that no record has: a transaction leaves one in each partition that it wrote to."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a burst without the profiler cost."""

    writes: int
    landed: int
    seconds: float
    """From the first message to the last acknowledgement of the store."""
    cpu_ms: Mapping[str, float]
    """Processor milliseconds a landed write, by process; the producer's with signing."""
    busy: float
    """Share of the cores' time in these seconds that the processes used, this one among them."""
    idle: float
    """… and that nobody used."""
    traffic: Mapping[str, Traffic]
    memory: Mapping[str, Memory]
    """When all is through, by process but for this one."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """What a worker's stacks cost, in milliseconds a landed write as the burst without the profiler has them."""

    stacks: Weighed
    samples: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Both bursts."""

    costs: Costs
    slower: float
    """How many times longer the burst took under the profiler."""
    workers: Mapping[str, Sampled]


def profile(setting: Setting, profiler: Profiler, folder: Path, events: int) -> Profile:
    """Measure a burst, and sample another. Raises MemsluiceError where something fails meanwhile."""
    with streams(setting) as paths, bed(setting, policy=unhurried()) as running:
        burst = Burst(running, paths, running.signers(tenants_of(paths)), events=events)
        found = costs(burst)
        setting.say(f"{found.landed:,} of {found.writes:,} writes landed in {found.seconds:.1f} s")
        seconds, workers = _sampled(burst, profiler, folder, found)
        setting.say(f"under the profiler in {seconds:.1f} s")
    return Profile(found, seconds / found.seconds, workers)


def costs(burst: Burst, name: str = "c") -> Costs:
    """Measure a burst, whose events' ids have ``name``. Raises MemsluiceError where something fails meanwhile."""
    running = burst.running
    workers, writes = burst.prepare(name)
    before = {topic: running.ends(topic) for topic in TOPICS}
    pids = _pids(running, workers)
    with watched(pids) as readings:
        own_s = time.process_time()
        began = publish(running, writes, burst.signers)
        own_s = time.process_time() - own_s
        running.drain(THROUGH_S_MAX)
    occupied = {name: memory(pid) for name, pid in pids.items() if name != PRODUCER}
    landed = _landed(running, writes)
    traffic = {topic: _traffic(running, topic, before[topic]) for topic in TOPICS}
    running.stop(*workers)
    return costs_of(readings, began, landed, writes=len(writes), own_s=own_s, traffic=traffic, occupied=occupied)


def costs_of(
    readings: Sequence[Reading],
    began: int,
    landed: Sequence[int],
    *,
    writes: int,
    own_s: float,
    traffic: Mapping[str, Traffic],
    occupied: Mapping[str, Memory],
) -> Costs:
    """Return the costs from readings, when the burst began, and when each write landed (Unix ms).

    A process pays to the end of the readings, where all is committed; the cores are looked at until the last landing.
    """
    cpu_s = {**passed(readings, began, readings[-1].at_ms)[1], PRODUCER: own_s}
    seconds, loaded_s = passed(readings, began, max(landed))
    idle_s = loaded_s.pop(IDLE)
    cores_s = seconds * len(os.sched_getaffinity(0))
    return Costs(
        writes,
        len(landed),
        (max(landed) - began) / 1_000,
        {name: 1_000 * cpu_s[name] / len(landed) for name in PROCESSES},
        sum(loaded_s.values()) / cores_s,
        idle_s / cores_s,
        traffic,
        occupied,
    )


def _sampled(burst: Burst, profiler: Profiler, folder: Path, of_burst: Costs) -> tuple[float, dict[str, Sampled]]:
    """Run a burst under the profiler; return how long it took, and what it saw of each worker."""
    running = burst.running
    workers, writes = burst.prepare("p")
    pids = {stage: worker.process.pid for stage, worker in zip(STAGES, workers, strict=True)}
    with profiler.on(pids, folder) as files:
        before = {stage: threads_of(pid) for stage, pid in pids.items()}
        began = publish(running, writes, burst.signers)
        running.drain(THROUGH_S_MAX)
        used = {stage: spent(before[stage], threads_of(pid)) for stage, pid in pids.items()}
    landed = _landed(running, writes)
    running.stop(*workers)
    found = {}
    for stage, file in files.items():
        stacks = parse(file.read_text(encoding="utf-8"))
        cost = scaled(weighed(stacks, used[stage]), of_burst.cpu_ms[stage])
        found[stage] = Sampled(cost, sum(one.samples for one in stacks))
    return (max(landed) - began) / 1_000, found


def _pids(running: Bed, workers: Iterable[Worker]) -> dict[str, int]:
    """Return the numbers of all processes that take part. Raises StackError where a server does not run."""
    found = {worker.stages[0]: worker.process.pid for worker in workers}
    for row in control.status(running.home):
        if row.pid is None:
            raise StackError(f"{row.name} does not run: {row.why}")
        found[row.name] = row.pid
    return {**found, PRODUCER: os.getpid()}


def _landed(running: Bed, writes: Sequence[Published]) -> list[int]:
    """Return when each write that landed was acknowledged (Unix ms). Raises StackError where none was."""
    wanted = {event.payload.id for event in writes}
    landed = [at for event_id, at in landed_at(running).items() if event_id in wanted]
    if not landed:
        raise StackError(f"none of {len(wanted)} writes landed")
    return landed


def _traffic(running: Bed, topic: str, before: Sequence[int]) -> Traffic:
    ends, records, size = running.ends(topic), 0, 0
    for message in messages(running, topic, ends):
        if message.offset() < before[message.partition()]:
            continue
        records += 1
        size += len(message.key() or b"") + len(message.value() or b"")
        size += sum(len(name) + len(value or b"") for name, value in message.headers() or ())
    return Traffic(records, size, sum(ends) - sum(before) - records)
