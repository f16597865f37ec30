"""``memsluice quarantine``: what is held, why, and what a reviewer decides about it."""

import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from memsluice.clock import wall_ms
from memsluice.errors import ConfigError

if TYPE_CHECKING:
    from memsluice.quarantine.collect import Listing, Seen
    from memsluice.quarantine.desk import Desk
    from memsluice.quarantine.filters import Filter

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Held writes: see why, release or reject them.")
EXIT_REFUSED, EXIT_NO_ANSWER = 2, 3
LISTED_MAX = 100

Home = Annotated[Path | None, typer.Option(help="Default: MEMSLUICE_HOME or ~/.memsluice", show_default=False)]
Tenant = Annotated[str | None, typer.Option(help="Of this tenant alone; reads one partition.", show_default=False)]
Reason = Annotated[str | None, typer.Option(help="A reason code, or its module: rates.", show_default=False)]
Since = Annotated[str | None, typer.Option(help="Held since: 30m, 24h, 7d ago, or a date and time.")]
Until = Annotated[str | None, typer.Option(help="Held before: 30m, 24h, 7d ago, or a date and time.")]
Source = Annotated[str | None, typer.Option(help="A channel, agent, principal, session or key id.")]
MinScore = Annotated[float | None, typer.Option(help="With an anomaly score of at least this.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Entry = Annotated[str, typer.Argument(help="Event id of the held write, as `list` shows it.")]
Offset = Annotated[int | None, typer.Option(help="Its intake offset, where several have that id.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", help="Sign without asking.")]
Why = Annotated[str, typer.Option("--why", help="For those who read the commands later; part of what is signed.")]
Wait = Annotated[float, typer.Option(min=0, max=600, help="Seconds to wait for the gate's answer.")]


@app.command("list")
def list_(
    tenant: Tenant = None, reason: Reason = None, since: Since = None, until: Until = None, source: Source = None,
    min_score: MinScore = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what was decided, or is too old to be.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows at most; the oldest.")] = LISTED_MAX,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Show what is held, oldest first: why, from where, how long, and what it says."""
    from memsluice.cli.quarantine_show import as_data, entries

    wanted = _filter(tenant, reason, since, until, source, min_score, everything=everything)
    with open_desk(home) as desk:
        found = _look(desk, home, wanted)
        if as_json:
            print(json.dumps(as_data(found, limit, wall_ms())))
            return
        console = Console(highlight=False)
        if found.seen:
            console.print(entries(found.seen[:limit], wall_ms()))
        _sum_up(console, found, desk, limit)


@app.command()
def show(entry: Entry, tenant: Tenant = None, offset: Offset = None, as_json: Json = False, home: Home = None) -> None:
    """Show one held write whole: content with what triggered marked, numbers, source, lineage, and what was decided.

    Control, zero-width and bidi characters are spelled out: <U+202E>.
    """
    from memsluice.cli.quarantine_show import one_as_data, review

    with open_desk(home) as desk:
        seen = _one(desk, home, entry, tenant, offset)
        if as_json:
            print(json.dumps(one_as_data(seen, wall_ms(), whole=True)))
        else:
            Console(highlight=False).print(review(seen, wall_ms()))


@app.command()
def stats(tenant: Tenant = None, since: Since = None, as_json: Json = False, home: Home = None) -> None:
    """Count what is held: by state, and what waits by tenant, reason and channel; and how long the oldest waits."""
    from memsluice.cli.quarantine_show import counts
    from memsluice.quarantine.collect import stats as count

    with open_desk(home) as desk:
        found = _look(desk, home, _filter(tenant, None, since, None, None, None, everything=True))
        told = count(found)
        if as_json:
            by = {name: dict(getattr(told, name)) for name in ("states", "tenants", "reasons", "sources")}
            print(json.dumps({**by, "oldest_ms": told.oldest_ms, "unverified": found.unverified}))
            return
        console = Console(highlight=False)
        console.print(counts(told, wall_ms()))
        _sum_up(console, found, desk, len(found.seen))


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="Where to write; must not exist. It will hold content: mode 0600.")],
    tenant: Tenant = None, reason: Reason = None, since: Since = None, until: Until = None, source: Source = None,
    min_score: MinScore = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what was decided, or is too old to be.")] = False,
    home: Home = None,
) -> None:  # fmt: skip
    """Write held writes with content and verdict to a file, one JSON object a line, ASCII alone."""
    from memsluice.cli.quarantine_show import one_as_data
    from memsluice.quarantine.collect import look_whole

    wanted = _filter(tenant, reason, since, until, source, min_score, everything=everything)
    with open_desk(home) as desk:
        found = _look(desk, home, wanted)
        file.touch(mode=0o600, exist_ok=False)
        with file.open("w", encoding="ascii") as out:
            for seen in look_whole(desk.held, desk.keys.keyring(), found.seen):
                out.write(json.dumps(one_as_data(seen, wall_ms(), whole=True)) + "\n")
        _sum_up(Console(stderr=True, highlight=False), found, desk, len(found.seen))


@app.command()
def release(
    entry: Entry, tenant: Tenant = None, offset: Offset = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    home: Home = None,
) -> None:  # fmt: skip
    """Let a held write land, as if it had been accepted. Signed, bound to its content; never overrides taint.

    Exit code 2 where the gate refuses, 3 where no answer came in time.
    """
    _decide("release", entry, tenant, offset, why, yes, wait, home)


@app.command()
def reject(
    entry: Entry, tenant: Tenant = None, offset: Offset = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    home: Home = None,
) -> None:  # fmt: skip
    """Close a held write for good. Signed, bound to its content.

    Exit code 2 where the gate refuses, 3 where no answer came in time.
    """
    _decide("reject", entry, tenant, offset, why, yes, wait, home)


def _decide(
    what: str, entry: str, tenant: str | None, offset: int | None, why: str, yes: bool, wait_s: float, home: Path | None
) -> None:
    from datetime import UTC, datetime

    from memsluice.cli.quarantine_show import answered, to_be_signed
    from memsluice.events.models import Action
    from memsluice.quarantine.order import Bookmark, answer, order
    from memsluice.topics.names import PARTITIONS

    console = Console(highlight=False)
    with open_desk(home) as desk:
        seen = _one(desk, home, entry, tenant, offset)
        command = order(seen.entry, Action(what), str(uuid.uuid4()), datetime.now(UTC), why)
        console.print(to_be_signed(seen, command, desk.signer(command.tenant)))
        if not yes:
            typer.confirm(f"Sign this {what}?", abort=True)
        since = Bookmark.at(desk.audit, command.tenant, PARTITIONS)
        console.print(Text(f"published to {desk.publish(command)}"))
        desk.settle()
        ruled = answer(desk.audit, desk.keys.keyring(), command, since, wait_s)
        console.print(answered(ruled, command, wait_s))
        if ruled is None:
            raise typer.Exit(EXIT_NO_ANSWER)
        if not ruled.carried_out:
            raise typer.Exit(EXIT_REFUSED)


@contextmanager
def open_desk(home: Path | None) -> Iterator["Desk"]:
    """Give the running stack (or the deployment that the environment names), else the home's embedded log.

    Raises ConfigError, in one sentence, where there is neither.
    """
    from memsluice.cli.recall import deployment_named
    from memsluice.home import Home
    from memsluice.quarantine import desk
    from memsluice.stack.control import is_running

    place = Home.at(home)
    with ExitStack() as closing:
        if is_running(place.layout) or (home is None and deployment_named()):
            yield desk.on_kafka(home, closing)
        elif place.log_file.exists():
            yield desk.embedded(place, closing)
        else:
            raise ConfigError(
                f"There is no quarantine at {place.path}: start a stack with `memsluice stack up`, or try "
                "`memsluice demo`"
            )


def _filter(
    tenant: str | None, reason: str | None, since: str | None, until: str | None, source: str | None,
    min_score: float | None, *, everything: bool,
) -> "Filter":  # fmt: skip
    from memsluice.quarantine.entries import State
    from memsluice.quarantine.filters import Filter, moment_ms

    return Filter(
        tenant=tenant,
        reason=reason,
        since_ms=None if since is None else moment_ms(since, wall_ms()),
        until_ms=None if until is None else moment_ms(until, wall_ms()),
        source=source,
        min_score=min_score,
        states=None if everything else frozenset({State.PENDING}),
    )


def _look(desk: "Desk", home: Path | None, wanted: "Filter", *, whole: bool = False) -> "Listing":
    from memsluice.home import Home
    from memsluice.quarantine.collect import look
    from memsluice.topics.names import PARTITIONS

    policies = Home.at(home).policies()
    with Console(stderr=True).status("reading the quarantine and the audit"):
        return look(
            desk.held, desk.audit, desk.keys.keyring(), wanted, partitions=PARTITIONS, now_ms=wall_ms(),
            age_days=lambda tenant: policies.of(tenant).quarantine.age_days, whole=whole,
        )  # fmt: skip


def _one(desk: "Desk", home: Path | None, event_id: str, tenant: str | None, offset: int | None) -> "Seen":
    from memsluice.quarantine.filters import Filter
    from memsluice.recall.show import visible

    found = _look(desk, home, replace(Filter(tenant=tenant), event_id=event_id), whole=True)
    seen = [one for one in found.seen if offset is None or one.entry.offset == offset]
    if not seen:
        who = "any tenant" if tenant is None else f"tenant {visible(tenant, 80)}"
        raise ConfigError(f"nothing held of {who} has the id {visible(event_id, 160)}; {desk.name} was read")
    if len(seen) > 1:
        those = ", ".join(f"--tenant {one.entry.tenant} --offset {one.entry.offset}" for one in seen)
        raise ConfigError(f"{len(seen)} held writes have the id {visible(event_id, 160)}; say which: {those}")
    return seen[0]


def _sum_up(console: Console, found: Any, desk: "Desk", shown: int) -> None:
    told = [(f"{len(found.seen)} of {found.read} held writes, from {desk.name}", "dim")]
    if len(found.seen) > shown:
        told.append((f"{len(found.seen) - shown} more: narrow the filter, or raise --limit", "yellow"))
    if found.left_out:
        told.append((f"{found.left_out} left out: one look holds no more; narrow the filter", "yellow"))
    if found.unverified:
        told.append((f"{found.unverified} records do not verify under this home's keys: not shown", "red"))
    for text, style in told:
        console.print(Text(text, style=style), soft_wrap=True)
