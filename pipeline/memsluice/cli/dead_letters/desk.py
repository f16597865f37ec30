"""What the commands of ``memsluice dead-letters`` share: options, filters, and where they read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from memsluice.cli.held.desk import tell_found
from memsluice.cli.terminal import waiting
from memsluice.clock import wall_ms
from memsluice.errors import InvalidArgument, NotFound
from memsluice.escaping import visible
from memsluice.operations.target import opened

if TYPE_CHECKING:
    from memsluice.operations.dead_letters.collect import LetterListing
    from memsluice.operations.dead_letters.desk import LetterDesk
    from memsluice.operations.dead_letters.filters import LetterFilter
    from memsluice.operations.dead_letters.letters import LetterReview

Letters = Annotated[list[str], typer.Argument(help="One or more names, as `list` prints them: memory.events.v1/3/17")]
LetterId = Annotated[str, typer.Argument(help="Its name, as `list` prints it: memory.events.v1/3/17")]
Topic = Annotated[str | None, typer.Option(help="Only from this intake topic: memory.events.v1", show_default=False)]
Partition = Annotated[int | None, typer.Option(min=0, help="Only from this partition.", show_default=False)]
ClaimedTenant = Annotated[
    str | None, typer.Option("--tenant", help="Only those that claim this tenant, unverified.", show_default=False)
]
All = Annotated[bool, typer.Option("--all", help="Also those that were dismissed, or have a verdict by now.")]


@contextmanager
def open_letters(home: Path | None) -> Iterator["LetterDesk"]:
    """Give the running stack's letters, or those of the home's embedded log. Raises ConfigError."""
    from memsluice.operations.dead_letters import desk

    with opened(home, desk.on_kafka, desk.embedded, "dead-letter topic") as found:
        yield found


def build_filter(
    reason: str | None, topic: str | None, partition: int | None, since: str | None, until: str | None,
    tenant: str | None, *, everything: bool,
) -> "LetterFilter":  # fmt: skip
    """Return the filter of a command line. Raises InvalidArgument."""
    from memsluice.operations.dead_letters.filters import LetterFilter
    from memsluice.operations.dead_letters.letters import LetterState
    from memsluice.operations.held.filters import moment_ms
    from memsluice.topics.names import PARTITIONS

    if partition is not None and partition >= PARTITIONS:
        raise InvalidArgument(f"--partition: {partition} does not exist; the partitions are 0 to {PARTITIONS - 1}")
    return LetterFilter(
        reason=reason,
        topic=topic,
        partition=partition,
        since_ms=None if since is None else moment_ms(since, wall_ms()),
        until_ms=None if until is None else moment_ms(until, wall_ms()),
        tenant=tenant,
        states=None if everything else frozenset({LetterState.OPEN}),
    )


def look_at(desk: "LetterDesk", wanted: "LetterFilter", *, whole: bool = False) -> "LetterListing":
    """Read the dead letters and the audit; see :func:`memsluice.operations.dead_letters.collect.look`."""
    from memsluice.operations.dead_letters.collect import look
    from memsluice.topics.names import PARTITIONS

    with waiting("reading the dead letters and the audit"):
        return look(
            desk.letters, desk.desk.audit, desk.desk.keys.keyring(), wanted, partitions=PARTITIONS, whole=whole,
            intake=desk.intake,
        )  # fmt: skip


def find(desk: "LetterDesk", letter_ids: list[str], *, whole: bool = False) -> "list[LetterReview]":
    """Return letters in the order given. Raises NotFound."""
    from memsluice.operations.dead_letters.filters import LetterFilter

    partitions = {_partition(letter_id) for letter_id in letter_ids}
    wanted = LetterFilter(
        letter_ids=frozenset(letter_ids), partition=partitions.pop() if len(partitions) == 1 else None
    )
    found = {one.letter.letter_id: one for one in look_at(desk, wanted, whole=whole).seen}
    missing = next((one for one in letter_ids if one not in found), None)
    if missing is not None:
        raise NotFound(
            f"there is no dead letter {visible(missing, 160)}: `memsluice dead-letters list --all` names them"
        )
    return [found[one] for one in letter_ids]


def _partition(letter_id: str) -> int | None:
    """Return the partition that a letter's name says; None where it says none."""
    from memsluice.topics.names import PARTITIONS

    parts = letter_id.rsplit("/", 2)
    number = int(parts[1]) if len(parts) == 3 and parts[1].isascii() and parts[1].isdecimal() else PARTITIONS
    return number if number < PARTITIONS else None


def sum_up(console: Console, found: "LetterListing", desk: "LetterDesk", shown: int) -> None:
    """Say how many were found where, and what is not shown and why."""
    broken = f"{found.damaged} records are damaged and are not shown" if found.damaged else ""
    first = f"{len(found.seen)} dead letters of {found.read} records, from {desk.letters.name}"
    tell_found(console, found, shown, first, broken)
