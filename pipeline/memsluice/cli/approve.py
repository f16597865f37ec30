"""``memsluice approve``: the second signature of a command that somebody proposed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from memsluice.cli.options import Home, Json, Kids, Loosen, Wait, Yes
from memsluice.cli.signed_command import changes, confirm, publish, show
from memsluice.clock import wall_ms
from memsluice.errors import ConfigError
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.keystore.files import SigningCredential
    from memsluice.operations.commands.desk import CommandDesk
    from memsluice.operations.commands.signing import Signed

app = typer.Typer(add_completion=False)


@app.command()
def approve(
    file: Annotated[Path, typer.Argument(help="The proposed command, as --propose wrote it.")],
    kids: Kids = None, loosen: Loosen = False, yes: Yes = False, wait: Wait = 30.0, as_json: Json = False,
    home: Home = None,
) -> None:  # fmt: skip
    """Show what a proposed command changes, add a second signature to the same bytes, and publish it.

    Every signature in the file is verified, and the entry is looked up again. If the key that signed the proposal is
    also on this machine, name the key that signs now with --kid.
    """
    from memsluice.envelope.registry import check_persons
    from memsluice.gate.commands.dispatch import COMMANDS
    from memsluice.operations.commands.desk import open_desk
    from memsluice.operations.commands.signing import cosign, load

    console = Console(highlight=False, stderr=as_json)
    with open_desk(home) as desk:
        proposed = load(file, desk.keys.keyring)
        command = proposed.command
        if int(command.expires_at.timestamp() * 1_000) <= wall_ms():
            raise ConfigError(
                f"The approval of this command expired at {command.expires_at.isoformat(timespec='seconds')}: "
                "propose it again with --propose"
            )
        approvals = COMMANDS[command.action].approvals if command.action in COMMANDS else 1
        signed = proposed
        for credential in _missing(desk, proposed, kids or (), approvals):
            signed = cosign(signed, credential, wall_ms())
        check_persons(signed.kids, desk.keys.keyring(), desk.keys.registry())
        _show(console, desk, signed, home, loosen=loosen, yes=yes)
        confirm(console, command.action, yes=yes)
        publish(console, desk, signed, wait, as_json=as_json)


def _missing(desk: "CommandDesk", proposed: "Signed", kids: Sequence[str], approvals: int) -> "list[SigningCredential]":
    """Return the credentials that will sign besides: those named, else the newest one here.

    Raises ConfigError where they are not enough, and, where none is named, if a key that signed the proposal is here:
    who approves is another person, and only that person can say so.
    """
    tenant, wanted = proposed.command.tenant, approvals - len(proposed.kids)
    if kids:
        found = [desk.keys.credential(kid) for kid in dict.fromkeys(kids)]
    else:
        for kid in proposed.kids:
            if desk.keys.credential_path(kid).exists():
                raise ConfigError(
                    f"The key {kid}, which signed the proposal, is on this machine too, and an approval must come from "
                    "another person: run `memsluice approve` on that person's machine. Where both keys are here on "
                    "purpose, name the other one with --kid KID"
                )
        role = desk.keys.registry().get(proposed.kids[0]).role
        found = desk.keys.find_credentials(role, wall_ms(), tenant=tenant)[: min(wanted, 1)]
    if len(found) < wanted:
        raise ConfigError(
            f"This command needs {approvals} signatures and has {len(proposed.kids)}, and this home has no other "
            f"credential that may sign it for {visible(tenant, 80)}: run `memsluice approve` where one is"
        )
    return found


def _show(
    console: Console, desk: "CommandDesk", signed: "Signed", home: Path | None, *, loosen: bool, yes: bool
) -> None:
    """Print what is to be signed and what it changes; of a policy also ask for what gets looser."""
    from memsluice.events.models import Action
    from memsluice.operations.provenance.case import of_command

    command = signed.command
    if command.action is Action.ACTIVATE:
        from memsluice.cli.policy_effect import accept, effect_at

        show(console, command, signed.kids, {}, None)
        accept(console, effect_at(desk.audit, desk.keys, command, home), loosen=loosen, yes=yes)
    else:
        case = of_command(desk, command)
        show(console, command, signed.kids, changes(desk, case, command.action), case.content)
