"""Runs the sealed log through *screen*'s own code again, partition by partition: what would a policy have decided?

One pass, in order, from an empty state. The sealed records carry their vectors, so that the encoder is not needed and
the numbers are those of then. Beside the candidate runs, if asked for, a *control*: the same events under the policies
that decided them. Where the control differs from the audit, it is the lost beginning of the history (or another version
of the gate) that differs, and not the candidate.

Bounded: at most ``events_max`` records of each partition; the state of one partition at a time, in memory.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from memsluice.envelope.keys import Keyring
from memsluice.envelope.partition_orders import Missing
from memsluice.envelope.verdict import Verdict
from memsluice.errors import SealError
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.gate.policy.model import Policy, PolicySet
from memsluice.operations.rescreen.history import PolicyBook, Told, verdicts
from memsluice.readers.base import TopicReader
from memsluice.runtimes.embedded import LocalLog
from memsluice.stages.dry_screen import RehearsalStage

EVENTS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Log:
    """A deployment's sealed topic and its audit, and the keys that open both.

    ``losses`` are intake records, by partition, that an operator acknowledged as lost; they are passed over.
    """

    sealed: TopicReader
    audit: TopicReader
    keyring: Keyring
    partitions: int
    losses: Sequence[tuple[int, Missing]] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: one tenant or all; decided since and before a time (Unix ms); how many of each partition.

    The state is built from the beginning whatever ``since_ms``: only what is told begins there.
    """

    tenant: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    events_max: int = EVENTS_MAX


@dataclass(slots=True)
class Part:
    """How much of a partition's history there was: where it begins, what was read, and what could not be.

    ``read`` counts sealed records, ``beyond`` is whether more were left for ``events_max``.
    """

    partition: int
    first_offset: int
    first_ms: int
    read: int = 0
    unverified: int = 0
    beyond: bool = False

    @property
    def whole(self) -> bool:
        """Whether nothing was deleted by retention before."""
        return self.first_offset == 0


@dataclass(frozen=True, slots=True)
class Decided:
    """One event: what the audit has of it, what the candidate decides, and what its own policy does now (control).

    ``was`` is None where the audit has no verdict (yet, or any more); ``control`` where none was asked for, or its
    policy is known to nobody. ``verdict`` is the candidate's, whole.
    """

    was: Told | None
    now: Told
    control: Told | None
    verdict: Verdict


@dataclass(slots=True)
class Rerun:
    """A run over history. ``parts`` are complete once :meth:`events` is exhausted."""

    log: Log
    candidate: PolicySet
    book: PolicyBook | None = None
    parts: list[Part] = field(default_factory=list)

    def events(self, wanted: Wanted, heard: Callable[[int], None] = lambda read: None) -> Iterator[Decided]:
        """Yield every decision; ``heard`` is told how many records were read. With ``book`` there is a control.

        Raises BrokerUnavailable, StateError (the sealed log has a gap that nobody acknowledged).
        """
        only = None if wanted.tenant is None else partition_of(wanted.tenant, self.log.partitions)
        for partition in range(self.log.partitions) if only is None else (only,):
            first = next(iter(self.log.sealed.read(partition)), None)
            if first is not None:
                part = Part(partition, first.offset, first.timestamp_ms)
                self.parts.append(part)
                lanes = [_Lane(self.log, self.candidate.of) for _ in range(1 if self.book is None else 2)]
                with ExitStack() as closing:
                    for lane in lanes:
                        closing.callback(lane.close)
                    yield from self._of(part, lanes, wanted, heard)

    def _of(self, part: Part, lanes: "list[_Lane]", wanted: Wanted, heard: Callable[[int], None]) -> Iterator[Decided]:
        log, partition = self.log, part.partition
        offsets = range(part.first_offset, part.first_offset + wanted.events_max)
        known = verdicts(log.audit, log.keyring, partition, part.first_ms, offsets, wanted.tenant)
        part.unverified += known.unverified
        if self.book is not None:
            self.book.learn(log.audit, log.keyring, partition, {told.policy for told in known.by_place.values()})
        for record in log.sealed.read(partition):
            if record.offset not in offsets:
                part.beyond = True
                break
            part.read += 1
            heard(sum(one.read for one in self.parts))
            decided = self._one(record, lanes, known.by_place, part, wanted.tenant)
            if decided is None:
                continue
            if wanted.until_ms is not None and decided.now.at_ms >= wanted.until_ms:
                break
            if wanted.since_ms is None or decided.now.at_ms >= wanted.since_ms:
                yield decided

    def _one(
        self, record: Record, lanes: "list[_Lane]", known: dict[tuple[str, int], Told], part: Part, tenant: str | None
    ) -> Decided | None:
        asked_for = tenant is None or record.key == tenant.encode()
        verdict: Verdict | None = None
        try:
            if asked_for:
                verdict = lanes[0].decide(record)
            else:
                lanes[0].skip(record)
        except SealError:
            part.unverified += 1
            for lane in lanes:
                lane.lost()
            return None
        if verdict is None:
            for lane in lanes[1:]:
                lane.skip(record)
            return None
        was = known.get((verdict.topic, verdict.offset))
        control = None
        if len(lanes) > 1:
            assert self.book is not None
            own = None if was is None else self.book.get(was.policy)
            again = lanes[1].decide(record, own)
            control = None if own is None or again is None else Told.of(again)
        return Decided(was, Told.of(verdict), control, verdict)


class _Lane:
    """One stage with rows of its own, in memory."""

    def __init__(self, log: Log, policies: Callable[[str], Policy]) -> None:
        self._own: Policy | None = None
        self._stage = RehearsalStage(
            lambda: log.keyring, lambda name: self._own or policies(name), log.partitions, log.losses
        )
        self._state = LocalLog(":memory:", partitions=log.partitions, durable=False)

    def decide(self, record: Record, own: Policy | None = None) -> Verdict | None:
        """Decide a record, under a policy of its own if it has one; None for a marker or a repetition."""
        self._own = own
        rows = self._state.rows(record.partition)
        step = self._stage.process(record, rows)
        for change in step.changes:
            rows.apply(change)
        return step.verdict

    def skip(self, record: Record) -> None:
        """Pass over a record."""
        rows = self._state.rows(record.partition)
        for change in self._stage.skip(record, rows).changes:
            rows.apply(change)

    def lost(self) -> None:
        """Pass over a record that cannot be read."""
        for partition in range(self._state.partitions):
            for change in self._stage.lost().changes:
                self._state.rows(partition).apply(change)

    def close(self) -> None:
        """Drop the rows."""
        self._state.close()
