"""``memsluice protect``: what lies under an entry's key stays what agents follow, until an operator ends that."""

import uuid
from datetime import UTC, datetime

import typer
from rich.console import Console

from memsluice.cli.signed_command import Entry, Home, Json, Kids, Tenant, Wait, Why, Yes, confirm, ends, publish, show
from memsluice.clock import wall_ms

app = typer.Typer(add_completion=False)


@app.command()
def protect(
    entry: Entry, tenant: Tenant = None, kids: Kids = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Let nothing replace, move or take out what lies under an entry's key, but an operator. An operator signs.

    The order is bound to the content: it is refused once another lies there. It keeps no entry from ending. An
    operator's `memsluice revoke ENTRY --remove --kid KEY` takes the entry out, and ends the protection with it.
    Exit code 2 where the gate refuses, 3 where no answer came in time.
    """
    from memsluice.envelope.registry import Role
    from memsluice.operations.commands.desk import open_desk
    from memsluice.operations.commands.signing import sign
    from memsluice.operations.provenance.case import find
    from memsluice.operations.provenance.commands import protection

    console = Console(highlight=False, stderr=as_json)
    with open_desk(home) as desk:
        case = find(desk, entry, tenant)
        command = protection(case, str(uuid.uuid4()), datetime.now(UTC), why)
        signed = sign(command, desk.signers(Role.OPERATOR, command.tenant, kids or (), 1), wall_ms())
        told = {name: (text, text) for name, text in (("entry", case.life.event_id), *ends(case.before()).items())}
        show(console, command, signed.kids, told, case.content)
        confirm(console, command.action, yes=yes)
        publish(console, desk, signed, wait, as_json=as_json)
