"""What the signed commands share: the view before signing, proposals, and the gate's answer."""

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli import exit_codes
from memsluice.clock import wall_ms

if TYPE_CHECKING:
    from memsluice.envelope.registry import Role
    from memsluice.envelope.verdict import Verdict
    from memsluice.events.models import Action, Command
    from memsluice.operations.commands.desk import CommandDesk
    from memsluice.operations.commands.signing import Signed
    from memsluice.operations.provenance.case import Case


def give(
    action: "Action", entry: str, tenant: str | None, kids: Sequence[str], why: str, propose: Path | None,
    home: Path | None, *, yes: bool, wait_s: float, as_json: bool, parameters: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Look up one entry, show what a command would change, sign it, and print the gate's answer; or write a proposal.

    A release here is one of an entry that look back withdrew; held writes: :mod:`memsluice.cli.held.quarantine`.
    """
    from memsluice.events.models import Action
    from memsluice.gate.commands.dispatch import COMMANDS
    from memsluice.operations.commands.desk import open_desk
    from memsluice.operations.commands.signing import COMMAND_VALID, sign
    from memsluice.operations.provenance.case import find
    from memsluice.operations.provenance.commands import PROPOSED_VALID, order

    console, may = Console(highlight=False, stderr=as_json), COMMANDS[action]
    with open_desk(home) as desk:
        case = find(desk, entry, tenant, withdrawn=action is Action.RELEASE)
        wanted = 1 if propose is not None else may.approvals
        signers = desk.signers(_role(desk, may.roles, case.life.tenant, kids), case.life.tenant, kids, wanted)
        command = order(
            case.life.tenant, action, case.life.event_id, case.digest, str(uuid.uuid4()), datetime.now(UTC), reason=why,
            carried=case.carried or None, valid=COMMAND_VALID if propose is None else PROPOSED_VALID,
            parameters=parameters,
        )  # fmt: skip
        signed = sign(command, signers, wall_ms())
        show(console, command, signed.kids, changes(desk, case, action), case.content)
        confirm(console, action, yes=yes)
        if propose is not None:
            signed.save(propose)
            told = (
                f"The command was written to {propose} with 1 of {may.approvals} signatures. Nothing is published yet: "
                f"another person signs it with `memsluice approve {propose}`"
            )
            console.print(Text(told), soft_wrap=True)
            return
        publish(console, desk, signed, wait_s, as_json=as_json)


def _role(desk: "CommandDesk", roles: "Sequence[Role]", tenant: str, kids: Sequence[str]) -> "Role":
    """Return the first of the roles that has a credential here; that of the keys that were named."""
    if kids:
        return desk.keys.credential(kids[0]).role
    here = (role for role in reversed(roles) if desk.keys.find_credentials(role, wall_ms(), tenant=tenant))
    return next(here, roles[-1])


def changes(desk: "CommandDesk", case: "Case", action: "Action") -> dict[str, tuple[str, str]]:
    """Return what a command changes about an entry, before and after, in words; of a keyed one, what gives way."""
    before, after = ends(case.before()), ends(case.after(action))
    told = {name: (before[name], after[name]) for name in before}
    if case.key is not None:
        told["key"] = (case.key, case.key)
    target = case.target(action)
    if target is not None:
        there = _there(desk, case, target)
        told["replaces"] = (there, there)
    return told


def _there(desk: "CommandDesk", case: "Case", target: str) -> str:
    """Return in words what lies in an object, that of the entry itself apart."""
    from memsluice.operations.provenance.slot import occupant
    from memsluice.topics.names import PARTITIONS

    found = occupant(desk.audit, desk.keys.keyring(), case.life.tenant, target, wall_ms(), PARTITIONS)
    if found is None or found[0] == case.life.event_id:
        return "nothing"
    return f"{found[0]}, tier {found[1]}"


def ends(told: Mapping[str, str]) -> dict[str, str]:
    """Return what is told of an entry with the time that it ends in words."""
    from memsluice.recall.show import moment

    end = told["ends"]
    return {**told, "ends": moment(int(end)) if end.isdecimal() else end}


def show(
    console: Console, command: "Command", kids: Sequence[str], diff: Mapping[str, tuple[str, str]], content: str | None
) -> None:
    """Print exactly what a signature will cover, what it changes, and the content that it is bound to."""
    from memsluice.cli.render.held import grid
    from memsluice.escaping import visible
    from memsluice.operations.held.view import Line, Piece, marked

    fields = [
        ("signed by", ", ".join(kids)),
        ("command", command.id),
        ("action", command.action.value),
        ("tenant", command.tenant),
        ("about", command.target),
        ("digest", command.digest or "none"),
        ("expires", command.expires_at.isoformat(timespec="seconds")),
        *(("parameter", f"{key} {value}") for key, value in command.parameters.items()),
        *([("why", command.reason)] if command.reason else []),
        *([("carries", f"the entry, {len(command.held)} characters")] if command.held else []),
        *((name, old if old == new else f"{old} → {new}") for name, (old, new) in diff.items()),
    ]
    told: list[Line] = [Line(label, (Piece(visible(value)),)) for label, value in fields]
    console.print(grid([*told, *([] if content is None else [Line("content", marked(content))])]))


def confirm(console: Console, action: "Action", *, yes: bool) -> None:
    """Ask, unless it was answered on the command line."""
    if not yes:
        typer.confirm(f"Sign this {action.value}?", abort=True, err=console.stderr)


def publish(console: Console, desk: "CommandDesk", signed: "Signed", wait_s: float, *, as_json: bool) -> None:
    """Publish a command and print the gate's answer; exit with REFUSED, or NO_ANSWER where none came in time."""
    verdicts = ordered(desk, [signed], wait_s)
    verdict = verdicts.get(signed.command.id)
    if as_json:
        print(json.dumps(answer_as_data(signed.command, verdict)))
    else:
        console.print(answered(signed.command, verdict, wait_s), soft_wrap=True)
    if verdict is None or refused(verdict):
        raise typer.Exit(exit_codes.of_answers(missing=verdict is None, refused=True))


def ordered(desk: "CommandDesk", signed: "Sequence[Signed]", wait_s: float) -> "dict[str, Verdict]":
    """Publish commands and return the verdicts on them by their ids, those that came in time."""
    from memsluice.events.names import EVERYBODY
    from memsluice.operations.commands.answers import Bookmark, heard
    from memsluice.operations.trace.verdicts import read
    from memsluice.topics.names import PARTITIONS

    tenants = {one.command.tenant for one in signed}
    marks = [Bookmark.at(desk.audit, tenant, PARTITIONS) for tenant in tenants - {EVERYBODY}]
    if EVERYBODY in tenants:
        marks = [Bookmark(number, desk.audit.end(number)) for number in range(PARTITIONS)]
    desk.publish(signed)
    desk.settle()
    told = heard(desk.audit, [one.command for one in signed], {mark.partition: mark for mark in marks}.values(), wait_s)
    read_all = {name: read(desk.keys.keyring(), record) for name, record in told.items()}
    return {name: verdict for name, verdict in read_all.items() if verdict is not None}


def refused(verdict: "Verdict") -> bool:
    """Whether a command was not carried out."""
    from memsluice.envelope.verdict import Decision

    return verdict.decision in (Decision.REJECT, Decision.DUPLICATE)


def answered(command: "Command", verdict: "Verdict | None", wait_s: float) -> Text:
    """Return the gate's answer in words."""
    from memsluice.escaping import visible
    from memsluice.gate.reasons import words

    if verdict is None:
        return Text(
            f"no answer within {wait_s:g} s: the command was published, and the gate will decide it in its order. See "
            f"the decision with: memsluice trace {command.id}",
            style="yellow",
        )
    if refused(verdict):
        why = "; ".join(f"{code}: {words(code)}" for code in verdict.reasons)
        return Text(f"refused: {visible(why)}", style="red")
    code = verdict.findings[-1].code if verdict.findings else "done"
    return Text(f"done: {visible(words(code))}", style="green")


def answer_as_data(command: "Command", verdict: "Verdict | None") -> dict[str, Any]:
    """Return a command and its answer as JSON values."""
    said: dict[str, Any] = {"decision": None, "reasons": [], "findings": [], "object_id": None}
    if verdict is not None:
        whole = verdict.to_json()
        said = {name: whole[name] for name in said}
    return {
        "command_id": command.id,
        "action": command.action.value,
        "tenant": command.tenant,
        "target": command.target,
        "digest": command.digest,
        **said,
    }
