"""The faults of a history: which, when and for how long, drawn before it begins."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from memsluice.envelope.keys import Purpose
from memsluice.topics import names
from memsluice_lab.simulation.broker import TP
from memsluice_lab.simulation.pipeline import Pipeline
from memsluice_lab.simulation.scheduler import STAGES
from memsluice_lab.simulation.worker import Worker
from memsluice_lab.simulation.world import PARTITIONS, TENANTS

WEIGHTS: Final = {
    "crash": 14, "pause": 16, "join": 5, "rebalance": 5, "lose_disk": 4, "old_disk": 3, "sink_down": 4, "sink_mood": 8,
    "broker_down": 5, "lost_answers": 4, "rotate": 4, "revoke_credential": 4, "clock": 5, "compact": 8, "sweep": 4,
    "storm": 3, "sink_put_back": 4, "leader_away": 10, "slow_link": 6,
}  # fmt: skip
MORE_TOPICS: Final = {"seal": (names.DEAD_LETTER,), "screen": (names.SCREEN_CHANGELOG,), "land": ()}
CALM: Final = ("sink_mood", "rotate", "revoke_credential", "compact", "lose_disk", "old_disk", "broker_down")
"""Faults after which nobody writes to the store late."""


@dataclass(slots=True)
class Plan:
    """Faults by the event after which they happen."""

    due: list[tuple[int, int, str]]
    fired: list[str] = field(default_factory=list)

    def left(self) -> bool:
        """Whether a fault is still to come."""
        return bool(self.due)

    def passed(self, history: Pipeline) -> None:
        """Be told of one more event; what is due happens."""
        while self.due and self.due[0][0] <= history.published:
            _, number, name = self.due.pop(0)
            if number in history.options.drop:
                continue
            self.fired.append(name)
            history.told.counts[f"fault: {name}"] += 1
            history.note(f"fault {number}: {name}")
            FAULTS[name](history)


def drawn(history: Pipeline) -> Plan:
    """Return a history's faults."""
    chance, options = history.chance, history.options
    number = chance.randint(options.faults_min, options.faults_max)
    weights = {name: weight for name, weight in WEIGHTS.items() if not history.calm or name in CALM}
    kinds = chance.choices(tuple(weights), tuple(weights.values()), k=number)
    places = sorted(chance.randint(20, options.events) for _ in kinds)
    return Plan([(place, count, kind) for count, (place, kind) in enumerate(zip(places, kinds, strict=True))])


def _crash(history: Pipeline) -> None:
    """A process dies, as often as not in the middle of its work."""
    chance, stage = history.chance, history.chance.choice(STAGES)
    if chance.random() < 0.5:
        _kill_one(history, stage)
    elif workers := history.of(stage):
        worker = chance.choice(workers)
        history.when_busy[worker] = _turns(history), lambda: _kill(history, worker)


def _kill_one(history: Pipeline, stage: str, waiting_for: TP | None = None) -> None:
    """Kill a process, one that waits for a partition where there is such."""
    chance, workers = history.chance, history.of(stage)
    waiting = [each for each in workers if any(one.tp == waiting_for for one in each.wire.requests)]
    workers = (waiting if waiting_for else []) or workers
    if workers:
        _kill(history, chance.choice(workers))


def _kill(history: Pipeline, worker: Worker) -> None:
    chance = history.chance
    history.note(f"kill {worker.name}")
    history.kill(worker, restart_s=chance.choice((0.5, 3.0)), unheard_s=chance.choice((None, 0.3, 30.0)))


def _lose_disk(history: Pipeline) -> None:
    workers = history.of("screen")
    if workers:
        history.kill(history.chance.choice(workers), restart_s=1.0, lost_disk=True, unheard_s=None)


def _old_disk(history: Pipeline) -> None:
    """A worker comes back on a copy of its disk that was made some time ago."""
    workers = history.of("screen")
    if not workers:
        return
    worker = history.chance.choice(workers)
    copy = {number: store.copy() for number, store in worker.disk.items()}

    def put_back() -> None:
        if not worker.dead:
            worker.disk = copy
            history.kill(worker, restart_s=0.5)

    history.at(history.chance.choice((0.5, 5.0)), put_back)


def _pause(history: Pipeline) -> None:
    """A process stands still; another one takes over, or not; the first one wakes up."""
    chance = history.chance
    stage = chance.choice(("screen", "land", "screen", "land", "seal"))
    workers = [worker for worker in history.of(stage) if not worker.paused]
    if not workers:
        return
    worker, pause_s = chance.choice(workers), chance.choice((5.0, 14.0, 14.0, 40.0))
    history.when_busy[worker] = _turns(history), lambda: _stand_still(history, worker, pause_s)


def _turns(history: Pipeline) -> int:
    """Return how many turns a process still has with records in work: it stops anywhere in a transaction."""
    return history.chance.choice((0, 3, 8, 20))


def _stand_still(history: Pipeline, worker: Worker, pause_s: float) -> None:
    chance, stage = history.chance, worker.spec.name
    worker.paused = True
    history.note(f"pause {worker.name} for {pause_s} s, {worker.runner.held} records in work")
    if len(history.of(stage)) < 2 or chance.random() < 0.5:
        history.start(stage)
    if chance.random() < 0.4:
        _slow_link(history, stage)
    if chance.random() < 0.7:
        history.at(chance.uniform(0.0, pause_s), history.groups[stage].rebalance)

    def wake() -> None:
        worker.paused = False
        history.note(f"wake {worker.name}")

    history.at(pause_s, wake)


def _join(history: Pipeline) -> None:
    stage = history.chance.choice(STAGES)
    if len(history.of(stage)) < 3:
        history.start(stage)


def _rebalance(history: Pipeline) -> None:
    history.groups[history.chance.choice(STAGES)].rebalance()


def _storm(history: Pipeline) -> None:
    for number in range(5):
        history.at(number * history.chance.choice((0.05, 1.0)), lambda: _rebalance(history))


def _sink_down(history: Pipeline) -> None:
    history.staging.down_until_s = history.clock.now_s + history.chance.choice((0.5, 5.0, 60.0))


def _sink_mood(history: Pipeline) -> None:
    """The store's next answers are lost, for some objects alone, or untrue; in a calm history it refuses nothing."""
    if history.calm:
        history.staging.moods.update(history.chance.choices(("answerless", "partial", "forgetful"), k=2))
    else:
        moods = ("answerless", "partial", "forgetful", "refusing")
        history.staging.moods.update(history.chance.choices(moods, (4, 4, 2, 3), k=3))


def _slow_link(history: Pipeline, stage: str = "") -> None:
    """What a process sends does not arrive for some time: what it does by itself it does."""
    workers = [worker for worker in history.of(stage or history.chance.choice(STAGES)) if not worker.paused]
    if not workers:
        return
    worker, slow_s = history.chance.choice(workers), history.chance.choice((0.3, 2.0, 12.0))

    def slow() -> None:
        worker.slow_until_s = history.clock.now_s + slow_s
        history.note(f"the link of {worker.name} is slow until {worker.slow_until_s:.1f} s")
        if history.chance.random() < 0.5:
            _drained(history, worker.spec.name, slow_s)

    if stage:
        slow()
    else:
        history.when_busy[worker] = _turns(history), slow


def _drained(history: Pipeline, stage: str, away_s: float) -> None:
    """Partitions go while nothing can be written: where that is for longer than a drain, what is under way is given
    up. And they go once more, so that as often as not they come back to who had them."""
    group = history.groups[stage]
    history.at(history.chance.random() * away_s / 4, group.rebalance)
    history.at(away_s + history.chance.random(), group.rebalance)


def _leader_away(history: Pipeline) -> None:
    """Nobody can write to a partition for a while; as often as not a process with work for it dies, or gives it up."""
    chance = history.chance
    stage = chance.choice(STAGES)
    topic = chance.choice((*history.specs[stage].outputs, *MORE_TOPICS[stage]))
    away_s = chance.choice((0.4, 2.0, 8.0))
    number = chance.randrange(PARTITIONS)
    history.away[topic, number] = history.clock.now_s + away_s
    history.note(f"the leader of {topic}[{number}] is away for {away_s} s")
    match chance.choice(("kill", "kill", "drain", "")):
        case "kill":
            history.at(away_s * chance.random(), lambda: _kill_one(history, stage, (topic, number)))
        case "drain":
            _drained(history, stage, away_s)


def _sink_put_back(history: Pipeline) -> None:
    """The store is put back from a copy that was made some time ago."""
    copy = {name: dict(held) for name, held in history.store.partitions.items()}

    def put_back() -> None:
        history.note("the store is put back from a copy")
        for name, held in history.store.partitions.items():
            held.clear()
            held.update(copy.get(name, {}))

    history.at(history.chance.choice((0.2, 2.0)), put_back)


def _broker_down(history: Pipeline) -> None:
    history.broker.down = True
    history.broker_down_until_s = history.clock.now_s + history.chance.choice((0.3, 3.0, 40.0))


def _lost_answers(history: Pipeline) -> None:
    history.answers_lost += history.chance.randint(1, 3)


def _rotate(history: Pipeline) -> None:
    purpose = history.chance.choice((Purpose.SEAL, Purpose.SEAL, Purpose.ADMISSION))
    now_ms = max(history.now_ms(who) for who in history.skew_ms)
    history.note(f"rotate to {history.world.rotate(purpose, history.clock.now_s, now_ms)}")


def _revoke_credential(history: Pipeline) -> None:
    tenant, source = history.chance.choice(TENANTS), history.chance.choice(("agent", "user", "web", "runtime"))
    history.note(f"revoke {history.world.revoke(tenant, source, history.clock.now_s)}")


def _clock(history: Pipeline) -> None:
    """A clock is set, back or forward."""
    who = history.chance.choice(sorted(history.skew_ms))
    history.skew_ms[who] += history.chance.choice((-200_000, -3_000, 1_000, 60_000, 1_200_000))
    history.note(f"the clock of {who} is off by {history.skew_ms[who]} ms")


def _compact(history: Pipeline) -> None:
    for topic in (names.SCREEN_CHANGELOG, names.STORE):
        for log in history.broker.logs(topic):
            history.note(f"compact {topic}[{log.name[1]}]: {log.compact()} records less")


def _sweep(history: Pipeline) -> None:
    for worker in history.of("land"):
        if not worker.paused and worker.consumer.flowing:
            history.staging.sweep_later(worker)


FAULTS: Final[dict[str, Callable[[Pipeline], None]]] = {
    "crash": _crash,
    "pause": _pause,
    "join": _join,
    "rebalance": _rebalance,
    "lose_disk": _lose_disk,
    "old_disk": _old_disk,
    "sink_down": _sink_down,
    "sink_mood": _sink_mood,
    "broker_down": _broker_down,
    "lost_answers": _lost_answers,
    "rotate": _rotate,
    "revoke_credential": _revoke_credential,
    "clock": _clock,
    "compact": _compact,
    "sweep": _sweep,
    "storm": _storm,
    "sink_put_back": _sink_put_back,
    "leader_away": _leader_away,
    "slow_link": _slow_link,
}
