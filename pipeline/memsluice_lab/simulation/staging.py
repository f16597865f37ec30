"""The stage objects of a history's processes, as the assembly makes them, and what the store does to *land*."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from memsluice.envelope.keys import Keyring
from memsluice.errors import StoreUnavailable
from memsluice.events.models import Zone
from memsluice.gate.policy.model import Policy
from memsluice.stages.land import LandStage
from memsluice.stages.reconcile import Reconciler
from memsluice.stages.screen import ScreenStage
from memsluice.stages.seal import SealStage
from memsluice.stages.store_sweep import StoreSweep
from memsluice.stores.base import StoreAnswer, StoredObject, UpsertResult, VectorStore
from memsluice.stores.compare import Difference
from memsluice.stores.log_index import Ended, LogIndex
from memsluice.topics import names
from memsluice_lab.simulation.scheduler import Scheduler
from memsluice_lab.simulation.sink import MemoryStore, Sink
from memsluice_lab.simulation.worker import TopicReader, Worker
from memsluice_lab.simulation.world import PARTITIONS, TENANTS, World, table

KEYS_READ_S = 1.0


class Staging:
    """Makes stages, and plays the store's faults. ``moods`` are how the store's next answers are."""

    def __init__(self, scheduler: Scheduler, world: World) -> None:
        self._scheduler = scheduler
        self._chance, self._clock = scheduler.chance, scheduler.clock
        self._broker, self._world = scheduler.broker, world
        self.store = MemoryStore()
        self.down_until_s = 0.0
        self.moods: Counter[str] = Counter()
        self.not_taken: set[tuple[str, Zone, str, int]] = set()
        """Tenant, zone, object id and version of what the store once refused, or said that it took and did not."""

    def make(self, stage: str, worker: Worker) -> Any:
        """Return the stage object of a process."""
        known_s = 0.0

        def keys() -> Keyring:  # seal reads its files once a second at most, or when it finds a key that it has not
            if stage != "seal":
                return self._world.keyring()
            if self._clock.now_s - known_s > KEYS_READ_S:
                refresh()
            return self._world.keyring(known_s)

        def refresh() -> None:
            nonlocal known_s
            known_s = self._clock.now_s

        def now_ms() -> int:
            return self._scheduler.now_ms(stage)

        def policies(_tenant: str) -> Policy:
            return self._world.policy

        if stage == "seal":
            return SealStage(
                keys,
                self._world.registry,
                table(),
                PARTITIONS,
                now_ms,
                refresh,
                policies,
            )
        if stage == "screen":
            return ScreenStage(keys, policies, PARTITIONS, now_ms)
        store = Sink(self.store, partial(self._around, worker))
        log = LogIndex(self._opens(names.STORE), keys)
        worker.sweep = StoreSweep(self._reconciler(store, keys, log), store, log, PARTITIONS)
        return LandStage(keys, store, PARTITIONS, now_ms, log=log, wait=partial(self._wait, worker))

    def sweep_later(self, worker: Worker) -> None:
        """Let a process of land sweep its partitions once round, when its thread is free."""

        def sweep() -> None:
            worker.sweep.owns([number for _, number in worker.consumer.assigned])
            worker.sweep.begin_round()
            while worker.sweep.step(lambda _name, _number: None):
                pass

        worker.loop.run_in_executor(None, sweep)

    # --- the store, from within a thread of land ---

    def _around(self, worker: Worker, name: str, objects: Sequence[StoredObject], call: Callable[..., Any]) -> Any:
        chance = self._chance
        if chance.random() < 0.06:
            self._scheduler.meanwhile(worker, chance.choice((3, 30, 300)))
        if self._clock.now_s < self.down_until_s:
            raise StoreUnavailable("the store is away")
        if name == "upsert" and objects and self.moods:
            return self._moody(worker, list(objects), call)
        result = call(objects)
        if chance.random() < 0.04:
            self._scheduler.meanwhile(worker, chance.choice((3, 30, 300)))
        return result

    def _moody(self, worker: Worker, objects: list[StoredObject], call: Callable[..., Any]) -> Any:
        mood = self._chance.choice(sorted(self.moods))
        self.moods[mood] -= 1
        self.moods += Counter()
        self._scheduler.note(f"the store is {mood} to {worker.name}")
        if mood == "answerless":
            call(objects)
            raise StoreUnavailable("the answer was lost")
        spared = [self._chance.random() < 0.5 for _ in objects]
        taken = [item for item, spare in zip(objects, spared, strict=True) if spare]
        answers = iter(call(taken) if taken else ())
        if mood == "forgetful":  # it says that it took what it did not
            other = StoreAnswer.LANDED
        elif mood == "partial":
            other = StoreAnswer.UNAVAILABLE
        else:
            other = StoreAnswer.REFUSED
        if mood != "partial":
            self.not_taken |= {
                (item.tenant, item.zone, item.object_id, item.version)
                for item, spare in zip(objects, spared, strict=True)
                if not spare
            }
        return [
            next(answers) if spare else UpsertResult(item.object_id, other, mood)
            for item, spare in zip(objects, spared, strict=True)
        ]

    def _wait(self, worker: Worker, seconds: float) -> bool:
        until_s = self._clock.now_s + seconds
        self._scheduler.meanwhile(worker, 40)
        if self._clock.now_s < until_s:
            self._scheduler.let_pass(until_s)
        return bool(worker.stage._patience.ended())

    def _opens(self, topic: str) -> Callable[[Ended], TopicReader]:
        return lambda _ended: TopicReader(self._broker, topic)

    def _reconciler(self, store: VectorStore, keys: Callable[[], Keyring], log: LogIndex) -> Reconciler:
        return Reconciler(
            store, log, self._opens(names.ACCEPTED), keys, PARTITIONS, lambda: self._scheduler.now_ms("land")
        )

    def mend(self) -> None:
        """Sweep the store once round, as *land* does for ever."""
        log = LogIndex(self._opens(names.STORE), self._world.keyring)
        sweep = StoreSweep(self._reconciler(self.store, self._world.keyring, log), self.store, log, PARTITIONS)
        sweep.owns(range(PARTITIONS))
        sweep.begin_round()
        while sweep.step(lambda _name, _number: None):
            pass
        log.close()

    def differences(self) -> list[str]:
        """Return how the store differs from its log; what only expired does not count."""
        log = LogIndex(self._opens(names.STORE), self._world.keyring)
        honest = self._reconciler(self.store, self._world.keyring, log)
        found = [
            f"{name} of {tenant}: {how.value}"
            for tenant in TENANTS
            for zone in Zone
            for compared in honest.walk(tenant, zone)
            for name, how in compared.differs.items()
            if how is not Difference.EXPIRED
        ]
        log.close()
        return found
