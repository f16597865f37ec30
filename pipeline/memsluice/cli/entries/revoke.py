"""``memsluice revoke``: contain or remove an entry or a source, with all descendants."""

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli import exit_codes
from memsluice.cli.entries.blast_radius import NOT_FOLLOWED, SourceArgument, say_namesake
from memsluice.cli.options import Home, Json, Kids, TenantOfEntry, Wait, Why, Yes
from memsluice.cli.signed_command import answer_as_data, answered, ordered, refused
from memsluice.clock import wall_ms
from memsluice.errors import ConfigError, InvalidArgument, NotFound

if TYPE_CHECKING:
    from memsluice.events.models import Command
    from memsluice.keystore.files import SigningCredential
    from memsluice.operations.commands.desk import CommandDesk
    from memsluice.operations.provenance.plan import PlannedCommand
    from memsluice.operations.provenance.spread import Spread

app = typer.Typer(add_completion=False)
BATCH = 100
SHOWN_MAX = 200
DONE_BEFORE = frozenset({"revocation.nothing_to_do", "revocation.unknown_session", "landed.unknown"})
"""Refusals that say that there is nothing left to revoke."""
OF_A_SESSION = DONE_BEFORE - {"revocation.unknown_session"}
"""The same where a session itself is the source: one that nobody knows was mistyped, or its name is free again."""


@app.command()
def revoke(
    source: SourceArgument, tenant: TenantOfEntry = None,
    contain: Annotated[bool, typer.Option("--contain", help="Move to the external zone, as data.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove from memory; reject held writes.")] = False,
    only: Annotated[bool, typer.Option("--only", help="Only these entries, not their descendants.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; sign nothing.")] = False,
    max_entries: Annotated[int, typer.Option(min=1, max=50_000, help="Commands at most; the nearest.")] = 1_000,
    kids: Kids = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0, as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Revoke an entry or a source with everything that descends from it: one signed command for each entry.

    What would change is shown before anything is signed. To continue a run that was stopped, run the same command
    again. A protected entry is removed only by an operator's key (--kid), which also ends the protection. The result is
    incomplete where --max-entries left some, or there are more descendants than fit in memory.
    """
    from memsluice.envelope.registry import Role
    from memsluice.operations.commands.desk import open_desk

    if contain == remove:
        raise InvalidArgument(
            "revoke needs one of --contain (move to the external zone) and --remove (take out of memory)"
        )
    console = Console(highlight=False, stderr=as_json, soft_wrap=True)
    with open_desk(home) as desk:
        spread = _one_tenant(desk, source, tenant)
        if spread is None:  # a name that was mistyped is not taken for one that did no harm
            raise NotFound("The audit has no such entry or source: check the name, and the tenant")
        every = list(_steps(spread, "contain" if contain else "remove", only=only))
        todo = every[:max_entries]
        say_namesake(console, spread)
        _show(console, todo, len(every))
        if not spread.whole:
            console.print(Text(NOT_FOLLOWED, "red"))
        if not todo or dry_run:
            if as_json:
                told = {"steps": [_as_data(step) for step in todo], "left": len(every) - len(todo)}
                print(json.dumps({**told, "whole": spread.whole}))
            if not spread.whole:
                raise typer.Exit(exit_codes.ExitCode.INCOMPLETE)
            return
        (signer,) = desk.signers(Role.REVIEWER, spread.tenant, kids or (), 1)[:1]
        if not yes:
            typer.confirm(f"Sign {len(todo)} commands with {signer.kid}?", abort=True, err=as_json)
        done_before = OF_A_SESSION if spread.source.kind == "session" else DONE_BEFORE
        missing, failed = _run(console, desk, signer, todo, why, wait, done_before, as_json=as_json)
        left = len(every) - len(todo)
        if not (left or missing or failed):  # what was written meanwhile, from what was not revoked yet
            after = _one_tenant(desk, source, tenant)
            left = 0 if after is None else len(list(_steps(after, "contain" if contain else "remove", only=only)))
            if left:
                console.print(Text(f"{left} more descendants were written meanwhile", "yellow"))
    if left or missing or failed:
        console.print(Text("to continue, run the same command again", "yellow"))
        raise typer.Exit(exit_codes.of_answers(missing=bool(missing), refused=bool(failed), left=True))
    if not spread.whole:
        raise typer.Exit(exit_codes.ExitCode.INCOMPLETE)


def _one_tenant(desk: "CommandDesk", text: str, tenant: str | None) -> "Spread | None":
    """Return the blast radius in the one tenant that is meant; None: nothing. Raises ConfigError."""
    from memsluice.escaping import visible
    from memsluice.operations.provenance.sources import parse
    from memsluice.operations.provenance.spread import Spread, radius
    from memsluice.topics.names import PARTITIONS

    source = parse(text)
    found = radius(desk.audit, desk.keys.keyring(), source, tenant, PARTITIONS)
    if len(found.spreads) > 1:
        named = ", ".join(visible(name, 63) for name in list(found.spreads)[:8])
        raise NotFound(f"{len(found.spreads)} tenants have such an entry or source ({named}): choose one with --tenant")
    if found.spreads:
        return next(iter(found.spreads.values()))
    if source.kind == "session" and tenant is not None:  # nothing written yet; it can be distrusted all the same
        return Spread(tenant, source)
    return None


def _steps(spread: "Spread", mode: str, *, only: bool) -> "Iterator[PlannedCommand]":
    from memsluice.operations.provenance.plan import steps

    for step in steps(spread, mode, wall_ms()):
        nearest = step.target == spread.source.name if step.reached is None else step.reached.depth == 0
        if nearest or not only:
            yield step


def _show(console: Console, todo: "Sequence[PlannedCommand]", found: int) -> None:
    from memsluice.escaping import visible

    if not todo:
        console.print("Nothing to revoke: no descendant is in memory, or all are revoked already.")
        return
    for step in todo[:SHOWN_MAX]:
        why = f"  {visible(step.reached.why, 160)}" if step.reached is not None else "  session"
        line = Text(f"  {step.action.value:<9}{step.now} → {step.then}  ")
        line.append(visible(step.target, 160), "bold")
        console.print(line.append(why, "dim"))
    if len(todo) > SHOWN_MAX:
        console.print(Text(f"  and {len(todo) - SHOWN_MAX} more"))
    counts = Counter(f"{step.now} → {step.then}" for step in todo)
    told = "; ".join(f"{count} × {change}" for change, count in counts.most_common())
    left = f"; {found - len(todo)} more are left: raise --max-entries" if found > len(todo) else ""
    console.print(Text(f"{len(todo)} commands for {visible(todo[0].tenant, 80)}: {told}{left}"))


def _run(
    console: Console, desk: "CommandDesk", signer: "SigningCredential", todo: "Sequence[PlannedCommand]", why: str,
    wait_s: float, done_before: frozenset[str], *, as_json: bool,
) -> tuple[int, int]:  # fmt: skip
    """Sign and publish batch by batch; return how many answers are missing, and how many refusals count."""
    from memsluice.operations.commands.signing import sign
    from memsluice.operations.held.view import name

    left, missing, failed, done = iter(todo), 0, 0, 0
    while batch := list(islice(left, BATCH)):
        commands = _commands(desk, batch, why)
        failed += len(batch) - len(commands)
        verdicts = ordered(desk, [sign(command, [signer], wall_ms()) for command in commands], wait_s)
        for command in commands:
            verdict = verdicts.get(command.id)
            real = verdict is not None and refused(verdict) and not done_before & set(verdict.reasons)
            missing, failed = missing + (verdict is None), failed + real
            done += verdict is not None and not refused(verdict)
            if as_json:
                print(json.dumps(answer_as_data(command, verdict)))
            elif verdict is None or real:
                console.print(Text(f"  {name(command.target)}: ").append(answered(command, verdict, wait_s)))
        if missing:
            break
    console.print(Text(f"{done} of {len(todo)} carried out", "green" if done == len(todo) else "yellow"))
    return missing, failed


def _commands(desk: "CommandDesk", batch: "Sequence[PlannedCommand]", why: str) -> "list[Command]":
    """Return the commands of a batch; an entry whose content is nowhere any more can only be removed, and is told."""
    from memsluice.gate.commands.review import OFFSET_PARAMETER
    from memsluice.operations.provenance.carrying import accepted_records
    from memsluice.operations.provenance.commands import distrust, order
    from memsluice.topics.names import ACCEPTED, PARTITIONS

    now, made = datetime.now(UTC), []
    carrying = {s.target: s.reached.entry.placed for s in batch if s.reached is not None and s.carries}
    since_ms = min((placed.decided_ms for placed in carrying.values()), default=0)
    wanted = {name: placed.sealed_offset for name, placed in carrying.items()}
    topic, keyring = desk.topic(ACCEPTED), desk.keys.keyring()
    found = accepted_records(topic, keyring, batch[0].tenant, wanted, since_ms, PARTITIONS) if wanted else {}
    for step in batch:
        command_id = str(uuid.uuid4())
        if step.reached is None:
            made.append(distrust(step.tenant, step.target, command_id, now, why))
            continue
        entry = step.reached.entry
        carried = found[step.target][0] if step.target in found else None
        if step.carries and carried is None:
            _not_ordered(
                step.target,
                "its accepted record is past the topic's retention, so it cannot be contained: use --remove",
            )
            continue
        parameters = {OFFSET_PARAMETER: str(entry.offset)} if entry.repeated_id else None
        try:
            made.append(
                order(step.tenant, step.action, step.target, entry.digest, command_id, now, reason=why, carried=carried,
                      parameters=parameters)
            )  # fmt: skip
        except ConfigError as error:  # too large to be carried: no reason to leave the others where they are
            _not_ordered(step.target, f"{error}; use --remove")
    return made


def _not_ordered(event_id: str, why: str) -> None:
    from memsluice.escaping import visible

    text = f"  {visible(event_id, 160)}: {why}"
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(text, "red"))


def _as_data(step: "PlannedCommand") -> dict[str, Any]:
    return {
        "action": step.action.value,
        "target": step.target,
        "now": step.now,
        "then": step.then,
        "why": "session" if step.reached is None else step.reached.why,
        "depth": 0 if step.reached is None else step.reached.depth,
    }
