"""``memsluice promote``: one signed command about one entry, with what it changes shown before."""

import typer

from memsluice.cli.signed_command import Entry, Home, Json, Kids, Propose, Tenant, Wait, Why, Yes, give
from memsluice.events.models import Action

app = typer.Typer(add_completion=False)


@app.command()
def promote(
    entry: Entry, tenant: Tenant = None, kids: Kids = None, why: Why = "", propose: Propose = None, yes: Yes = False,
    wait: Wait = 30.0, as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Share an entry with everybody of its tenant. Untainted entries alone; it keeps its tier and its end.

    A reviewer or an operator signs; the entry moves, and nobody loses sight of it.

    Exit code 2 where the gate refuses, 3 where no answer came in time.
    """
    give(Action.PROMOTE, entry, tenant, kids or (), why, propose, home, yes=yes, wait_s=wait, as_json=as_json)
