"""A run of replays: which held writes, in which order, by which commands; published and answered in batches.

Every command's id and bytes follow from the run and the entry, so that a run that was killed may publish again what it
published before: the gate knows a repetition by its id, and decides each entry once a run. A tenant's entries go out in
the order in which they were held.
"""

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, ClassVar

from memsluice.events.models import Action, Command
from memsluice.gate.commands.replay import ACCEPT_PARAMETER, DRY_PARAMETER, RUN_PARAMETER
from memsluice.operations.commands.answers import Bookmark
from memsluice.operations.held.collect import HeldListing, HeldReview, look_whole
from memsluice.operations.held.commands import answers, order
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.held.entries import CommandOutcome, HeldState, Ruled
from memsluice.operations.held.filters import HeldFilter
from memsluice.operations.held.shown import Shown, name_of
from memsluice.operations.runs import RESUMABLE_S, BaseRun, RunPlan
from memsluice.readers.base import TopicReader

BATCH_MAX = 500
PAGE = 500
"""Held writes that are in memory with their contents at one time."""
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://memsluice.dev/replay/v1")


@dataclass(frozen=True, slots=True)
class HeldRun(BaseRun[HeldFilter]):
    """One run of replays of held writes; with ``refused``, of those that were rejected and kept.

    ``accept`` names the run whose showing it accepts: then it is of what that one showed, and nothing else.
    """

    FILTER: ClassVar[type[Any]] = HeldFilter

    refused: bool = False
    accept: str = ""

    def command_id(self, seen: HeldReview) -> str:
        """Return the id of the command about an entry: the same each time."""
        entry = seen.entry
        parts = (self.run_id, entry.tenant, entry.event_id, str(entry.offset))
        return str(uuid.uuid5(_NAMESPACE, "".join(f"{len(part)}:{part}" for part in parts)))

    def decided(self, seen: HeldReview) -> bool:
        """Whether the run's command about an entry was answered: then it counts, whatever holds the entry now."""
        command_id = self.command_id(seen)
        return any(one is not None and one.command_id == command_id for one in (seen.ruled, *seen.others))

    def command(self, seen: HeldReview) -> Command:
        """Return the command about an entry that was read with its content. Raises ConfigError."""
        at = datetime.fromtimestamp(self.started_ms / 1000, UTC)
        extra = {RUN_PARAMETER: self.run_id, **({DRY_PARAMETER: "yes"} if self.dry else {})}
        extra |= {ACCEPT_PARAMETER: self.accept} if self.accept else {}
        return order(
            seen.entry, Action.REPLAY, self.command_id(seen), at, valid=timedelta(seconds=RESUMABLE_S), parameters=extra
        )


def plan(run: HeldRun, found: HeldListing, shown: Collection[Shown] = ()) -> RunPlan[HeldReview]:
    """Return what is to be replayed of a listing of all states, and of all that the run decided before; of an
    acceptance, of what was ``shown``."""
    done, todo = 0, []
    for seen in found.seen:
        if run.decided(seen):
            done += 1
        elif seen.state in _waiting(run) and (not run.accept or name_of(seen.entry) in shown):
            todo.append(seen)
    todo.sort(key=lambda seen: (seen.entry.partition, seen.entry.record_offset))
    return RunPlan.within(run, todo, done)


def _waiting(run: HeldRun) -> tuple[HeldState, ...]:
    if run.accept:
        return HeldState.PENDING, HeldState.REFUSED
    return (HeldState.REFUSED if run.refused else HeldState.PENDING,)


@dataclass(frozen=True, slots=True)
class WriteReplay:
    """One entry and what its replay came to. ``ruled`` is None where no answer came, or it was answered before."""

    seen: HeldReview
    ruled: Ruled | None
    repeated: bool = False

    @property
    def failed(self) -> bool:
        """Whether a run that stops on errors stops here."""
        return (self.ruled is None and not self.repeated) or (
            self.ruled is not None and self.ruled.outcome is CommandOutcome.REFUSED
        )


def replay(
    desk: HeldDesk,
    run: HeldRun,
    todo: Sequence[HeldReview],
    *,
    rate: float,
    batch: int,
    wait_s: float,
    partitions: int,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[list[WriteReplay]]:
    """Replay entries and yield the results of each batch, in order. At most ``rate`` commands a second are published.

    A batch is published as a whole before its answers are waited for: who stops after a failure stops after its batch.
    """
    size = max(1, min(batch, BATCH_MAX, int(rate)))
    whole = _whole(desk, todo)
    while chunk := list(islice(whole, size)):
        began = monotonic()
        commands = [run.command(seen) for seen in chunk]
        since = _bookmarks(desk.audit, commands, partitions)
        desk.publish(commands)
        desk.settle()
        told = answers(desk.audit, desk.keys.keyring(), commands, since, wait_s, monotonic=monotonic, sleep=sleep)
        yield [_result(seen, told.get(command.id)) for seen, command in zip(chunk, commands, strict=True)]
        sleep(max(0.0, len(chunk) / rate - (monotonic() - began)))


def _whole(desk: HeldDesk, todo: Sequence[HeldReview]) -> Iterator[HeldReview]:
    """Yield entries with their contents, read a page at a time: no read stays open while answers are waited for."""
    for start in range(0, len(todo), PAGE):
        yield from list(look_whole(desk.held, desk.keys.keyring(), todo[start : start + PAGE]))


def _bookmarks(audit: TopicReader, commands: Sequence[Command], partitions: int) -> list[Bookmark]:
    marks = {tenant: Bookmark.at(audit, tenant, partitions) for tenant in {command.tenant for command in commands}}
    return list({mark.partition: mark for mark in marks.values()}.values())


def _result(seen: HeldReview, answer: Any) -> WriteReplay:
    if answer is None:
        return WriteReplay(seen, None)
    return WriteReplay(seen, answer.ruled, repeated=answer.ruled is None)
