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
    from memsluice.operations.dead_letters import asking

    return asking.build_filter(reason, topic, partition, since, until, tenant, wall_ms(), everything=everything)


def look_at(desk: "LetterDesk", wanted: "LetterFilter", *, whole: bool = False) -> "LetterListing":
    """Read the dead letters and the audit; see :func:`memsluice.operations.dead_letters.collect.look`."""
    from memsluice.operations.dead_letters import asking

    with waiting("reading the dead letters and the audit"):
        return asking.look_at(desk, wanted, whole=whole)


def find(desk: "LetterDesk", letter_ids: list[str], *, whole: bool = False) -> "list[LetterReview]":
    """Return letters in the order given. Raises NotFound."""
    from memsluice.operations.dead_letters import asking

    with waiting("reading the dead letters and the audit"):
        return asking.find(desk, letter_ids, whole=whole)


def sum_up(console: Console, found: "LetterListing", desk: "LetterDesk", shown: int) -> None:
    """Say how many were found where, and what is not shown and why."""
    broken = f"{found.damaged} records are damaged and are not shown" if found.damaged else ""
    first = f"{len(found.seen)} dead letters of {found.read} records, from {desk.letters.name}"
    tell_found(console, found, shown, first, broken)
