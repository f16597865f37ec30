"""A run of replays: dead letters published again, byte for byte, to the intake topic that they came from.

Each is authenticated here first, by the gate's own code, under the keys and the registry of now: what would only be a
dead letter once more is not published. Who published a letter twice did no harm: an event that landed is a `duplicate`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from memsluice.clock import Clock
from memsluice.envelope.records import verdict_from_bytes
from memsluice.errors import InputError
from memsluice.events.headers import EVENT_ID
from memsluice.events.names import EVERYBODY
from memsluice.events.partition import partition_of
from memsluice.events.records import Output, Record
from memsluice.operations.commands.answers import Bookmark, follow
from memsluice.operations.dead_letters.collect import LetterListing, look_whole
from memsluice.operations.dead_letters.desk import USERS, LetterDesk
from memsluice.operations.dead_letters.filters import LetterFilter
from memsluice.operations.dead_letters.letters import (
    NOT_UNPACKED,
    LetterReview,
    LetterState,
    LetterVerdict,
    Why,
    decided_of,
    why_of,
)
from memsluice.operations.runs import BaseRun, RunPlan
from memsluice.stages.seal import establish

BATCH_MAX = 100
BATCH_BYTES_MAX = 32 * 1024 * 1024
"""Letters, and bytes of their values, that are in memory at one time."""
NOT_INTAKE, NOT_KEPT = "not_intake", "not_kept"


@dataclass(frozen=True, slots=True)
class LetterRun(BaseRun[LetterFilter]):
    """One run of replays of dead letters."""

    FILTER: ClassVar[type[Any]] = LetterFilter


def plan(run: LetterRun, found: LetterListing) -> RunPlan[LetterReview]:
    """Return what is to be replayed of a listing of all states. What was decided since the run began counts as done."""
    done = sum(one.decided is not None and one.decided.at_ms >= run.started_ms for one in found.seen)
    todo = sorted(
        (one for one in found.seen if one.state is LetterState.OPEN),
        key=lambda one: (one.letter.why.topic, one.letter.why.partition, one.letter.why.offset),
    )
    return RunPlan.within(run, todo, done)


@dataclass(frozen=True, slots=True)
class LetterReplay:
    """One letter and what its replay came to: a verdict, another dead letter, why it was not published, or nothing yet.

    ``reason`` is why it would be, or was, a dead letter once more; ``published`` whether it went to the intake.
    """

    seen: LetterReview
    published: bool
    reason: str = ""
    detail: str = ""
    decided: LetterVerdict | None = None
    dry: bool = False

    @property
    def failed(self) -> bool:
        """Whether a run that stops on errors stops here."""
        return bool(self.reason) or (self.decided is None and not self.dry)

    def slim(self) -> "LetterReplay":
        """Return a result that is fit to be kept until the end: thousands of letters' bytes are not."""
        return replace(self, seen=replace(self.seen, letter=replace(self.seen.letter, original=None)))


def again(seen: LetterReview, now_ms: int, partitions: int) -> Record:
    """Return the intake record that a replay makes of a letter read with its bytes: theirs, at its tenant's partition.

    An input whose payload cannot be read, or that is for all tenants, goes where it was.
    """
    letter, why = seen.letter, seen.letter.why
    assert letter.original is not None
    named = letter.claims.event is not None and letter.claims.tenant != EVERYBODY
    partition = partition_of(letter.claims.tenant, partitions) if named else why.partition
    return Record(why.topic, partition, why.offset, *letter.original, now_ms)


def refusal(desk: LetterDesk, record: Record, partitions: int) -> tuple[str, str]:
    """Return reason and words why the gate would make a dead letter of a record now; two "" where it would not.

    The gate's own code, under this home's keyring and registry. That a recall's vector is its question's only *seal*
    can tell.
    """
    if record.topic not in USERS:
        return NOT_INTAKE, f"only the gate writes to {record.topic}"
    try:
        problem = establish(record, desk.desk.keys.keyring(), desk.desk.keys.registry(), partitions).problem
    except InputError as error:
        problem = error
    return ("", "") if problem is None else (problem.code, problem.reason)


def replay(
    desk: LetterDesk,
    run: LetterRun,
    todo: Sequence[LetterReview],
    *,
    rate: float,
    batch: int,
    wait_s: float,
    partitions: int,
    now_ms: Clock,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[list[LetterReplay]]:
    """Replay letters and yield the results of each batch, in order. At most ``rate`` letters a second are published."""
    for part in _chunks(todo, max(1, min(batch, BATCH_MAX, int(rate)))):
        began = monotonic()
        whole = {
            one.letter.letter_id: one for one in look_whole(desk.letters, desk.desk.keys.keyring(), part, desk.intake)
        }
        chunk = [whole[one.letter.letter_id] for one in part if one.letter.letter_id in whole]
        lost = [one for one in chunk if one.letter.original is None]
        chunk = [one for one in chunk if one.letter.original is not None]
        if lost:
            yield [LetterReplay(one, False, NOT_KEPT, _gone(one), dry=run.dry) for one in lost]
        records = [again(one, now_ms(), partitions) for one in chunk]
        refused = [refusal(desk, record, partitions) for record in records]
        if run.dry:
            yield [LetterReplay(one, False, *why, dry=True) for one, why in zip(chunk, refused, strict=True)]
            continue
        going = [number for number, (reason, _) in enumerate(refused) if not reason]
        came = _published(desk, [(chunk[n], records[n]) for n in going], wait_s, monotonic, sleep)
        results = [LetterReplay(one, False, *why) for one, why in zip(chunk, refused, strict=True)]
        for number, answer in zip(going, came, strict=True):
            results[number] = _result(chunk[number], answer)
        yield results
        sleep(max(0.0, len(going) / rate - (monotonic() - began)))


def _chunks(todo: Sequence[LetterReview], size: int) -> Iterator[list[LetterReview]]:
    """Yield letters in parts of at most so many, and of BATCH_BYTES_MAX bytes, though one alone may be larger."""
    chunk: list[LetterReview] = []
    total = 0
    for one in todo:
        value_bytes = one.letter.why.value_bytes or 0
        if chunk and (len(chunk) >= size or total + value_bytes > BATCH_BYTES_MAX):
            yield chunk
            chunk, total = [], 0
        chunk.append(one)
        total += value_bytes
    if chunk:
        yield chunk


def _gone(seen: LetterReview) -> str:
    if seen.letter.why.packed:
        return NOT_UNPACKED
    return "its bytes were not kept, and the intake topic has them no more"


def _result(seen: LetterReview, answer: LetterVerdict | Why | None) -> LetterReplay:
    if isinstance(answer, Why):
        return LetterReplay(seen, True, answer.reason, answer.detail)
    return LetterReplay(seen, True, decided=answer)


def _published(
    desk: LetterDesk,
    going: Sequence[tuple[LetterReview, Record]],
    wait_s: float,
    monotonic: Callable[[], float],
    sleep: Callable[[float], None],
) -> list[LetterVerdict | Why | None]:
    """Publish records and return what the gate made of each: a verdict, or once more a dead letter."""
    if not going:
        return []
    audit, keyring, parts = desk.desk.audit, desk.desk.keys.keyring(), {record.partition for _, record in going}
    marks = [[Bookmark(part, topic.end(part)) for part in sorted(parts)] for topic in (audit, desk.letters)]
    outputs = [Output(r.topic, r.partition, r.key, r.value, r.headers) for _, r in going]
    offsets = desk.republish(outputs)
    places = [(r.topic, r.partition, offset) for (_, r), offset in zip(going, offsets, strict=True)]
    ids = {one.letter.claims.event_id.encode() for one, _ in going}
    found: dict[tuple[str, int, int], LetterVerdict | Why] = {}

    def decided(record: Record) -> None:
        if dict(record.headers).get(EVENT_ID) in ids:
            verdict = decided_of(verdict_from_bytes(keyring, (record.key or b"").decode(), record.value or b""))
            if verdict.place in places:
                found.setdefault(verdict.place, verdict)

    def died(record: Record) -> None:
        why = why_of(record)
        if why is not None and why.place in places:
            found[why.place] = why

    desk.desk.settle()
    follow(
        [(audit, marks[0], decided), (desk.letters, marks[1], died)],
        lambda: all(place in found for place in places),
        wait_s, monotonic=monotonic, sleep=sleep,
    )  # fmt: skip
    return [found.get(place) for place in places]
