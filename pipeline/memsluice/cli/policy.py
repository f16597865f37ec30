"""``memsluice policy``: check, compare and activate policies."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home, Json, Loosen, Propose, Wait, Why, Yes
from memsluice.cli.policy_effect import accept, effect_at
from memsluice.cli.policy_evaluate import evaluate
from memsluice.clock import wall_ms
from memsluice.errors import InvalidArgument
from memsluice.escaping import visible
from memsluice.gate.commands.activation import APPROVALS
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.lint import Remark, Severity, lint
from memsluice.gate.policy.model import Policy
from memsluice.operations.policies import files

if TYPE_CHECKING:
    from memsluice.envelope.verdict import Verdict
    from memsluice.events.models import Command
    from memsluice.operations.policies.desk import PolicyDesk

DIGEST_SHOWN = 16
app = typer.Typer(no_args_is_help=True, add_completion=False, help="Policies: check, compare, evaluate, activate.")


@app.callback()
def _policy() -> None:
    """Policies: check, compare, evaluate, activate."""


app.command()(evaluate)


@app.command()
def check(
    file: Annotated[
        Path | None, typer.Argument(help="Policy file; the one that ships with memsluice if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the resolved policies as JSON.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Count warnings as problems too.")] = False,
) -> None:
    """Validate a policy file, print each policy with its digest, and warn of settings that are valid but risky."""
    found = files.load(file) if file is not None else policies.default()
    remarks = lint(found)
    if as_json:
        everyone = {"default": found.default, **found.tenants}
        typer.echo(
            json.dumps({t: {"digest": p.digest, **p.model_dump(mode="json")} for t, p in everyone.items()}, indent=2)
        )
    else:
        _show(found, remarks)
    if any(strict or remark.severity is Severity.ERROR for remark in remarks):
        raise typer.Exit(ExitCode.PROBLEM)


@app.command()
def shipped(
    name: Annotated[str | None, typer.Argument(help="Print this one's file; all are listed if left out.")] = None,
) -> None:
    """List the policies that ship with memsluice, or print one: a file to begin with, or to activate as it is."""
    if name is not None:
        typer.echo(policies.shipped(name), nl=False)
        return
    table = Table("policy", "holds by", "MEMSAD", "calibration", title=None)
    for one in policies.shipped_names():
        policy = policies.parse(policies.shipped(one)).default
        table.add_row(one, policy.detector, _memsad(policy), policy.memsad.calibration.strategy)
    _console().print(table)


def _show(found: policies.PolicySet, remarks: list[Remark]) -> None:
    console = _console()
    table = Table("applies to", "policy", "profile", "mode", "MEMSAD", title=None)
    for who, policy in {"every tenant": found.default, **found.tenants}.items():
        digest = policy.digest[: len(policy.name) + 1 + DIGEST_SHOWN]
        table.add_row(_shown(who), digest, policy.profile, policy.mode, _memsad(policy))
    console.print(table)
    for remark in remarks:
        colour = "red" if remark.severity is Severity.ERROR else "yellow"
        console.print(Text(remark.severity.value, colour), _shown(f"{remark.where}: {remark.text}"))
    console.print("valid" + ("" if not remarks else f", {len(remarks)} remark{'s' if len(remarks) > 1 else ''}"))


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True, markup=False)


def _shown(text: str) -> Text:
    """Return text that nothing in it can act with: no markup is read, no control character reaches the terminal."""

    return Text(visible(text))


def _memsad(policy: Policy) -> str:
    memsad = policy.memsad
    if not memsad.enabled:
        return "off"
    return f"{memsad.mode.value}, κ {memsad.kappa:g}, N {memsad.reference_size}, m {memsad.history_size}"


File = Annotated[Path, typer.Argument(help="Policy file.")]


@app.command()
def diff(
    file: File,
    other: Annotated[
        Path | None, typer.Argument(help="Another policy file; the one that ships with memsluice if left out.")
    ] = None,
    in_force: Annotated[
        str | None,
        typer.Option("--in-force", help="Compare with the policy in force for this tenant.", metavar="TENANT"),
    ] = None,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Show field by field how a policy file differs from another, or from the policy in force, and what is looser."""
    from memsluice.gate.policy.diff import between
    from memsluice.operations.policies.loosening import loosened, value

    after = files.load(file)
    if in_force is not None:
        before, name = _in_force(home, in_force)
        after = policies.PolicySet(after.of(in_force), {})
    else:
        before, name = (files.load(other), str(other)) if other else (policies.default(), "the policy that ships")
    changes = between(before, after)
    looser = {(one.change.who, one.change.field) for one in loosened(changes, after)}
    if as_json:
        told = [{**asdict(one), "looser": (one.who, one.field) in looser} for one in changes]
        typer.echo(json.dumps(told))
    else:
        console = _console()
        table = Table("applies to", "field", "before", "after", "", box=None, pad_edge=False)
        for one in changes:
            mark = "LOOSER" if (one.who, one.field) in looser else ""
            table.add_row(*map(_shown, (one.who, one.field, value(one.before), value(one.after), mark)))
        console.print(table if changes else _shown(f"no difference to {name}"))
    if changes:
        raise typer.Exit(ExitCode.DIFFERENT)


@app.command()
def show(tenant: Annotated[str, typer.Argument(help="Whose policy.")], home: Home = None) -> None:
    """Show which policy is in force for a tenant, who put it there, and when: from the audit alone."""
    console = _console()
    with _desk(home) as desk:
        from memsluice.operations.policies.standing import CUT, of_home, standing

        now = standing(desk.audit, desk.keys.keyring(), tenant)
    found = now.activated
    if found is None:
        if now.whole:
            console.print(
                f"Nothing was activated for {visible(tenant, 80)}: each worker uses the policy file of its home."
            )
        else:
            console.print(f"The audit has no activation for {visible(tenant, 80)}. {CUT}")
        console.print(f"The policy file of this home: {of_home(home).of(tenant).digest}")
        return
    scope = "every tenant" if found.tenant == "*" else "this tenant alone"
    console.print(f"{found.policies().of(tenant).digest}")
    console.print(f"for {scope}, since {_moment(found.at_ms)}, by command {visible(found.command_id)}")
    console.print(f"signed by {', '.join(visible(kid) for kid in found.approvers)}")
    if found.tenant == "*" and not now.whole:
        console.print(f"It is not known whether the tenant has a policy of its own besides. {CUT}")


@app.command()
def activate(
    file: Annotated[Path | None, typer.Argument(help="Policy file; leave it out with --end.")] = None,
    tenant: Annotated[str, typer.Option(help="For this tenant only; * is every tenant.")] = "*",
    kids: Annotated[
        list[str] | None, typer.Option("--kid", help="Key id of an operator: name two, or --propose.")
    ] = None,
    end: Annotated[
        bool, typer.Option("--end", help="End the tenant's own policy: the one for every tenant applies again.")
    ] = False,
    why: Why = "",
    propose: Propose = None,
    loosen: Loosen = False,
    yes: Yes = False,
    wait: Wait = 30.0,
    home: Home = None,
) -> None:
    """Activate a policy on all running workers, without a restart. Two operators sign.

    What it changes against the policy in force is shown first. Where it lets more happen, that is asked for by itself:
    --yes alone signs nothing then.
    """
    from memsluice.operations.commands.signing import COMMAND_VALID, sign
    from memsluice.operations.policies.commands import activation, ending
    from memsluice.operations.provenance.commands import PROPOSED_VALID

    if (file is None) != end or (end and propose is not None):
        raise InvalidArgument(
            "policy activate needs either a policy file, or --end with --tenant; --end does not go with --propose"
        )
    console = _console()
    with _desk(home) as desk:
        if file is not None:
            valid = COMMAND_VALID if propose is None else PROPOSED_VALID
            command = activation(policies.read(file), tenant, str(uuid.uuid4()), _now(), why, valid)
        else:
            command = ending(desk.audit, desk.keys.keyring(), tenant, str(uuid.uuid4()), _now(), why)
        signers = desk.approvers(tenant, kids or (), APPROVALS if propose is None else 1)
        _tell_command(console, command, file, [held.kid for held in signers])
        changed = effect_at(desk.audit, desk.keys, command, home)
        accept(console, changed, loosen=loosen, yes=yes)
        if not yes and not typer.confirm("Sign and publish?"):
            raise typer.Abort
        if propose is not None:
            sign(command, signers[:1], wall_ms()).save(propose)
            console.print(
                f"The command was written to {propose} with 1 of {APPROVALS} signatures. The old policy stays in force "
                f"until another operator signs it with `memsluice approve {propose}`"
            )
            return
        since = desk.ends(tenant)
        desk.publish(command, signers)
        _tell(console, desk.answered(command, since, wait), len(since), changed.was)


def _tell_command(console: Console, command: "Command", file: Path | None, kids: list[str]) -> None:
    what = f"activate {file}" if file else "end the tenant's own policy"
    who = "every tenant" if command.tenant == "*" else command.tenant
    console.print(_shown(f"To be signed: {what} for {who}; digest {command.digest}"))
    if command.policy is not None:
        named = policies.parse(command.policy).of(command.tenant).digest
        console.print(_shown(f"verdicts and `policy check` will call it {named}"))
    console.print(_shown(f"by {' and '.join(kids)}"))


def _tell(console: Console, verdicts: "dict[int, Verdict]", wanted: int, compared: str) -> None:
    refused = [verdict for verdict in verdicts.values() if verdict.decision != "record"]
    for verdict in refused[:1]:
        details = {f.code: f.detail for f in verdict.findings}
        console.print(Text("refused", "red"), _shown(", ".join(verdict.reasons)))
        console.print(json.dumps(details))
    if refused:
        raise typer.Exit(ExitCode.REFUSED)
    if len(verdicts) < wanted:
        console.print(
            f"{len(verdicts)} of {wanted} partitions have answered; the others will once a screen worker has them"
        )
        raise typer.Exit(ExitCode.NO_ANSWER)
    said = next(iter(verdicts.values())).findings[-1].detail
    console.print(Text("done", "green"), f"in {wanted} partition{'s' if wanted > 1 else ''}")
    console.print(_shown(f"was {said['was']}"))
    if said["was"] != compared:
        other = (
            f"The differences above were against {compared}, and another policy was in force where the command was "
            "decided: memsluice policy diff shows what differs from that one"
        )
        console.print(Text(visible(other), "yellow"))
    console.print(_shown(f"now {said.get('policy', 'that of every tenant')}"))


@contextmanager
def _desk(home: Path | None) -> "Iterator[PolicyDesk]":
    from memsluice.operations.policies import desk
    from memsluice.operations.target import opened

    with opened(home, desk.on_kafka, desk.embedded) as found:
        yield found


def _in_force(home: Path | None, tenant: str) -> tuple[policies.PolicySet, str]:
    from memsluice.operations.policies.standing import standing

    with _desk(home) as desk:
        found = standing(desk.audit, desk.keys.keyring(), tenant)
    policy = found.policy(home)
    return policies.PolicySet(policy, {}), "the file of this home" if found.activated is None else policy.digest


def _now() -> datetime:
    return datetime.now(UTC)


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
