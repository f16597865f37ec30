"""What a shell completes on a command line of ``memsluice quarantine``: what the home's index and its filters have.

The broker is not asked, nothing is read from topics, and nothing is made: a home without an index completes nothing.
Offered is only what a shell takes as one plain word: producers choose names, and a name may be a command.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from memsluice.deployment.home import Home
from memsluice.errors import MemsluiceError

if TYPE_CHECKING:
    from memsluice.operations.review.index import ReviewIndex

GROUPS_MAX = 100
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]*")
Offer = tuple[str, str]
"""A word, and what some shells show beside it."""


def _complete(of: Callable[[typer.Context], Iterable[Offer]]) -> Callable[[typer.Context, str], list[Offer]]:
    """Return a completion that offers what begins as the word does; one that cannot be had offers nothing."""

    def complete(ctx: typer.Context, incomplete: str) -> list[Offer]:
        try:
            return [one for one in of(ctx) if one[0].startswith(incomplete) and PLAIN.fullmatch(one[0])]
        except (MemsluiceError, OSError):
            return []

    return complete


@contextmanager
def _index(ctx: typer.Context) -> Iterator["ReviewIndex | None"]:
    from memsluice.operations.review.index import FILE, ReviewIndex

    home = Home.at(ctx.params.get("home"))
    if not (home.path / FILE).exists():
        yield None
        return
    with ReviewIndex.open(home.path) as index:
        yield index


def _values(field: str) -> Callable[[typer.Context], list[Offer]]:
    def values(ctx: typer.Context) -> list[Offer]:
        with _index(ctx) as index:
            found = [] if index is None else index.values(field, tenants=None)
        return [(value, f"{count} held writes") for value, count in found]

    return values


def _reasons(ctx: typer.Context) -> list[Offer]:
    from memsluice.envelope.verdict import rule_of

    codes = _values("reason")(ctx)
    modules = dict.fromkeys(rule_of(code) for code, _ in codes)
    return [*codes, *((module, "all of its codes") for module in modules)]


def _states(_: typer.Context) -> list[Offer]:
    from memsluice.operations.held.entries import HeldState

    return [*((state.value, "") for state in HeldState), ("any", "all of them")]


def _groups(ctx: typer.Context) -> list[Offer]:
    from memsluice.operations.review.query import HeldQuery

    with _index(ctx) as index:
        if index is None:
            return []
        found = index.groups(HeldQuery(), tenants=None, limit=GROUPS_MAX).groups
    return [(one.id, f"{one.count} of {one.reason}") for one in found]


def _filters(ctx: typer.Context) -> list[Offer]:
    from memsluice.operations.review.saved import SavedFilters

    kept = SavedFilters(Home.at(ctx.params.get("home")).path).all(tenants=None)
    return [(name, query.text()) for name, query in kept.items()]


def _words(ctx: typer.Context, field: str) -> list[Offer]:
    """Return what may stand behind a field of a query."""
    from memsluice.operations.review.index import VALUES_OF

    listed = {"reason": _reasons, "state": _states, "group": _groups}
    if field in listed or field in VALUES_OF:
        return listed.get(field, _values(field))(ctx)
    return [(one, "") for one in ("yes", "no")] if field in ("taint", "appeal") else []


def query(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Complete the last word of a query: a field, or its value."""
    from memsluice.operations.review.query import FIELDS

    before, blank, word = incomplete.rpartition(" ")
    field, colon, part = word.partition(":")
    if colon:
        found = _complete(lambda ctx: _words(ctx, field))(ctx, part)
        return [(f"{before}{blank}{field}:{value}", told) for value, told in found]
    return [(f"{before}{blank}{one}:", "") for one in FIELDS if one.startswith(word)]


tenant, reason, state = _complete(_values("tenant")), _complete(_reasons), _complete(_states)
group, filter_name = _complete(_groups), _complete(_filters)
