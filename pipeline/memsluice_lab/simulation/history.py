"""One history: the pipeline, its events and its faults, from one seed."""

from typing import Final

from memsluice.events.models import AnyPayload
from memsluice_lab.simulation.faults import Plan, drawn
from memsluice_lab.simulation.pipeline import Options, Pipeline
from memsluice_lab.simulation.scheduler import STAGES, StuckError, Told
from memsluice_lab.simulation.seen import Seen
from memsluice_lab.simulation.workload import Workload
from memsluice_lab.simulation.world import partition

Place = tuple[str, int, int]
"""Topic, partition and offset."""
AT_FIRST: Final = {"seal": (1, 2, 2, 3), "screen": (1, 2, 2), "land": (1, 2, 2)}
"""With how many processes a stage begins. A third has nothing to do, as there are two partitions; of several inputs it
would have some, if a partition of all of them were not one process's."""


class History(Pipeline):
    """One seed's history. :meth:`run` plays it to its end; the judge looks at what is left."""

    def __init__(self, seed: int, options: Options | None = None) -> None:
        super().__init__(seed, options)
        self.workload = Workload(self.chance, self.world, Seen(self.broker, self.world))
        self.said: dict[Place, AnyPayload] = {}
        """What was acknowledged, by where it lies."""
        self.forged: set[Place] = set()
        """What nobody signed, or is no event: it must become a dead letter."""
        self.mislaid: dict[Place, AnyPayload] = {}
        """What a runtime said under another tenant's key: a dead letter, and its session saw it all the same."""
        self.before_mending: list[str] = []
        self.plan: Plan = drawn(self)

    def run(self) -> Told:
        """Play the history; what was broken while it ran is among the violations."""
        for stage in STAGES:
            for _ in range(self.chance.choice(AT_FIRST[stage])):
                self.start(stage)
        try:
            while self.published < self.options.events or self.plan.left():
                self.step_or_pass()
            while self.patient and self.later:
                self.step_or_pass()
            self.end_faults()
            self._until_quiet()
            if self.calm:
                self.before_mending = self.staging.differences()
            self.staging.mend()
        except StuckError:
            self.violation(f"stuck: after {self.steps} steps")
        return self.told

    def publish(self, number: int) -> None:
        """Have the workload publish, and the plan know of it."""
        for _ in range(min(number, self.options.events - self.published)):
            sent = self.workload.draw()
            log = self.broker.log(sent.topic, partition(sent.tenant))
            offset = log.append(sent.message, self.now_ms("broker"))  # type: ignore[arg-type]
            place = (*log.name, offset)
            self.published += 1
            if sent.payload is None or not sent.genuine:
                self.forged.add(place)
            else:
                (self.mislaid if sent.mislaid else self.said)[place] = sent.payload
            self.note(f"publish {place} {sent.message.key!r} {len(sent.message.value)}")
            self.plan.passed(self)

    # --- the end ---

    def end_faults(self) -> None:
        """Let everything be well from here on."""
        self.answers_lost = 0
        self.staging.moods.clear()
        self.away.clear()
        self.when_busy.clear()
        for worker in self.workers:
            worker.slow_until_s = 0.0
        self.staging.down_until_s = self.broker_down_until_s = 0.0
        self.broker.down = False
        for worker in self.workers:
            worker.paused = False
        self.note("no more faults")

    def _until_quiet(self) -> None:
        """Go on until everything published is through and everybody rests."""
        while not self._is_quiet():
            self.step_or_pass()
            self._failures()

    def _is_quiet(self) -> bool:
        if self.later or any(group.due_s() is not None for group in self.groups.values()):
            return False
        if any(worker.wire.requests or worker.loop.jobs or worker.failure() for worker in self.workers):
            return False
        return not any(self.broker.is_behind(spec.app_id, spec.inputs) for spec in self.specs.values())
