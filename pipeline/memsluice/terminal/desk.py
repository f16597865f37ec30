"""What is asked of the desk and the index: one function a question, each run where it may wait."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from memsluice.errors import NotFound, SealError
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.review.decide import ENTRIES_MAX
from memsluice.operations.review.groups import GroupRow
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.operations.review.rows import HeldRow

FIRST_OPENED = 12
"""Held writes whose contents are read before a page is shown; the others follow."""


def members(index: ReviewIndex, query: HeldQuery, group: GroupRow) -> list[HeldRow]:
    """Return what of a group a query asks for, newest first, at most as much as one plan takes."""
    wanted = query.narrowed(tenant=group.tenant, group=group.id)
    return list(index.page(wanted, tenants=None, limit=ENTRIES_MAX).rows)


def read_whole(index: ReviewIndex, rows: Sequence[HeldRow], desk: HeldDesk) -> tuple[list[HeldReview], list[str]]:
    """Return entries with their contents in the order of their rows, and in words why others cannot be read.

    Raises BrokerUnavailable.
    """
    found, wrong = [], []
    for row in rows:
        try:
            found.append(index.opened(desk, row))
        except (NotFound, SealError) as error:
            wrong.append(str(error))
    return found, wrong


def batches(rows: Sequence[HeldRow]) -> Iterator[Sequence[HeldRow]]:
    """Yield rows in parts: a short first one, so that there is something to read at once."""
    for start in range(0, len(rows), FIRST_OPENED):
        yield rows[start : start + FIRST_OPENED]


def now_of(index: ReviewIndex, seen: HeldReview) -> HeldReview:
    """Return an entry that was read with its content as it stands now, by the index; as it was where it has none."""
    entry = seen.entry
    row = index.entry(entry.tenant, entry.event_id, entry.offset, tenants=None)
    return seen if row is None else replace(row.seen, entry=entry)
