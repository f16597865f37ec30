"""What the commands of ``memsluice quarantine`` share: options, the place they work at, and what they look for."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.text import Text

from memsluice.clock import wall_ms
from memsluice.errors import ConfigError, MemsluiceError
from memsluice.escaping import visible
from memsluice.operations.target import opened

if TYPE_CHECKING:
    from memsluice.operations.held.collect import Listing, Seen
    from memsluice.operations.held.desk import Desk
    from memsluice.operations.held.filters import Filter
    from memsluice.operations.runs import Plan

Home = Annotated[Path | None, typer.Option(help="Default: MEMSLUICE_HOME or ~/.memsluice", show_default=False)]
Tenant = Annotated[str | None, typer.Option(help="Of this tenant alone; reads one partition.", show_default=False)]
Reason = Annotated[str | None, typer.Option(help="A reason code, or its module: rates.", show_default=False)]
Since = Annotated[str | None, typer.Option(help="Held since: 30m, 24h, 7d ago, or a date and time.")]
Until = Annotated[str | None, typer.Option(help="Held before: 30m, 24h, 7d ago, or a date and time.")]
Source = Annotated[str | None, typer.Option(help="A channel, agent, principal, session or key id.")]
MinScore = Annotated[float | None, typer.Option(help="With a MEMSAD score of at least this.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Entry = Annotated[str, typer.Argument(help="Event id of the held write, as `list` shows it.")]
Offset = Annotated[int | None, typer.Option(help="Its intake offset, where several have that id.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", help="Sign without asking.")]
Why = Annotated[str, typer.Option("--why", help="For those who read the commands later; part of what is signed.")]
Wait = Annotated[float, typer.Option(min=0, max=600, help="Seconds to wait for the gate's answer.")]


@contextmanager
def open_desk(home: Path | None) -> Iterator["Desk"]:
    """Give the running stack (or the deployment that the environment names), else the home's embedded log.

    Raises ConfigError, in one sentence, where there is neither.
    """
    from memsluice.operations.held import desk

    with opened(home, desk.on_kafka, desk.embedded, "quarantine") as found:
        yield found


def build_filter(
    tenant: str | None, reason: str | None, since: str | None, until: str | None, source: str | None,
    min_score: float | None, *, everything: bool,
) -> "Filter":  # fmt: skip
    """Return the filter of a command line. Raises ConfigError for a time that is none."""
    from memsluice.operations.held.entries import State
    from memsluice.operations.held.filters import Filter, moment_ms

    return Filter(
        tenant=tenant,
        reason=reason,
        since_ms=None if since is None else moment_ms(since, wall_ms()),
        until_ms=None if until is None else moment_ms(until, wall_ms()),
        source=source,
        min_score=min_score,
        states=None if everything else frozenset({State.PENDING}),
    )


def look_at(desk: "Desk", home: Path | None, wanted: "Filter", *, whole: bool = False) -> "Listing":
    """Read the quarantine and the audit; see :func:`memsluice.operations.held.collect.look`."""
    from memsluice.deployment.home import Home
    from memsluice.gate.policy.model import load_or_default
    from memsluice.operations.held.collect import look
    from memsluice.topics.names import PARTITIONS

    policies = load_or_default(Home.at(home).policy_file)
    with Console(stderr=True).status("reading the quarantine and the audit"):
        return look(
            desk.held, desk.audit, desk.keys.keyring(), wanted, partitions=PARTITIONS, now_ms=wall_ms(),
            age_days=lambda tenant: policies.of(tenant).quarantine.age_days, whole=whole,
        )  # fmt: skip


def find_one(desk: "Desk", home: Path | None, event_id: str, tenant: str | None, offset: int | None) -> "Seen":
    """Return one entry with its content. Raises ConfigError where none or several have the id."""
    from memsluice.operations.held.filters import Filter

    found = look_at(desk, home, replace(Filter(tenant=tenant), event_id=event_id), whole=True)
    seen = [one for one in found.seen if offset is None or one.entry.offset == offset]
    if not seen:
        who = "any tenant" if tenant is None else f"tenant {visible(tenant, 80)}"
        told = f"nothing held of {who} has the id {visible(event_id, 160)}; {desk.name} was read"
        raise ConfigError(f"{told}{_taken_out(desk, event_id, tenant)}")
    if len(seen) > 1:
        those = ", ".join(f"--tenant {visible(one.entry.tenant, 80)} --offset {one.entry.offset}" for one in seen)
        raise ConfigError(f"{len(seen)} held writes have the id {visible(event_id, 160)}; say which: {those}")
    return seen[0]


def _taken_out(desk: "Desk", event_id: str, tenant: str | None) -> str:
    """Say where to look for an entry that is not held, since look back took it out; "" where it did not."""
    from memsluice.operations.provenance.withdrawn import look
    from memsluice.topics.names import PARTITIONS

    found = look(desk.audit, desk.keys.keyring(), tenant, None, PARTITIONS).entries
    if not any(one.event_id == event_id and one.state == "withdrawn" for one in found):
        return ""
    name = visible(event_id, 160)
    return (
        f". It had landed, and a recall's look back took it out: `memsluice trace {name}` says why, "
        f"`memsluice quarantine release {name} --withdrawn` lets it in again"
    )


def sum_up(console: Console, found: "Listing", desk: "Desk", shown: int) -> None:
    """Say how many were found where, and what is not shown and why."""
    broken = f"{found.unverified} records do not verify under this home's keys: not shown" if found.unverified else ""
    tell_found(console, found, shown, f"{len(found.seen)} of {found.read} held writes, from {desk.name}", broken)


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
        told.append((f"{len(found.seen) - shown} more: narrow the filter, or raise --limit", "yellow"))
    if found.left_out:
        told.append((f"{found.left_out} left out: one look holds no more; narrow the filter", "yellow"))
    if broken:
        told.append((broken, "red"))
    for text, style in told:
        console.print(Text(visible(text), style=style), soft_wrap=True)


def only_resumed(ctx: typer.Context, *options: str) -> None:
    """Refuse options that a resumed run keeps from its beginning: left unheeded, --dry-run would sign.

    ``options`` are parameters of the command by their names. Raises ConfigError.
    """
    sources = {name: ctx.get_parameter_source(name) for name in options}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        told = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ConfigError(f"--resume goes on with a run as it was begun: leave out {told}, or begin a new run")


@contextmanager
def resumable(console: Console, command: str) -> Iterator[None]:
    """Say by which command a run goes on, where it is interrupted or the broker is away in the middle of it."""
    try:
        yield
    except (KeyboardInterrupt, MemsluiceError):
        console.print(Text(f"go on with: {command}", style="yellow"), soft_wrap=True)
        raise


def tell_planned(console: Console, first: str, todo: "Plan[Any]") -> None:
    """Say what a replay is about to do, what it did before, and what it leaves."""
    console.print(Text(first))
    if todo.done:
        console.print(Text(f"{todo.done} were replayed by this run before", style="dim"))
    if todo.left:
        console.print(Text(f"{todo.left} more are left for another run: --max-messages", style="yellow"))
