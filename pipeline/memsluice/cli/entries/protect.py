"""``memsluice protect``: a signed command after which only an operator can replace an entry."""

import uuid
from datetime import UTC, datetime

import typer
from rich.console import Console

from memsluice.cli.options import Entry, Home, Json, Kids, TenantOfEntry, Wait, Why, Yes
from memsluice.cli.signed_command import confirm, ends, publish, show
from memsluice.clock import wall_ms

app = typer.Typer(add_completion=False)


@app.command()
def protect(
    entry: Entry, tenant: TenantOfEntry = None, kids: Kids = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Protect the entry under a key: only an operator can replace, move or remove it. An operator signs.

    The command is bound to the entry's content: the gate refuses it if another entry lies under the key by then. A
    protected entry still expires. An operator removes it, and ends the protection, with
    `memsluice revoke ENTRY --remove --kid KEY`.
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
