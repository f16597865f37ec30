"""What a noisy tenant does to its neighbours, on the real stack: on its own partition of the log and on the others."""

import time
from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path
from random import Random
from statistics import quantiles

import yaml
from psutil import cpu_percent

from memsluice.client.build import Message, build
from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.envelope.dsse import Signer
from memsluice.envelope.records import stored_of_any, verdict_from_bytes
from memsluice.errors import StateError
from memsluice.events.models import Write
from memsluice.events.partition import partition_of
from memsluice.topics import names
from memsluice_lab.figures.accounted import unhurried
from memsluice_lab.figures.bed import STAGES, Bed, Sender, bed, messages
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import read_stream

NOISY = "noisy"
BESIDE, ELSEWHERE = 2, 4
"""Neighbours on the noisy tenant's partition, and on others."""
LOAD = 0.5
"""Share of what the stages can land a second that all tenants write together while it is quiet, each as much."""
LOUD = 10
"""The noisy tenant's rate over its quiet one."""
BURST = 600
"""Writes by which it is found out how many the stages land a second where many share a transaction."""
EVENLY = 0.35
"""Share of that which is written one by one, to find out how much of the machine it takes: about what is written later.
At a lower rate the processors' threads do not share cores yet, and the machine seems to carry more."""
QUIET, NOISE = ("quiet", "quiet-again"), ("loud", "loud-again")
PHASES = dict.fromkeys(QUIET, 1) | dict.fromkeys(NOISE, LOUD)
"""The noisy tenant's rate in each, over the others'. Two of each kind, taken together: the percentile of one alone goes
by a few events, and by whatever else the machine does in these seconds."""
SECONDS = 90
WARM_SECONDS = 10
EVENLY_SECONDS = 20
SHARE_S = 1
"""Seconds of a tenant's fair share that may come at once."""
THROUGH_S_MAX = 400
PERCENTILE = 99
LANDED_MIN = 100
RIGHT = 0.9
"""Share of its quota that is decided of the noisy tenant while it is loud, at least: starving it would be easy."""


@dataclass(frozen=True, slots=True)
class Town:
    """Who writes, what, and by which keys. One producer for all phases: a new one sends its first second at once."""

    running: Bed
    sender: Sender
    signers: Mapping[tuple[str, str], Signer]
    beside: tuple[str, ...]
    elsewhere: tuple[str, ...]
    texts: Sequence[str]

    def series(self) -> dict[str, Iterator[str]]:
        """Return what each tenant writes, one text after the other: all texts, in an order of its own that is the same
        in every phase. In the order of their streams the loud phase would have come to other, longer ones."""
        tenants = (NOISY, *self.beside, *self.elsewhere)
        orders = {tenant: Random(tenant) for tenant in tenants}  # noqa: S311 - a fixed order, not a secret
        return {tenant: cycle(order.sample(self.texts, len(self.texts))) for tenant, order in orders.items()}

    def capacity(self) -> float:
        """Return how many writes a second the stages land, of a burst spread over all tenants."""
        series = self.series()
        turns = zip(range(BURST), cycle(series), strict=False)
        ready = [self._write(f"burst-{number}", tenant, next(series[tenant])) for number, tenant in turns]
        began = time.monotonic()
        for number, message in enumerate(ready):
            self.sender.send(number, *message)
        self.sender.flush()
        self.running.drain(THROUGH_S_MAX)
        return BURST / (time.monotonic() - began)

    def evenly(self, burst: float) -> float:
        """Return how many writes a second the stages carry that come one by one, each with transactions of its own:
        a rate over the share of the machine's processors that were busy with it."""
        cpu_percent(None)
        rate, began = EVENLY * burst, time.monotonic()
        tenants = self.phase("evenly", rate / (1 + BESIDE + ELSEWHERE), 1, EVENLY_SECONDS)
        return len(tenants) / (time.monotonic() - began) / (cpu_percent(None) / 100)

    def phase(
        self, name: str, rate_per_s: float, loud: float, seconds: float, *, through: bool = True
    ) -> dict[str, str]:
        """Publish for some seconds, evenly; return the tenant of each event. ``loud`` multiplies the noisy rate.

        What the others write, and when, is the same in every phase of that length. ``through`` waits until all of it
        is landed or decided.
        """
        rates = {NOISY: rate_per_s * loud} | dict.fromkeys((*self.beside, *self.elsewhere), rate_per_s)
        due = sorted((number / rate, tenant) for tenant, rate in rates.items() for number in range(int(rate * seconds)))
        tenants, series = dict[str, str](), self.series()
        began = time.monotonic()
        for number, (at, tenant) in zip(count(), due, strict=False):
            time.sleep(max(0.0, began + at - time.monotonic()))
            event_id = f"{name}-{number}"
            tenants[event_id] = tenant
            self.sender.send(event_id, *self._write(event_id, tenant, next(series[tenant])))
        self.sender.flush()
        if through:
            self.running.drain(THROUGH_S_MAX)
        return tenants

    def limit(self, capacity: float) -> int:
        """Give every tenant its fair share of what the stages can, as an operator would; return it, events a second."""
        share = max(1, round(capacity / (1 + BESIDE + ELSEWHERE)))
        self.policy({**unhurried(), "intake": {"events_per_s": share, "burst": SHARE_S * share}})
        return share

    def policy(self, text: Mapping[str, object]) -> None:
        """Write the policy file that workers read when they start."""
        Home.at(self.running.home).policy_file.write_text(yaml.safe_dump(dict(text)), encoding="utf-8")

    def check_order(self, told: Mapping[str, str], landed: Collection[str]) -> int:
        """Return how many writes were decided. Raises StateError where one was not, or did not land though it was to,
        or a tenant's order was changed."""
        keyring, left = self.running.store.keyring(), set(told)
        last: dict[str, tuple[int, int]] = {}
        for message in messages(self.running, names.AUDIT):
            verdict = verdict_from_bytes(keyring, (message.key() or b"").decode(), message.value() or b"")
            before = last.get(verdict.tenant, (0, -1))
            if (verdict.chain_seq, verdict.offset) <= before or verdict.offset <= before[1]:
                raise StateError(f"{verdict.tenant}: offset {verdict.offset} was decided after {before[1]}")
            last[verdict.tenant] = (verdict.chain_seq, verdict.offset)
            left.discard(verdict.event_id)
            if verdict.object_id is not None and verdict.event_id in told and verdict.event_id not in landed:
                raise StateError(f"{verdict.tenant}: {verdict.event_id} was to land and did not")
        if left:
            raise StateError(f"{len(left)} of {len(told)} writes were not decided")
        return len(told)

    def decided_per_s(self, tenant: str, since_ms: int, until_ms: int) -> float:
        """Return how many of a tenant's events were decided a second, in a stretch of the broker's time."""
        keyring, many = self.running.store.keyring(), 0
        for message in messages(self.running, names.AUDIT):
            if since_ms <= message.timestamp()[1] < until_ms:
                verdict = verdict_from_bytes(keyring, (message.key() or b"").decode(), message.value() or b"")
                many += verdict.tenant == tenant
        return many / (until_ms - since_ms) * 1_000

    def _write(self, event_id: str, tenant: str, text: str) -> Message:
        payload = Write(
            id=event_id, tenant=tenant, time=datetime.fromtimestamp(wall_ms() / 1_000, UTC), agent="app",
            principal=f"p-{event_id}", session=f"s-{event_id}", content=text,
        )  # fmt: skip
        return build(payload, [self.signers[tenant, "user"]], source="urn:noisy")

    def latencies(self) -> dict[str, int]:
        """Return, of each event that landed, the milliseconds from its append to that of its store record."""
        keyring = self.running.store.keyring()
        appended = {}
        for message in messages(self.running, names.AUDIT):
            verdict = verdict_from_bytes(keyring, (message.key() or b"").decode(), message.value() or b"")
            appended[verdict.event_id] = verdict.append_ms
        found = dict[str, int]()
        for message in messages(self.running, names.STORE):
            stored = stored_of_any(keyring, message.value() or b"")
            if stored is not None and stored.event_id in appended:
                found.setdefault(stored.event_id, message.timestamp()[1] - appended[stored.event_id])
        return found


def neighbours() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return tenants on the noisy one's partition, and tenants on others, no two of which share one."""
    own = partition_of(NOISY, names.PARTITIONS)
    beside, others = list[str](), dict[int, str]()
    for number in count():
        name = f"neighbour-{number}"
        place = partition_of(name, names.PARTITIONS)
        if place == own and len(beside) < BESIDE:
            beside.append(name)
        elif place != own and len(others) < ELSEWHERE:
            others.setdefault(place, name)
        if len(beside) == BESIDE and len(others) == ELSEWHERE:
            return tuple(beside), tuple(others.values())
    raise AssertionError


def noisy_neighbour_ratio(setting: Setting) -> Measured:
    """p99 from intake to landed of the neighbours' writes, one tenant at LOUD times its rate over all at their usual.

    The worse of the neighbours on its partition and of those on others.
    """
    beside, elsewhere = neighbours()
    with streams(setting) as paths, bed(setting, policy=unhurried()) as running:
        texts = list(_texts(paths))
        signers = running.signers({NOISY, *beside, *elsewhere})
        town = Town(running, Sender(running), signers, beside, elsewhere, texts)
        rows, told = _played(town, setting)
        latencies, moved = town.latencies(), sum(1 for _ in messages(running, names.OVERFLOW))
        decided = town.check_order(ChainMap(*told.values()), latencies)
    rows += [
        ("writes that waited in the overflow", f"{moved:,}"),
        ("writes published, and decided, each tenant's in its order", f"{decided:,}"),
    ]
    ratios = list[float]()
    for where, some in (("on its partition", beside), ("on other partitions", elsewhere)):
        quiet, noise = (_high(ChainMap(*(told[name] for name in kind)), some, latencies) for kind in (QUIET, NOISE))
        ratios.append(noise / quiet)
        each = ", ".join(f"{_high(told[name], some, latencies):.0f}" for name in PHASES)
        rows.append((f"p{PERCENTILE} of neighbours {where}, quiet; noisy", f"{quiet:.0f} ms; {noise:.0f} ms"))
        rows.append(("… of each phase by itself", f"{each} ms"))
    mine = _high(ChainMap(*(told[name] for name in NOISE)), (NOISY,), latencies)
    rows.append((f"p{PERCENTILE} of the noisy tenant itself", f"{mine:.0f} ms"))
    return Measured(max(ratios), tuple(rows))


def _played(town: Town, setting: Setting) -> tuple[list[tuple[str, str]], dict[str, dict[str, str]]]:
    """Find out what the stages carry, give each tenant its share, and play all phases; what waits comes through once
    the quotas are gone. Returns rows of the table, and the tenants of the events of each phase."""
    running = town.running
    workers = [running.start(stage) for stage in STAGES]
    town.phase("warm", 1.0, 1, WARM_SECONDS)
    burst = town.capacity()
    capacity = town.evenly(burst)
    running.stop(*workers)
    share = town.limit(capacity)
    workers = [running.start(stage) for stage in STAGES]
    town.phase("again", 1.0, 1, WARM_SECONDS)
    rate = LOAD * capacity / (1 + BESIDE + ELSEWHERE)
    setting.say(
        f"{burst:.0f} writes a second of a burst, {capacity:.0f} one by one: each may {share}, writes {rate:.1f}"
    )
    told = dict[str, dict[str, str]]()
    for name, times in PHASES.items():
        if name == NOISE[0]:
            loud_ms = wall_ms()
        told[name] = town.phase(name, rate, times, SECONDS, through=times == 1)
        setting.say(f"{name}: {len(told[name]):,} writes published")
    given = town.decided_per_s(NOISY, loud_ms, wall_ms())
    if given < RIGHT * share:
        raise StateError(f"{given:.1f} writes a second of the noisy tenant were decided, of the {share} of its quota")
    running.stop(*workers)
    town.policy(unhurried())
    workers = [running.start(stage) for stage in STAGES]
    running.drain(THROUGH_S_MAX)
    running.stop(*workers)
    rows = [
        ("writes a second that the stages land of a burst; one by one, extrapolated", f"{burst:.0f}; {capacity:.0f}"),
        ("tenants; writes a second of each; noisy", f"{1 + BESIDE + ELSEWHERE}; {rate:.1f}; x {LOUD}"),
        ("quota of each: its fair share of what they land", f"{share} a second, {SHARE_S * share} at once"),
        ("writes a second of the noisy tenant that were decided while it was loud", f"{given:.1f}"),
    ]
    return rows, told


def _texts(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        yield from (str(line["text"]) for line in read_stream(path) if line["kind"] == "write")


def _high(tenants: Mapping[str, str], some: Sequence[str], latencies: Mapping[str, int]) -> float:
    """Return the high percentile of some tenants' latencies, in ms. Raises StateError where too few landed."""
    found = [latencies[event_id] for event_id, tenant in tenants.items() if tenant in some and event_id in latencies]
    if len(found) < LANDED_MIN:
        raise StateError(f"only {len(found)} writes of {', '.join(some)} landed")
    return quantiles(found, n=100)[PERCENTILE - 1]
