"""The coordinator of one group: members, generations, and who owns which partitions.

Eager, as Faust's assignor is: everybody gives up everything, and whoever has not done so in time is left out, goes on
believing that it owns what it had, and comes back when it notices.
"""

import random

from memsluice_lab.simulation.consumer import Consumer
from memsluice_lab.simulation.loop import Clock

Numbers = tuple[int, ...]


class Group:
    """One consumer group over so many partitions."""

    def __init__(self, name: str, partitions: int, clock: Clock, chance: random.Random, rebalance_s: float) -> None:
        self.name = name
        self.generation = 0
        self._partitions = partitions
        self._clock = clock
        self._chance = chance
        self._rebalance_s = rebalance_s
        self._members: list[Consumer] = []
        self._ready: list[Consumer] = []
        self._asked: list[Consumer] = []
        """Members that were told to give up what they have, and have not yet."""
        self._owners: dict[Consumer, tuple[int, Numbers]] = {}
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
        numbers = list(range(self._partitions))
        self._chance.shuffle(numbers)
        for place, member in enumerate(chosen):
            owned = tuple(sorted(numbers[place :: len(chosen)]))
            self._owners[member] = self.generation, owned
            member.order(owned)
        return True
