"""What the commands of ``memsluice quarantine`` share: options, where they read, and what they look for."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.terminal import waiting
from memsluice.clock import wall_ms
from memsluice.errors import InvalidArgument, NotFound
from memsluice.escaping import visible
from memsluice.operations.target import opened

if TYPE_CHECKING:
    from memsluice.operations.held.collect import HeldListing, HeldReview
    from memsluice.operations.held.desk import HeldDesk
    from memsluice.operations.held.filters import HeldFilter
    from memsluice.operations.trace.equals import EqualTexts

Source = Annotated[str | None, typer.Option(help="Only from this channel, agent, principal, session or key id.")]
MinScore = Annotated[float | None, typer.Option(help="Only with a MEMSAD score of at least this.", show_default=False)]
Refused = Annotated[bool, typer.Option("--refused", help="Writes that were rejected, and are kept for a replay.")]
HeldEntry = Annotated[str, typer.Argument(help="Event id of the held write, as `list` shows it.")]
Offset = Annotated[
    int | None, typer.Option(help="Its intake offset, where several held writes have the id.", show_default=False)
]

ENTRIES_MAX = 100
"""Entries that are named at once."""


@contextmanager
def open_desk(home: Path | None) -> Iterator["HeldDesk"]:
    """Give the running stack (or the deployment that the environment names), else the home's embedded log.

    Raises ConfigError, in one sentence, where there is neither.
    """
    from memsluice.operations.held import desk

    with opened(home, desk.on_kafka, desk.embedded, "quarantine") as found:
        yield found


def build_filter(
    tenant: str | None, reason: str | None, since: str | None, until: str | None, source: str | None,
    min_score: float | None, *, everything: bool, refused: bool = False,
) -> "HeldFilter":  # fmt: skip
    """Return the filter of a command line: what waits, what was ``refused``, or everything. Raises InvalidArgument."""
    from memsluice.operations.held.entries import HeldState
    from memsluice.operations.held.filters import HeldFilter, moment_ms

    return HeldFilter(
        tenant=tenant,
        reason=reason,
        since_ms=None if since is None else moment_ms(since, wall_ms()),
        until_ms=None if until is None else moment_ms(until, wall_ms()),
        source=source,
        min_score=min_score,
        states=None if everything else frozenset({HeldState.REFUSED if refused else HeldState.PENDING}),
    )


def look_at(
    desk: "HeldDesk", home: Path | None, wanted: "HeldFilter", *, whole: bool = False,
    always: "Callable[[HeldReview], bool] | None" = None,
) -> "HeldListing":  # fmt: skip
    """Read the quarantine and the audit; see :func:`memsluice.operations.held.collect.look`."""
    from memsluice.deployment.home import Home
    from memsluice.gate.policy.model import load_or_default
    from memsluice.operations.held.collect import look
    from memsluice.topics.names import PARTITIONS

    policies = load_or_default(Home.at(home).policy_file)
    with waiting("reading the quarantine and the audit"):
        return look(
            desk.held, desk.audit, desk.keys.keyring(), wanted, partitions=PARTITIONS, now_ms=wall_ms(),
            age_days=lambda tenant: policies.of(tenant).quarantine.age_days, whole=whole,
            always=always,
        )  # fmt: skip


def find_one(
    desk: "HeldDesk", home: Path | None, event_id: str, tenant: str | None, offset: int | None
) -> "HeldReview":
    """Return one entry with its content. Raises NotFound where none or several have the id."""
    return find_each(desk, home, [event_id], tenant, offset)[0]


def find_each(
    desk: "HeldDesk", home: Path | None, event_ids: Sequence[str], tenant: str | None, offset: int | None
) -> "list[HeldReview]":
    """Return entries with their contents, in the order of their ids; each id once.

    Raises NotFound where none or several have one of the ids, InvalidArgument for an offset of several, or too many.
    """
    from memsluice.operations.held.collect import look_whole
    from memsluice.operations.held.filters import HeldFilter

    ids = list(dict.fromkeys(event_ids))
    if len(ids) > ENTRIES_MAX:
        raise InvalidArgument(f"{len(ids)} entries are too many at once: name {ENTRIES_MAX} at most")
    if offset is not None and len(ids) > 1:
        raise InvalidArgument("--offset tells writes of one id apart: name one entry with it")
    found = look_at(desk, home, HeldFilter(tenant=tenant, event_ids=tuple(ids)))
    chosen = [_chosen(desk, found, one, tenant, offset) for one in ids]
    whole = {(one.entry.partition, one.entry.record_offset): one for one in
             look_whole(desk.held, desk.keys.keyring(), chosen)}  # fmt: skip
    return [whole[one.entry.partition, one.entry.record_offset] for one in chosen]


def _chosen(
    desk: "HeldDesk", found: "HeldListing", event_id: str, tenant: str | None, offset: int | None
) -> "HeldReview":
    those = [one for one in found.seen if one.entry.event_id == event_id and offset in (None, one.entry.offset)]
    if not those:
        who = "any tenant" if tenant is None else f"tenant {visible(tenant, 80)}"
        told = f"no held write of {who} has the id {visible(event_id, 160)} in {desk.name}"
        raise NotFound(f"{told}{_taken_out(desk, event_id, tenant)}")
    if len(those) > 1:
        them = ", ".join(f"--tenant {visible(one.entry.tenant, 80)} --offset {one.entry.offset}" for one in those)
        raise NotFound(f"{len(those)} held writes have the id {visible(event_id, 160)}: choose one with {them}")
    return those[0]


def same_text_as(desk: "HeldDesk", seen: "HeldReview") -> "EqualTexts":
    """Read the tenant's audit for other writes of an entry's text; the entry was read with its content."""
    from memsluice.operations.trace.equals import look
    from memsluice.topics.names import PARTITIONS

    assert seen.entry.verdict is not None
    with waiting("reading the audit"):
        return look(desk.audit, desk.keys.keyring(), seen.entry.verdict, PARTITIONS)


def _taken_out(desk: "HeldDesk", event_id: str, tenant: str | None) -> str:
    """Say where an entry is that look back withdrew; "" where it did not."""
    from memsluice.operations.provenance.withdrawn import look
    from memsluice.topics.names import PARTITIONS

    found = look(desk.audit, desk.keys.keyring(), tenant, None, PARTITIONS).entries
    if not any(one.event_id == event_id and one.state == "withdrawn" for one in found):
        return ""
    name = visible(event_id, 160)
    return (
        f". The entry had landed, and look back withdrew it: `memsluice trace {name}` shows why, and "
        f"`memsluice quarantine release {name} --withdrawn` returns it to memory"
    )


def sum_up(console: Console, found: "HeldListing", desk: "HeldDesk", shown: int, *, refused: bool = False) -> None:
    """Say how many were found where, and what is not shown and why; ``refused`` were rejected and not held."""
    broken = (
        f"{found.unverified} records do not verify under this home's keys and are not shown" if found.unverified else ""
    )
    of = "of {} held and refused writes" if found.refused else "of {} held writes"
    if refused:
        of = "refused of {} held or refused writes"
    tell_found(console, found, shown, f"{len(found.seen)} {of.format(found.read)}, from {desk.name}", broken)


class Found(Protocol):
    """What a listing of held writes and one of dead letters have in common."""

    @property
    def seen(self) -> Sequence[Any]:
        """What was found."""

    @property
    def left_out(self) -> int:
        """How many a look had no room for."""


def tell_found(console: Console, found: Found, shown: int, first: str, broken: str) -> None:
    """Say what was found, what more there is, and what could not be read ("" where all could)."""
    told = [(first, "dim")]
    if len(found.seen) > shown:
        told.append((f"{len(found.seen) - shown} more are not shown: narrow the filter, or raise --limit", "yellow"))
    if found.left_out:
        told.append((f"{found.left_out} more did not fit in memory: narrow the filter", "yellow"))
    if broken:
        told.append((broken, "red"))
    for text, style in told:
        console.print(Text(visible(text), style=style), soft_wrap=True)
