"""The scheduler: processes, their connections and time, every choice drawn from one seed."""

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, Final

from aiokafka.errors import RequestTimedOutError

from memsluice.runtimes.kafka.spec import Tuning
from memsluice_lab.simulation.broker import TP, Broker
from memsluice_lab.simulation.groups import Group
from memsluice_lab.simulation.loop import Clock
from memsluice_lab.simulation.producers import Request
from memsluice_lab.simulation.specs import spec_of
from memsluice_lab.simulation.worker import EXPECTED, Killed, Worker
from memsluice_lab.simulation.world import PARTITIONS, T0_MS

STAGES: Final = ("seal", "screen", "land")
STEPS_MAX: Final = 400_000
"""A history that is not through by then is stuck: that is a violation."""
DEPTH_MAX: Final = 3
"""Calls of threads that may stand still one inside of the other."""
TRANSACTION_S: Final = Tuning().transaction_timeout_s
BURSTS: Final = (1, 2, 5, 20, 100, 1_000)
WAKES: Final = 0.8
SLOW_TO_TAKE_OVER: Final = 0.4
STARVED: Final = ("process", "link", "all")
"""What of a process gets no turn for some steps: itself, what it sent, or both."""
TURNS: Final = (4, 12, 40, 120)
LATE: Final = 0.6
"""How many of a dead process's requests, which are on their way, arrive late instead of never."""
LATE_S: Final = (0.0, 0.4, 2.0, None, None)
"""How late; None: just when somebody takes over what the dead one had, or by then."""
LATEST_S: Final = 15.0
ENDED_MAX: Final = 20
"""Processes that end as they must not, until the history is given up."""


class StuckError(Exception):
    """A history that comes to no end."""


@dataclass(slots=True)
class Told:
    """What a history has to say."""

    violations: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    digest: Any = field(default_factory=sha256)


class Scheduler(ABC):
    """Runs processes over one broker, a step at a time."""

    def __init__(self, chance: random.Random, *, trace: bool) -> None:
        self.chance = chance
        self.clock = Clock()
        self.told = Told()
        self.steps = 0
        self.skew_ms = {"broker": 0, **dict.fromkeys(STAGES, 0)}
        """How far somebody's wall clock is off."""
        self.broker = Broker(lambda: self.clock.now_s, partial(self.now_ms, "broker"))
        self.broker_down_until_s = 0.0
        self.away: dict[TP, float] = {}
        """Partitions whose leader is away, and until when (seconds)."""
        self.answers_lost = 0
        """How many of the broker's next answers are lost."""
        self.when_busy: dict[Worker, tuple[int, Callable[[], object]]] = {}
        """What happens to a process with records in work, and after how many turns more."""
        self.eagerness = 0.1
        self.pace_s = 0.3
        """How much time passes at most while somebody could go on."""
        self.starving = 0.01
        """How often somebody is starved, a step."""
        self._then: dict[str, list[Callable[[], object]]] = {}
        """What comes late, just when somebody of a stage takes over."""
        self._soon: list[tuple[int, Callable[[], object]]] = []
        """What happens at a step."""
        self._starved: dict[Worker, tuple[str, int]] = {}
        """Processes that get no turn: what of them, and until which step."""
        self.workers: list[Worker] = []
        self.specs = {name: spec_of(name) for name in STAGES}
        self.groups = {name: Group(spec, PARTITIONS, self.clock, chance) for name, spec in self.specs.items()}
        self.later: list[tuple[float, int, Callable[[], object]]] = []
        """What happens at a time, in seconds."""
        self._trace = trace
        self._depth = 0
        self._started = 0

    @abstractmethod
    def make(self, stage: str, worker: Worker) -> Any:
        """Return a process's stage object."""

    @abstractmethod
    def may_publish(self) -> bool:
        """Whether there are events left."""

    @abstractmethod
    def publish(self, number: int) -> None:
        """Publish so many events."""

    # --- time, trace ---

    def now_ms(self, who: str) -> int:
        """Return somebody's wall clock, Unix ms."""
        return T0_MS + int(self.clock.now_s * 1000) + self.skew_ms[who]

    def note(self, what: str) -> None:
        """Write a line of the trace; every line is part of the history's digest."""
        self.told.digest.update(what.encode())
        if self._trace:
            self.told.trace.append(f"{self.steps:>7} {self.clock.now_s:9.2f}s {what}")

    def violation(self, what: str) -> None:
        """Note what must not happen."""
        self.note(f"VIOLATION {what}")
        self.told.violations.append(what)

    def at(self, delay_s: float, what: Callable[[], object]) -> None:
        """Do something after a time."""
        self.later.append((self.clock.now_s + delay_s, len(self.later), what))
        self.later.sort(key=lambda each: each[:2])

    # --- processes ---

    def start(self, stage: str, disk: Any = None, instead_of: Worker | None = None) -> Worker:
        """Start a process of a stage; on a disk, and under the name of another one, where they are given."""
        self._started += 1
        worker = Worker(
            f"{stage}-{self._started}", self.specs[stage], self.broker, self.clock,
            {} if disk is None else disk, self.violation, partial(self.make, stage),
        )  # fmt: skip
        self.workers.append(worker)
        if instead_of is not None:
            self.groups[stage].replace(instead_of.consumer, worker.consumer)
        else:
            self.groups[stage].join(worker.consumer)
        self.note(f"start {worker.name}")
        if instead_of is not None:
            self._taken_over(stage)
        return worker

    def kill(
        self, worker: Worker, *, restart_s: float, lost_disk: bool = False, unheard_s: float | None = None
    ) -> None:
        """End a process; another one is started on its disk. ``unheard_s``: after so long its group forgets it."""
        if worker.dead:
            return
        while worker.wire.requests and self.chance.random() < 0.5 and not self.broker.down:
            if not (can := self._arriving(worker)):
                break
            worker.wire.deliver(can[0])  # what was on its way may arrive all the same
        for request in worker.wire.requests:
            if self.chance.random() < LATE:  # or late: it waits in the broker's buffers
                self._arrives_late(worker, request)
        worker.kill()
        self.workers.remove(worker)
        disk = {} if lost_disk else worker.disk
        stage = worker.spec.name
        if unheard_s is not None:
            self.at(min(unheard_s, restart_s), partial(self.groups[stage].leave, worker.consumer))
            self.at(restart_s, lambda: self.start(stage, disk))
        else:
            self.at(restart_s, lambda: self.start(stage, disk, instead_of=worker))

    def _arrives_late(self, worker: Worker, request: Request) -> None:
        def arrive() -> None:
            if not request.gone:
                taken = request.arrive()
                self.note(f"a request of {worker.name}, which is dead, {'arrives' if taken else 'is refused'}")

        after_s = self.chance.choice(LATE_S)
        if after_s is None:
            self._then.setdefault(worker.spec.name, []).append(arrive)
        self.at(LATEST_S if after_s is None else after_s, arrive)

    def starve(self, worker: Worker, what: str, steps: int) -> None:
        """Give a process no turn for some steps, unless nobody else has anything to do."""
        self._starved[worker] = what, self.steps + steps
        self.note(f"starve {worker.name} ({what}) for {steps} steps")

    def _is_starved(self, worker: Worker, what: str) -> bool:
        which, until = self._starved.get(worker, ("", 0))
        return which in (what, "all") and self.steps < until

    def of(self, stage: str) -> list[Worker]:
        """Return a stage's processes."""
        return [worker for worker in self.workers if worker.spec.name == stage]

    def _failures(self) -> None:
        for worker in list(self.workers):
            error = worker.failure()
            if error is None or worker.paused:
                continue
            self.note(f"{worker.name} ended: {error!r}"[:300])
            self.told.counts[f"ended: {type(error).__name__}"] += 1
            if not isinstance(error, EXPECTED):
                self.violation(f"stopped: {worker.name} ended with {error!r}"[:400])
                if len(self.told.violations) > ENDED_MAX:
                    raise StuckError
            static = self.chance.random() < 0.5
            self.kill(worker, restart_s=0.5, unheard_s=None if static else 0.2)

    def meanwhile(self, worker: Worker, steps: int) -> None:
        """Let everything else go on while a call of a process stands still. Raises Killed where it does not live on."""
        if self._depth >= DEPTH_MAX:
            return
        self._depth += 1
        try:
            for _ in range(steps):
                self.step()
                if worker.dead:
                    raise Killed
        finally:
            self._depth -= 1
        while worker.paused and not worker.dead:
            self.step_or_pass()
        if worker.dead:
            raise Killed

    # --- steps ---

    def step_or_pass(self) -> None:
        """Do one step; let time pass where nothing can be done."""
        if not self.step():
            self.let_pass(self._next_s())

    def step(self) -> bool:
        """Do one thing; return False where there was nothing to do but to wait."""
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise StuckError
        self._housekeeping()
        chance = self.chance
        if self.may_publish() and chance.random() < self.eagerness:
            self.publish(chance.choice((1, 1, 1, 3, 8)))
            return True
        if chance.random() < self.starving and self.workers:
            self.starve(chance.choice(self.workers), chance.choice(STARVED), chance.choice(TURNS))
        if chance.random() < 0.03:
            self.let_pass(self.clock.now_s + chance.choice((0.001, 0.02, self.pace_s)))
        workers = self.workers
        if not workers:
            return False
        first = chance.randrange(len(workers))
        for number in range(len(workers)):
            if self._act(workers[(first + number) % len(workers)]):
                return True
        if self._starved:  # nobody else has anything to do
            self._starved.clear()
            return True
        if self.may_publish():
            self.publish(1)
            return True
        return False

    def _act(self, worker: Worker) -> bool:
        """Let one process, or its connection, do one thing."""
        chance, can = self.chance, []
        if worker in self.when_busy and worker.runner.held:
            turns, what = self.when_busy[worker]
            if turns <= 0:
                del self.when_busy[worker]
                what()
                return True
            self.when_busy[worker] = turns - 1, what
        runs, arrives = True, True
        if worker in self._starved:
            runs, arrives = not self._is_starved(worker, "process"), not self._is_starved(worker, "link")
        if runs and worker.may_run():
            can.append("run")
        if runs and worker.may_call():
            can.append("call")
        if worker.wire.requests and arrives and not self.broker.down and self._arriving(worker):
            can.append("deliver")
        tps = [] if worker.paused else worker.consumer.wants()
        if tps:
            can.append("fetch")
        if not can:
            return False
        match can[0] if len(can) == 1 else chance.choice(can):
            case "run":
                worker.loop.run(chance.choice(BURSTS))
            case "call":
                worker.call()
            case "deliver":
                self._deliver(worker)
            case _:
                tp = tps[0] if len(tps) == 1 else chance.choice(tps)
                worker.consumer.fetch(tp, chance.choice((1, 3, 10, 50)))
        return True

    def _arriving(self, worker: Worker) -> Sequence[int]:
        """Return which requests of a process can arrive: those to a partition whose leader is away can not."""
        if self.clock.now_s < worker.slow_until_s:
            return ()
        if not self.away:
            return range(len(worker.wire.requests))
        for tp in [tp for tp, until_s in self.away.items() if until_s <= self.clock.now_s]:
            del self.away[tp]
        return [n for n, request in enumerate(worker.wire.requests) if request.tp not in self.away]

    def _deliver(self, worker: Worker) -> None:
        can = self._arriving(worker)
        number = self.chance.choice(can) if len(can) > 1 and self.chance.random() < 0.2 else can[0]
        lost = RequestTimedOutError() if self.answers_lost else None
        if lost is not None:
            self.answers_lost -= 1
            self.note(f"an answer to {worker.name} is lost")
        worker.wire.deliver(number, lost)

    def _housekeeping(self) -> None:
        now_s = self.clock.now_s
        while self.later and self.later[0][0] <= now_s:
            self.later.pop(0)[2]()
        if self._soon:
            due = [what for step, what in self._soon if step <= self.steps]
            self._soon = [each for each in self._soon if each[0] > self.steps]
            for what in due:
                what()
        if self.broker.down and now_s >= self.broker_down_until_s:
            self.broker.down = False
            self.note("the broker is back")
        for worker in self.workers:
            if not worker.paused:
                worker.loop.wake()
        for group in self.groups.values():
            if group.due_s() is not None and group.settle():
                self.note(f"{group.name}: generation {group.generation}")
                self._taken_over(next(name for name, one in self.groups.items() if one is group))
        if self.steps % 16 == 0:
            self.broker.expire(TRANSACTION_S)
            self._failures()

    def _taken_over(self, stage: str) -> None:
        """Have what is late come just when partitions are taken over, or while that is being done: requests of the
        dead; as often as not a process that stood still. And who takes over may be slow."""
        chance = self.chance
        for arrive in self._then.pop(stage, ()):
            self._soon.append((self.steps + chance.choice(TURNS), arrive))
        for worker in self.of(stage):
            if worker.paused and chance.random() < WAKES:
                worker.paused = False
                self.note(f"wake {worker.name}, taken over")
                self.starve(worker, "all", chance.choice(TURNS))
            elif chance.random() < SLOW_TO_TAKE_OVER:
                self.starve(worker, chance.choice(("link", "process")), chance.choice(TURNS))

    def _next_s(self) -> float:
        """Return when something happens next by itself."""
        times = [each[0] for each in self.later[:1]]
        times += [due for worker in self.workers if not worker.paused and (due := worker.loop.due_s()) is not None]
        times += [due for group in self.groups.values() if (due := group.due_s()) is not None]
        times += list(self.away.values())
        times += [worker.slow_until_s for worker in self.workers if worker.slow_until_s > self.clock.now_s]
        times += [self.broker_down_until_s] if self.broker.down else []
        return max(min(times, default=0.0), self.clock.now_s + 0.001)

    def let_pass(self, until_s: float) -> None:
        """Let time go on, at least to then (seconds)."""
        self.clock.now_s = max(self.clock.now_s, until_s)
