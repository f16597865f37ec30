"""What the commands that list pages of the index say below them: how many there are, where the next page begins."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from memsluice.cli.held.asking import say
from memsluice.operations.held.entries import HeldState

if TYPE_CHECKING:
    from memsluice.operations.review.index import HeldPage, ReviewIndex
    from memsluice.operations.review.query import HeldQuery


@dataclass(frozen=True, slots=True)
class Known:
    """How many writes the index has of the tenant that is asked for (else of all), held and refused; how many records
    did not verify; and, where a query found nothing, which of its values no held write has."""

    total: int
    refused: int
    unverified: int
    hints: list[str]

    @classmethod
    def of(cls, index: "ReviewIndex", wanted: "HeldQuery", *, empty: bool) -> "Known":
        """Return what the index knows beside what a query found; ``empty``: it found nothing."""
        from memsluice.operations.review.hints import unknown

        states = dict(index.values("state", tenants=None, tenant=wanted.tenant))
        hints = unknown(index, wanted, tenants=None) if empty else []
        return cls(sum(states.values()), states.get(HeldState.REFUSED.value, 0), index.unverified, hints)


def sum_up_page(
    console: Console, page: "HeldPage", known: Known, wanted: "HeldQuery", where: str, *, first: bool
) -> None:
    """Say how many entries a query finds, what follows, what may be misspelt, and what did not verify."""
    from memsluice.operations.review.index import COUNTED_MAX

    found = f"{page.found}" if page.found <= COUNTED_MAX else f"more than {COUNTED_MAX}"
    of = f"of {known.total} held {'and refused ' if known.refused else ''}writes"
    if wanted.states == frozenset({HeldState.REFUSED}):
        of = f"refused of {known.total} held or refused writes"
    told = [(f"{found} {of}, from {where}", "dim"), *((hint, "yellow") for hint in known.hints)]
    if page.after is not None:
        rest = f"{page.found - len(page.rows)} more" if first and page.found <= COUNTED_MAX else "more"
        told.append((f"{rest} follow: narrow the filter, or go on with --after {page.after}", "yellow"))
    say(console, told + broken(known.unverified))


def broken(unverified: int) -> list[tuple[str, str]]:
    """Return the line about records that did not verify; none where all did."""
    told = f"{unverified} records do not verify under this home's keys and are not shown"
    return [(told, "red")] if unverified else []
