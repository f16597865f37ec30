"""``memsluice renew``: a signed command about one entry; what it changes is shown first."""

import typer

from memsluice.cli.options import Entry, Home, Json, KidsOfTwo, Propose, TenantOfEntry, Wait, Why, Yes
from memsluice.cli.signed_command import give
from memsluice.events.models import Action

app = typer.Typer(add_completion=False)


@app.command()
def renew(
    entry: Entry, tenant: TenantOfEntry = None, kids: KidsOfTwo = None, why: Why = "", propose: Propose = None,
    yes: Yes = False, wait: Wait = 30.0, as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Extend an entry's time in memory by its tier's whole time to live. A reviewer signs; the taint label stays."""
    give(Action.RENEW, entry, tenant, kids or (), why, propose, home, yes=yes, wait_s=wait, as_json=as_json)
