"""What is asked of the dead letters, by a command or a page: a filter of words, a listing, letters by name."""

from memsluice.errors import InvalidArgument, NotFound
from memsluice.escaping import visible
from memsluice.operations.dead_letters.collect import LetterListing, look
from memsluice.operations.dead_letters.desk import LetterDesk
from memsluice.operations.dead_letters.filters import LetterFilter
from memsluice.operations.dead_letters.letters import LetterReview, LetterState
from memsluice.operations.held.filters import moment_ms
from memsluice.topics.names import PARTITIONS

LETTER_CHARS_MAX = 160


def build_filter(
    reason: str | None, topic: str | None, partition: int | None, since: str | None, until: str | None,
    tenant: str | None, now_ms: int, *, everything: bool,
) -> LetterFilter:  # fmt: skip
    """Return the filter of what a person wrote. ``now_ms`` is Unix ms. Raises InvalidArgument."""
    if partition is not None and not 0 <= partition < PARTITIONS:
        raise InvalidArgument(f"--partition: {partition} does not exist; the partitions are 0 to {PARTITIONS - 1}")
    return LetterFilter(
        reason=reason,
        topic=topic,
        partition=partition,
        since_ms=None if since is None else moment_ms(since, now_ms),
        until_ms=None if until is None else moment_ms(until, now_ms),
        tenant=tenant,
        states=None if everything else frozenset({LetterState.OPEN}),
    )


def look_at(desk: LetterDesk, wanted: LetterFilter, *, whole: bool = False) -> LetterListing:
    """Read the dead letters and the audit; see :func:`memsluice.operations.dead_letters.collect.look`."""
    return look(
        desk.letters, desk.desk.audit, desk.desk.keys.keyring(), wanted, partitions=PARTITIONS, whole=whole,
        intake=desk.intake,
    )  # fmt: skip


def find(desk: LetterDesk, letter_ids: list[str], *, whole: bool = False) -> list[LetterReview]:
    """Return letters in the order given. Raises NotFound, BrokerUnavailable."""
    partitions = {_partition(letter_id) for letter_id in letter_ids}
    wanted = LetterFilter(
        letter_ids=frozenset(letter_ids), partition=partitions.pop() if len(partitions) == 1 else None
    )
    found = {one.letter.letter_id: one for one in look_at(desk, wanted, whole=whole).seen}
    missing = next((one for one in letter_ids if one not in found), None)
    if missing is not None:
        raise NotFound(
            f"there is no dead letter {visible(missing, LETTER_CHARS_MAX)}: `memsluice dead-letters list --all` names "
            "them"
        )
    return [found[one] for one in letter_ids]


def _partition(letter_id: str) -> int | None:
    """Return the partition that a letter's name says; None where it says none."""
    parts = letter_id.rsplit("/", 2)
    number = int(parts[1]) if len(parts) == 3 and parts[1].isascii() and parts[1].isdecimal() else PARTITIONS
    return number if number < PARTITIONS else None
