"""Says once that a worker is ready, and from time to time that it is not yet, and what it waits for."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from memsluice.log import get_logger
from memsluice.runtimes.kafka.progress import StageProgress

LOG = get_logger(__name__)
NOT_YET_EVERY_S: Final = 30.0


class ReadyLine:
    """Told of a worker's progress (its ``on_progress``); ready is when every stage has joined, recovered and takes
    records."""

    def __init__(self, stages: Sequence[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._stages = tuple(stages)
        self._monotonic = monotonic
        self._began_s = self._said_s = monotonic()
        self._told = False

    def report(self, stages: Sequence[StageProgress]) -> None:
        """Take in a snapshot of all stages."""
        if self._told:
            return
        now_s = self._monotonic()
        ready = {stage.stage for stage in stages if stage.ready}
        waits = [stage for stage in self._stages if stage not in ready]
        after_s = round(now_s - self._began_s, 1)
        if not waits:
            self._told = True
            LOG.info("worker ready: every stage takes records", stages=list(self._stages), after_s=after_s)
        elif now_s - self._said_s >= NOT_YET_EVERY_S:
            self._said_s = now_s
            LOG.warning(
                "the worker is not ready yet: stages join their group or recover", stages=waits, after_s=after_s
            )
