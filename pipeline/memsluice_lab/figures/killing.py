"""Workers killed under load: nothing may be lost, doubled, or decided twice."""

import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path

from memsluice.envelope.dsse import Signer
from memsluice.errors import StackError
from memsluice.runtimes.kafka.faults import AFTER_CHANGELOG, AFTER_OUTPUT, AFTER_PROCESS, BEFORE_CHANGELOG, VARIABLE
from memsluice_lab.figures.accounted import interleaved, tenants_of, unhurried
from memsluice_lab.figures.bed import STAGES, Bed, Sender, Worker, bed, tail
from memsluice_lab.figures.ledger import Ledger, read
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import Published

KILLS = 20
IN_FLIGHT_MIN = 100
CHUNK = 400
BACKLOG = 600
"""Before each kill, records are added until this many are under way, more than IN_FLIGHT_MIN of them at the kill."""
PAUSE_S_MAX = 2.0
AGAIN_S_MAX = 120
DRAIN_S_MAX = 400
PLANTED_PASS = 137
VICTIMS: tuple[tuple[str, ...], ...] = (("seal",), ("screen",), ("land",), STAGES)
PLANTED = (
    ("seal", AFTER_PROCESS),
    ("seal", AFTER_OUTPUT),
    ("screen", BEFORE_CHANGELOG),
    ("screen", AFTER_CHANGELOG),
    ("screen", AFTER_PROCESS),
    ("screen", AFTER_OUTPUT),
    ("land", AFTER_PROCESS),
    ("land", AFTER_OUTPUT),
)
"""Every named point before a commit where a stage has something to lose; only *screen* has a changelog."""


@dataclass(slots=True)
class Feed:
    """Real streams without end: after the last event they start again, as another run."""

    bed: Bed
    paths: Sequence[Path]
    signers: Mapping[tuple[str, str], Signer]
    sender: Sender
    _events: Iterator[Published] | None = None

    def more(self, count: int) -> None:
        """Publish that many more events, and wait until the broker has them."""
        if self._events is None:
            self._events = self._forever()
        for event in islice(self._events, count):
            self.sender.publish(event, self.signers)
        self.sender.flush()

    def _forever(self) -> Iterator[Published]:
        run = 0
        while True:
            yield from (item for item in interleaved(self.paths, f"k{run}") if isinstance(item, Published))
            run += 1


@dataclass(slots=True)
class Killing:
    """What was done to the workers, and what the books say after it."""

    ledger: Ledger
    events: int
    missing: list[str]
    in_flight: list[int] = field(default_factory=list)
    victims: list[tuple[str, ...]] = field(default_factory=list)


@dataclass(slots=True)
class Crew:
    """One worker a stage, and how much each stage had committed when its worker was started."""

    bed: Bed
    feed: Feed
    workers: dict[str, Worker] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)

    def hire(self, stage: str) -> None:
        """Start a stage's worker."""
        self.since[stage] = self.bed.committed(stage)
        self.workers[stage] = self.bed.start(stage)

    def at_work(self, stages: Sequence[str]) -> None:
        """Wait, under load, until each of these workers has committed something itself: only then is a kill a test."""
        began = time.monotonic()
        while any(self.bed.committed(stage) <= self.since[stage] for stage in stages):
            self.bed.check()
            if self.bed.lag() < BACKLOG:
                self.feed.more(CHUNK)
            if time.monotonic() - began > AGAIN_S_MAX:
                raise StackError(f"{stages} did not go on within {AGAIN_S_MAX} s; {self.bed.lag()} records wait")
            time.sleep(0.1)

    def kill(self, stages: Sequence[str]) -> None:
        """Kill -9 these workers, and start new ones."""
        for stage in stages:
            self.bed.kill(self.workers[stage])
        for stage in stages:
            self.hire(stage)


def _planted(crew: Crew, stage: str, point: str) -> None:
    """Run a stage into a planted kill -9 under load, then start it again."""
    running = crew.bed
    if stage in crew.workers:
        running.kill(crew.workers[stage])
    armed = running.start(stage, environment={VARIABLE: f"{point}:{PLANTED_PASS}"})
    began = time.monotonic()
    while armed.process.poll() is None:
        if running.lag() < BACKLOG:
            crew.feed.more(CHUNK)
        if time.monotonic() - began > AGAIN_S_MAX:
            raise StackError(f"{stage}: {point} was not reached within {AGAIN_S_MAX} s:\n{tail(armed.log)}")
        time.sleep(0.1)
    running.workers.remove(armed)
    code = armed.process.returncode
    if code != -signal.SIGKILL:
        raise StackError(f"{stage} ended with {code} instead of dying at {point}:\n{tail(armed.log)}")
    crew.hire(stage)


def _deck(chance: random.Random) -> list[tuple[str, ...]]:
    """Return whom each random kill strikes: every stage alone and all at once equally often, in random order."""
    deck = [VICTIMS[number % len(VICTIMS)] for number in range(KILLS)]
    chance.shuffle(deck)
    return deck


@lru_cache(maxsize=1)
def kill_all(setting: Setting, *, seed: int = 9) -> Killing:
    """Kill workers at every planted point, and at random moments; then let everything through, and read the books.

    Both figures come from the same run where they are measured together.
    """
    chance = random.Random(seed)  # noqa: S311 - chooses victims and moments, guards nothing
    with streams(setting) as paths, bed(setting, policy=unhurried()) as running:
        feed = Feed(running, paths, running.signers(tenants_of(paths)), Sender(running))
        feed.more(BACKLOG)
        crew = Crew(running, feed)
        for stage in STAGES:
            crew.hire(stage)
        for stage, point in PLANTED:
            crew.at_work([stage])
            _planted(crew, stage, point)
            setting.say(f"{stage} died {point}, and was started again")
        in_flight = []
        deck = _deck(chance)
        for number, chosen in enumerate(deck):
            crew.at_work(chosen)
            time.sleep(chance.uniform(0, PAUSE_S_MAX))
            while running.lag() < BACKLOG:
                feed.more(CHUNK)
            in_flight.append(running.lag())
            crew.kill(chosen)
            setting.say(f"kill {number + 1} of {KILLS}: {'+'.join(chosen)}, {in_flight[-1]} records under way")
        whole = sum(isinstance(item, Published) for item in interleaved(paths, ""))
        feed.more(max(0, whole - len(feed.sender.places)))
        setting.say(f"{len(feed.sender.places):,} events published: every stream whole, at least once")
        running.drain(DRAIN_S_MAX)
        ledger = read(running)
        places = feed.sender.places
        result = Killing(ledger, len(places), ledger.lost(places.values()), in_flight, deck)
        running.stop(*running.workers)
    return result


def _table(result: Killing) -> tuple[tuple[str, str], ...]:
    again = sum(count - 1 for count in result.ledger.sealed.values())
    kinds = ", ".join(f"{result.victims.count(name)} × {'+'.join(name)}" for name in VICTIMS)
    struck = ((stage, sum(stage in some for some in result.victims)) for stage in STAGES)
    points = {stage: [point for one, point in PLANTED if one == stage] for stage in STAGES}
    return (
        ("events published", f"{result.events:,}"),
        ("kill -9 at random moments", f"{len(result.victims)}: {kinds}"),
        (
            "… with records under way",
            f"at least {min(result.in_flight)}, median {sorted(result.in_flight)[KILLS // 2]}",
        ),
        *(
            (f"{stage} killed", f"{count} at random, {len(points[stage])} {', '.join(points[stage])}")
            for stage, count in struck
        ),
        ("intake records sealed again", f"{again:,}"),
        ("verdicts emitted again, byte for byte", f"{result.ledger.repeated:,}"),
        ("verdicts contradicting another", str(len(result.ledger.contradictions))),
        ("events without a verdict or with a dead letter, objects missing", str(len(result.missing))),
        ("objects taken out by look back", f"{result.ledger.taken_out():,}"),
        (
            "objects in the store, asked for and not taken out",
            f"{result.ledger.stored_count:,}, {len(result.ledger.expected()):,}",
        ),
    )


def _checked(result: Killing) -> Killing:
    if min(result.in_flight) <= IN_FLIGHT_MIN:
        raise StackError(
            f"a kill met only {min(result.in_flight)} records under way, more than {IN_FLIGHT_MIN} are needed"
        )
    return result


def kill9_lost(setting: Setting) -> Measured:
    """Events without a verdict, and objects that a verdict asked for and the store lacks."""
    result = _checked(kill_all(setting))
    return Measured(float(len(result.missing)), _table(result), tuple(result.missing[:10]))


def kill9_doubled(setting: Setting) -> Measured:
    """Objects that no verdict asked for, and verdicts that contradict another."""
    result = _checked(kill_all(setting))
    return Measured(float(result.ledger.doubled()), _table(result))
