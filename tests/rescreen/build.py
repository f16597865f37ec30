"""A sealed log and its audit, made by the real *screen*; only the log is in memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tests.gate.build import PARTITION, PARTITIONS, RING, MemoryRows
from tests.stages import holding
from tests.stages.test_screen import apply, record

from memsluice.envelope.seals import Sealed
from memsluice.events.records import Record
from memsluice.gate.policy.model import PolicySet, parse
from memsluice.operations.rescreen.history import PolicyBook
from memsluice.operations.rescreen.report import RescreenReport
from memsluice.operations.rescreen.rerun import Decided, Log, Rerun, Wanted
from memsluice.stages.screen import ScreenStage
from memsluice.topics.names import AUDIT


class Topic:
    """One partition of a topic, in memory."""

    name = "memory"

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = list(records)

    def end(self, partition: int) -> int:
        """Return the next offset."""
        return self.records[-1].offset + 1 if self.records and partition == PARTITION else 0

    def at(self, partition: int, since_ms: int) -> int:
        """Return the first offset appended since."""
        return next((one.offset for one in self.records if one.timestamp_ms >= since_ms), self.end(partition))

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield a partition from an offset on."""
        yield from (one for one in self.records if one.partition == partition and one.offset >= from_offset)

    def follow(self, offsets: Mapping[int, int], timeout_s: float) -> list[Record]:
        """Return what is there."""
        return [one for number, offset in offsets.items() for one in self.read(number, offset)]


class History:
    """What *screen* made of events; every sealed record lies at the offset of its place in ``events``."""

    def __init__(self, events: Sequence[Sealed], policies: PolicySet | None = None) -> None:
        self.rows = MemoryRows()
        screen = ScreenStage(lambda: RING, (policies or holding.policies()).of, PARTITIONS)
        sealed, audit = [], list[Record]()
        for offset, event in enumerate(events):
            sealed.append(record(event, offset))
            step = screen.process(sealed[-1], self.rows)
            apply(self.rows, step)
            audit += [
                Record(AUDIT, out.partition, len(audit), out.key, out.value, out.headers, sealed[-1].timestamp_ms)
                for out in step.outputs
                if out.topic == AUDIT
            ]
        self.log = Log(Topic(sealed), Topic(audit), RING, PARTITIONS)

    def cut(self, first: int) -> "History":
        """Delete the sealed records before an offset, as retention does."""
        self.log = replace(self.log, sealed=Topic(list(self.log.sealed.read(PARTITION, first))))
        return self

    def rerun(self, policy: str | None, wanted: Wanted | None = None, *, control: bool = True) -> tuple[
        RescreenReport, Rerun, list[Decided]
    ]:  # fmt: skip
        """Rescreen under a policy file's text, or the policy of then where a pattern is held."""
        candidate = holding.policies() if policy is None else parse(policy)
        run, report = (
            Rerun(self.log, candidate, PolicyBook([holding.policies()]) if control else None),
            RescreenReport(),
        )
        decided = list(run.events(wanted or Wanted()))
        for one in decided:
            report.take(one)
        return report, run, decided
