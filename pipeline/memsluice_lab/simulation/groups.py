"""The coordinator of one group: members, generations, and who owns which partitions.

Eager, as Kafka's range assignment is: everybody gives up everything, and whoever has not done so in time is left out,
goes on believing that it owns what it had, and comes back when it notices. The partitions of each topic are dealt by
what the stages' consumer really names.
"""

import random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from faust.transport.drivers import aiokafka as driver

from memsluice.runtimes.kafka.consumer_thread import StageConsumerThread
from memsluice.runtimes.kafka.spec import StageSpec
from memsluice_lab.simulation.broker import TP
from memsluice_lab.simulation.consumer import Consumer
from memsluice_lab.simulation.loop import Clock


def assignor() -> Any:
    """Return by what the stages' consumer has partitions dealt: the runtime's own choice, over Faust's."""
    thread = object.__new__(StageConsumerThread)
    thread.app = SimpleNamespace(runner=SimpleNamespace(fetch_wait_s=0.0))
    bare = SimpleNamespace(_partition_assignment_strategy=[RoundRobinPartitionAssignor])
    with patch.object(driver.AIOKafkaConsumerThread, "_create_worker_consumer", lambda *_: bare):
        return thread._create_worker_consumer(None)._partition_assignment_strategy[0]


class Group:
    """One consumer group over so many partitions of each input of a stage."""

    def __init__(self, spec: StageSpec, partitions: int, clock: Clock, chance: random.Random) -> None:
        self.name = spec.app_id
        self.generation = 0
        self._topics = spec.inputs
        self._cluster = SimpleNamespace(partitions_for_topic=lambda _topic: set(range(partitions)))
        self._assignor = assignor()
        self._clock = clock
        self._chance = chance
        self._rebalance_s = spec.tuning.rebalance_s
        self._members: list[Consumer] = []
        self._ready: list[Consumer] = []
        self._asked: list[Consumer] = []
        """Members that were told to give up what they have, and have not yet."""
        self._owners: dict[Consumer, tuple[int, tuple[TP, ...]]] = {}
        """Generation and partitions of each member."""
        self._until_s: float | None = None

    def join(self, member: Consumer) -> None:
        """Let a process in; all give up what they have first."""
        member.group = self
        self._members.append(member)
        self._ready.append(member)
        self.rebalance()

    def leave(self, member: Consumer) -> None:
        """Forget a process that died, or was not heard of for too long."""
        if member in self._members:
            self._forget(member)
            self.rebalance()

    def _forget(self, member: Consumer) -> None:
        for each in (self._members, self._ready, self._asked):
            if member in each:
                each.remove(member)
        self._owners.pop(member, None)

    def replace(self, old: Consumer, new: Consumer) -> None:
        """Let a process that was started again go on under its name: it gets what it had, and nobody else notices."""
        owned = self._owners.get(old)
        if owned is None or owned[0] != self.generation or self._until_s is not None:
            self._forget(old)
            self.join(new)
            return
        self._forget(old)
        new.group = self
        self._members.append(new)
        self._owners[new] = owned
        new.order(owned[1])

    def rebalance(self) -> None:
        """Begin a new generation."""
        if self._until_s is not None:
            return
        self._until_s = self._clock.now_s + self._rebalance_s
        for member in self._members:
            if member not in self._ready and member not in self._asked:
                self._asked.append(member)
                member.order(None)

    def ready(self, consumer: Consumer) -> None:
        """Be told that a member gave up what it had."""
        if consumer not in self._asked:
            return
        self._asked.remove(consumer)
        self._ready.append(consumer)
        if self._until_s is None:  # it was left out of the last generation
            self.rebalance()

    def due_s(self) -> float | None:
        """Return when a generation that is being prepared begins at the latest."""
        return self._until_s

    def settle(self) -> bool:
        """Begin the generation where all who can are ready, or time is over; return whether it began."""
        if self._until_s is None:
            return False
        late = [member for member in self._members if member not in self._ready]
        if late and self._clock.now_s < self._until_s:
            return False
        self._until_s = None
        chosen, self._ready = self._ready, []
        for member in late:
            self._owners.pop(member, None)
        if not chosen:
            return False
        self.generation += 1
        self._chance.shuffle(chosen)  # into the order of their ids: more changes hands than with ids that last
        subscribed = self._assignor.metadata(self._topics)
        dealt = self._assignor.assign(self._cluster, {f"{place:04}": subscribed for place in range(len(chosen))})
        for place, member in enumerate(chosen):
            owned = tuple((tp.topic, tp.partition) for tp in dealt[f"{place:04}"].partitions())
            self._owners[member] = self.generation, owned
            member.order(owned)
        return True
