"""Reads the dead-letter topic, and the audit for what became of each letter; in bounded memory."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import verdict_from_bytes
from memsluice.errors import MalformedEvent, SealError
from memsluice.events.headers import EVENT_ID
from memsluice.events.names import EVERYBODY, TARGET_HEADER
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.operations.dead_letters.filters import LetterFilter
from memsluice.operations.dead_letters.letters import (
    DeadLetter,
    Intake,
    LetterReview,
    LetterState,
    LetterVerdict,
    Why,
    put_together,
    same_event,
    why_of,
)
from memsluice.operations.held.collect import share_of
from memsluice.operations.held.entries import CommandOutcome, Ruled, read_ruling
from memsluice.readers.base import TopicReader
from memsluice.stages.dead_letter import VALUE, Letter

LETTERS_MAX = 50_000
"""Letters that one look holds (about 2 KiB each in a list); further ones are counted and named as left out.

As many again are held while it is not known yet which of them are asked for.
"""
WHOLE_MAX = 8
"""Letters that one look holds with all their bytes."""
PARTS_BYTES_MAX = 128 * 1024 * 1024
PARTIAL_MAX = 1_024
"""Bytes, and number, of letters in parts of which some have not been read yet, that are held at a time."""


@dataclass(slots=True)
class LetterListing:
    """What a look found, oldest first. ``damaged`` records are no letters, or parts of one that is not all there."""

    seen: list[LetterReview] = field(default_factory=list)
    read: int = 0
    damaged: int = 0
    left_out: int = 0


class Assembler:
    """Puts letters together from their records, which come in any order and may be repeated."""

    def __init__(
        self, keyring: Keyring, wanted: LetterFilter, *, whole: bool = False, intake: Intake | None = None
    ) -> None:
        self._intake = intake
        self._keyring = keyring
        self._wanted = wanted
        self._whole = whole
        self._parts: dict[str, dict[tuple[str, int], tuple[Letter, Why]]] = {}
        self._bytes = 0
        self._damaged = 0

    def take(self, record: Record) -> DeadLetter | None:
        """Take one record; return the letter that it completes, if it does and it is asked for."""
        why = why_of(record)
        if why is None:
            self._damaged += 1
            return None
        if not self._wanted.matches_header(why):
            return None
        parts = self._parts.setdefault(why.letter_id, {})
        if (why.kind, why.part) not in parts:
            parts[why.kind, why.part] = ((record.key, record.value, record.headers), why)
            self._bytes += len(record.value or b"")
        if not _complete(parts):
            self._make_room()
            return None
        self._drop(why.letter_id)
        try:
            records = [one for one, _ in parts.values()]
            letter = put_together(parts[VALUE, 1][1], records, self._keyring, self._whole, self._intake)
        except MalformedEvent:
            self._damaged += len(parts)
            return None
        return letter if self._wanted.matches(letter) else None

    def _drop(self, letter_id: str) -> None:
        self._bytes -= sum(len(letter[1] or b"") for letter, _ in self._parts.pop(letter_id).values())

    def _make_room(self) -> None:
        while self._bytes > PARTS_BYTES_MAX or len(self._parts) > PARTIAL_MAX:
            oldest = next(iter(self._parts))
            self._damaged += len(self._parts[oldest])
            self._drop(oldest)

    def damaged(self) -> int:
        """Return how many records were no letter, or belong to one that is not all there."""
        return self._damaged + sum(len(parts) for parts in self._parts.values())


def _complete(parts: dict[tuple[str, int], tuple[Letter, Why]]) -> bool:
    first = parts.get((VALUE, 1))
    if first is None:
        return False
    values = sum(kind == VALUE for kind, _ in parts)
    return values == first[1].parts and len(parts) - values == first[1].head_parts


def look(
    letters: TopicReader,
    audit: TopicReader,
    keyring: Keyring,
    wanted: LetterFilter,
    *,
    partitions: int,
    whole: bool = False,
    letters_max: int = LETTERS_MAX,
    intake: Intake | None = None,
) -> LetterListing:
    """Return the letters that a filter asks for, ``whole`` with all their bytes, a note's from ``intake``.

    Raises BrokerUnavailable.

    A letter lies on its input's partition, which need not be that of the tenant it claims. Letters of the very same
    bytes (a replay that failed again makes one) are one, the newest, unless they are asked for by name.
    """
    found, shown = LetterListing(), dict[str, LetterReview]()
    room = WHOLE_MAX if whole else letters_max
    looked_in = list(range(partitions)) if wanted.partition is None else [wanted.partition]
    page = dict[str, DeadLetter]()
    for partition in looked_in:
        assembler = Assembler(keyring, wanted, whole=whole, intake=intake)
        since = 0 if wanted.since_ms is None else letters.at(partition, wanted.since_ms)
        for record in letters.read(partition, since):
            found.read += 1
            letter = assembler.take(record)
            if letter is None or letter.letter_id in page:  # a re-delivery repeats a letter
                continue
            if len(page) >= room:
                _keep(found, shown, _judged(list(page.values()), audit, keyring, partitions), wanted, looked_in, room)
                page.clear()
            page[letter.letter_id] = letter
        found.damaged += assembler.damaged()
    _keep(found, shown, _judged(list(page.values()), audit, keyring, partitions), wanted, looked_in, room)
    found.seen = sorted(shown.values(), key=lambda one: (one.letter.why.append_ms, one.letter.letter_id))
    return found


def _keep(
    found: LetterListing,
    shown: dict[str, LetterReview],
    judged: list[LetterReview],
    wanted: LetterFilter,
    looked_in: list[int],
    room: int,
) -> None:
    """Keep what is asked for, by its bytes; of several with the same bytes the newest. What is not, takes no room."""
    newest = dict[str, LetterReview]()
    for one in judged:
        name = one.letter.letter_id if wanted.letter_ids is not None else one.letter.bytes_digest
        known = newest.pop(name, None) or shown.pop(name, None)
        if known is not None:
            last = max(known, one, key=lambda seen: (seen.letter.why.append_ms, seen.letter.why.offset))
            one = replace(last, attempts=known.attempts + one.attempts)  # noqa: PLW2901
        newest[name] = one
    for name, one in newest.items():
        later = len(looked_in) - 1 - looked_in.index(one.letter.why.partition)
        if not wanted.wants(one.state):
            continue
        if len(shown) >= share_of(room, 0, later, len(looked_in)):
            found.left_out += 1
            continue
        shown[name] = one


def look_whole(
    letters: TopicReader, keyring: Keyring, seen: Iterable[LetterReview], intake: Intake | None = None
) -> Iterator[LetterReview]:
    """Yield letters of a listing once more, with all their bytes, one at a time. Raises BrokerUnavailable."""
    of_partition: dict[int, dict[str, LetterReview]] = {}
    for one in seen:
        of_partition.setdefault(one.letter.why.partition, {})[one.letter.letter_id] = one
    for partition, there in sorted(of_partition.items()):
        assembler = Assembler(keyring, LetterFilter(), whole=True, intake=intake)
        since = letters.at(partition, min(one.letter.why.append_ms for one in there.values()))
        for record in letters.read(partition, since):
            why = why_of(record)
            if why is None or why.letter_id not in there:
                continue
            letter = assembler.take(record)
            if letter is not None:
                yield replace(there.pop(letter.letter_id), letter=letter)
            if not there:
                break


def _judged(found: list[DeadLetter], audit: TopicReader, keyring: Keyring, partitions: int) -> list[LetterReview]:
    """Return letters with what the audit says of them. A header only says where to look: what counts is in a seal."""
    if not found:
        return []
    dismissed, decided = dict[str, Ruled](), dict[str, LetterVerdict]()
    named = {letter.letter_id: letter for letter in found}
    claiming: dict[tuple[bytes, bytes], list[DeadLetter]] = {}
    for letter in found:
        if letter.claims.event is not None:
            about = (letter.claims.tenant.encode(), letter.claims.event_id.encode())
            claiming.setdefault(about, []).append(letter)
    tenants = {EVERYBODY, *(tenant.decode() for tenant, _ in claiming)}
    looked_in = {partition_of(tenant, partitions) for tenant in tenants}
    looked_in |= {letter.why.partition for letter in found if letter.claims.tenant == EVERYBODY}  # on every partition
    since = min(letter.why.append_ms for letter in found)
    for partition in sorted(looked_in):
        for record in audit.read(partition, audit.at(partition, since)):
            headers, key = dict(record.headers), record.key or b""
            target = named.get((headers.get(TARGET_HEADER) or b"").decode(errors="replace"))
            try:
                if target is not None and key == EVERYBODY.encode():
                    ruled = read_ruling(keyring, record)
                    if (
                        ruled is not None
                        and ruled.outcome is CommandOutcome.DISMISSED
                        and ruled.digest == target.digest
                    ):
                        dismissed.setdefault(target.letter_id, ruled)
                for letter in claiming.get((key, headers.get(EVENT_ID) or b""), ()):
                    verdict = same_event(letter, verdict_from_bytes(keyring, key.decode(), record.value or b""))
                    if verdict is not None:
                        decided.setdefault(letter.letter_id, verdict)
            except (SealError, KeyError):  # not the gate's word
                continue
    return [LetterReview(one, dismissed.get(one.letter_id), decided.get(one.letter_id)) for one in found]


@dataclass(frozen=True, slots=True)
class LetterStats:
    """Counts over a listing: of states, and of what is open by reason, intake topic, partition and claimed tenant."""

    states: Counter[str]
    reasons: Counter[str]
    topics: Counter[str]
    partitions: Counter[str]
    claimed_tenants: Counter[str]
    oldest_ms: int | None


def stats(listing: LetterListing) -> LetterStats:
    """Return the counts."""
    whys = [one.letter.why for one in listing.seen if one.state is LetterState.OPEN]
    return LetterStats(
        Counter(one.state.value for one in listing.seen),
        Counter(why.reason for why in whys),
        Counter(why.topic for why in whys),
        Counter(str(why.partition) for why in whys),
        Counter(one.letter.claims.tenant or "none" for one in listing.seen if one.state is LetterState.OPEN),
        min((why.append_ms for why in whys), default=None),
    )
