"""Reads the quarantine topic, and the audit topic for what was decided since; in bounded memory."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from memsluice.envelope.keys import Keyring
from memsluice.errors import SealError
from memsluice.events.headers import EVENT_ID
from memsluice.events.names import TARGET_HEADER
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.operations.held.entries import (
    CommandOutcome,
    HeldNow,
    HeldState,
    HeldWrite,
    Ruled,
    closing,
    lapses_ms,
    read_entry,
    read_ruling,
    stands_by,
    state_of,
)
from memsluice.operations.held.filters import HeldFilter
from memsluice.readers.base import TopicReader

ENTRIES_MAX = 50_000
"""Entries that one look holds (about 2 KiB each in a list); further ones are counted and named as left out.

As many again are held while it is not known yet which of them are asked for: those that are not take no room.
"""
WHOLE_MAX = 64
"""Entries that one look holds with their content."""
WHOLE_PAGE = 1_024
"""Entries with their content that are held until their states are known."""
ATTEMPTS_MAX = 16
"""Commands that are remembered of one entry: the last ones, of each outcome the last one, and an appeal."""


@dataclass(frozen=True, slots=True)
class HeldReview:
    """An entry, what became of it, the command that closed it, and the last of the others about it.

    ``until_ms`` is when it lapses, or did (Unix ms).
    """

    entry: HeldWrite
    state: HeldState
    ruled: Ruled | None
    others: tuple[Ruled, ...]
    until_ms: int

    @property
    def now(self) -> HeldNow:
        """What the verdict says by which it is held or refused now."""
        return HeldNow.of(self.entry, self.others)

    @property
    def appeal(self) -> Ruled | None:
        """Its writer's request for a review, of which the gate takes one; None where there is none."""
        return next((one for one in self.others if one.outcome is CommandOutcome.APPEALED), None)

    @property
    def decided_on(self) -> str:
        """The id of the event by which it stands, for ``parameters.decided_on``."""
        return stands_by(self.entry, self.ruled, self.others)

    @property
    def notes(self) -> tuple[Ruled, ...]:
        """What reviewers noted about it, oldest first: the last one says whom it is assigned to, and who claims it."""
        return tuple(one for one in self.others if one.outcome is CommandOutcome.NOTED)

    @property
    def assignee(self) -> str:
        """Whom it is assigned to; "" for nobody."""
        return self.notes[-1].assignee if self.notes else ""

    def claimed_by(self, now_ms: int) -> str:
        """Return the key id of the reviewer who claims it (Unix ms); "" for nobody. A decision ends every claim."""
        last = next((one for one in reversed(self.others) if one.outcome in CLAIMS), None)
        stands = last is not None and self.ruled is None and now_ms < last.claim_until_ms
        return last.claimed_by if last is not None and stands else ""

    @property
    def claim_until_ms(self) -> int:
        """Until when the last claim holds (Unix ms), whether or not it stands still; 0 where there was none."""
        return self.notes[-1].claim_until_ms if self.notes else 0

    @property
    def tainted(self) -> bool:
        """Whether it is tainted now: as it was held, or as the last command about its label left it."""
        labels = [
            one.outcome for one in self.others if one.outcome in (CommandOutcome.DECLASSIFIED, CommandOutcome.REVOKED)
        ]
        return labels[-1] is CommandOutcome.REVOKED if labels else self.entry.held.taint


@dataclass(slots=True)
class HeldListing:
    """What a look found, oldest first. ``unverified`` records had no seal of this home's keys and are not shown.

    ``refused`` counts those of the records read that were rejected, and not held, when they came.
    """

    seen: list[HeldReview] = field(default_factory=list)
    read: int = 0
    refused: int = 0
    unverified: int = 0
    left_out: int = 0


CLAIMS = (CommandOutcome.NOTED, CommandOutcome.REOPENED)
"""What says who claims an entry: a note, or that nobody does any more."""
_Key = tuple[str, str, int]
"""Tenant, event id and intake offset: several held writes may have one id and one content."""


def look(
    held: TopicReader,
    audit: TopicReader,
    keyring: Keyring,
    wanted: HeldFilter,
    *,
    partitions: int,
    now_ms: int,
    age_days: Callable[[str], int],
    whole: bool = False,
    entries_max: int = ENTRIES_MAX,
    always: Callable[[HeldReview], bool] | None = None,
) -> HeldListing:
    """Return the entries that a filter asks for. ``age_days`` gives a tenant's age limit, ``whole`` reads contents.
    What ``always`` says of is returned whatever state it is in now, and whatever holds it.

    Records of one tenant are all on its partition, so that a filter with a tenant reads one. Raises BrokerUnavailable.
    """
    found = HeldListing()
    room, page_max = (min(entries_max, WHOLE_MAX), WHOLE_PAGE) if whole else (entries_max, entries_max)
    ids = wanted.named()
    looked_in = list(range(partitions)) if wanted.tenant is None else [partition_of(wanted.tenant, partitions)]

    def judge(partition: int, page: dict[_Key, HeldWrite], kept: dict[_Key, HeldReview], share: int) -> None:
        targets = {entry.event_id.encode() for entry in page.values()}
        since = audit.at(partition, min(entry.held_ms for entry in page.values()))  # what is decided lies behind
        rulings = _rulings(found, audit.read(partition, since), keyring, targets)
        for key, entry in page.items():
            named = [*rulings.get(key, []), *rulings.get((*key[:2], None), [])]
            seen = judged(entry, named, now_ms, age_days(key[0]))
            if key in kept or not (wanted.wants(seen.state, seen.now) or (always is not None and always(seen))):
                continue
            if len(kept) >= share:
                found.left_out += 1
                continue
            kept[key] = seen

    for number, partition in enumerate(looked_in):
        later = len(looked_in) - number - 1
        page, kept, share = (
            dict[_Key, HeldWrite](),
            dict[_Key, HeldReview](),
            share_of(room, len(found.seen), later, partitions),
        )
        for record in held.read(partition):
            entry = _taken(found, keyring, record, wanted, ids, whole)
            key = None if entry is None else (entry.tenant, entry.event_id, entry.offset)
            if entry is None or key is None or key in page:  # a re-delivery repeats a record
                continue
            if len(page) >= page_max:
                judge(partition, page, kept, share)
                page.clear()
            page[key] = entry
        if page:
            judge(partition, page, kept, share)
        found.seen += kept.values()
    found.seen.sort(key=lambda one: (one.entry.held_ms, one.entry.tenant, one.entry.record_offset))
    return found


def share_of(room: int, taken: int, later: int, partitions: int) -> int:
    """Return how many a partition may take, of a room of which some is taken and ``later`` partitions are to come.

    Half of the room is kept for partitions in equal parts, the rest goes to whoever comes first: no tenant's flood
    hides what waits on another partition.
    """
    return max(0, room - taken - later * (room // (2 * partitions)))


def _taken(
    found: HeldListing, keyring: Keyring, record: Record, wanted: HeldFilter, ids: frozenset[bytes] | None, whole: bool
) -> HeldWrite | None:
    if wanted.tenant is not None and record.key != wanted.tenant.encode():
        return None
    if ids is not None and not any(name == EVENT_ID and value in ids for name, value in record.headers):
        return None
    found.read += 1
    try:
        entry = read_entry(keyring, record, whole=whole)
    except SealError:
        found.unverified += 1
        return None
    found.refused += entry.held.refused
    return entry if wanted.matches(entry) else None


def _rulings(
    found: HeldListing, records: Iterable[Record], keyring: Keyring, targets: set[bytes]
) -> dict[tuple[str, str, int | None], list[Ruled]]:
    """Return the commands about some events, by tenant, event id and intake offset as far as the verdict has one.

    The header only says where to look: what counts is in the seal.
    """
    rulings: dict[tuple[str, str, int | None], list[Ruled]] = {}
    seen: set[str] = set()
    for record in records:
        if not any(name == TARGET_HEADER and value in targets for name, value in record.headers):
            continue
        try:
            ruled = read_ruling(keyring, record)
        except SealError:
            found.unverified += 1
            continue
        if ruled is None or ruled.command_id in seen:
            continue
        seen.add(ruled.command_id)
        remember(rulings.setdefault((ruled.tenant, ruled.target, ruled.offset), []), ruled)
    return rulings


def judged(entry: HeldWrite, named: Iterable[Ruled], now_ms: int, age_days: int) -> HeldReview:
    """Return what became of an entry by a time (Unix ms), given the commands about its event id, in any order."""
    about = sorted((one for one in named if one.about(entry)), key=lambda one: one.at_ms)
    ruled = closing(about)
    others = tuple(one for one in about if one is not ruled)
    return HeldReview(
        entry, state_of(entry, ruled, now_ms, age_days, others), ruled, others, lapses_ms(entry, age_days)
    )


def remember(about: list[Ruled], ruled: Ruled) -> None:
    """Add a command to those about an entry, of which ATTEMPTS_MAX are kept."""
    about.append(ruled)
    passing = [one for one in about if one.outcome is not CommandOutcome.APPEALED]
    if len(passing) > ATTEMPTS_MAX:
        about.remove(_superseded(passing))


def _superseded(passing: list[Ruled]) -> Ruled:
    """Return the first command that a later one of the same outcome follows: the last of each is never forgotten.

    There is one, since outcomes are fewer than ATTEMPTS_MAX; the state and the label of an entry rest on it.
    """
    later = Counter(one.outcome for one in passing)
    for one in passing:
        later[one.outcome] -= 1
        if later[one.outcome]:
            return one
    return passing[0]


def look_whole(held: TopicReader, keyring: Keyring, seen: Iterable[HeldReview]) -> Iterator[HeldReview]:
    """Yield the entries of a listing once more, with their contents, one at a time. Raises BrokerUnavailable."""
    wanted: dict[int, dict[int, HeldReview]] = {}
    for one in seen:
        wanted.setdefault(one.entry.partition, {})[one.entry.record_offset] = one
    for partition, there in sorted(wanted.items()):
        last = max(there)
        for record in held.read(partition, min(there)):
            if record.offset in there:
                yield replace(there[record.offset], entry=read_entry(keyring, record, whole=True))
            if record.offset >= last:
                break


@dataclass(frozen=True, slots=True)
class HeldCounts:
    """Counts of entries by tenant, reason and source, and when the oldest came."""

    tenants: Counter[str]
    reasons: Counter[str]
    sources: Counter[str]
    oldest_ms: int | None

    @classmethod
    def of(cls, seen: Iterable[HeldReview]) -> "HeldCounts":
        """Return the counts; the reasons are those of the verdicts that hold or refuse the entries now."""
        those = list(seen)
        return cls(
            Counter(one.entry.tenant for one in those),
            Counter(code for one in those for code in one.now.reasons),
            Counter(one.entry.held.channel for one in those),
            min((one.entry.held_ms for one in those), default=None),
        )


@dataclass(frozen=True, slots=True)
class HeldStats:
    """Counts over a listing: of states, of what is pending, and of what is refused and kept."""

    states: Counter[str]
    pending: HeldCounts
    refused: HeldCounts


def stats(listing: HeldListing) -> HeldStats:
    """Return the counts."""
    return HeldStats(
        Counter(one.state.value for one in listing.seen),
        HeldCounts.of(one for one in listing.seen if one.state is HeldState.PENDING),
        HeldCounts.of(one for one in listing.seen if one.state is HeldState.REFUSED),
    )
