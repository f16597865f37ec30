"""``memsluice promote``: a signed command about one entry; what it changes is shown first."""

from typing import Annotated

import typer

from memsluice.cli.options import Entry, Home, Json, KidsOfTwo, Propose, TenantOfEntry, Wait, Why, Yes
from memsluice.cli.signed_command import give
from memsluice.events.models import Action
from memsluice.gate.commands.despite import DESPITE_PARAMETER, DETECTION

app = typer.Typer(add_completion=False)


@app.command()
def promote(
    entry: Entry, tenant: TenantOfEntry = None, kids: KidsOfTwo = None, why: Why = "", propose: Propose = None,
    yes: Yes = False, wait: Wait = 30.0,
    despite_detection: Annotated[
        bool, typer.Option("--despite-detection", help="Even if the detector would hold what everybody is given.")
    ] = False,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Share an entry with everybody of its tenant. Only untainted entries; tier and expiry stay as they are.

    A reviewer or an operator signs. Whoever could see the entry before still sees it. It is screened again, more
    strictly, since more people are given it; with --despite-detection the signer sets aside what that finds.
    """
    despite = {DESPITE_PARAMETER: DETECTION} if despite_detection else None
    give(Action.PROMOTE, entry, tenant, kids or (), why, propose, home, yes=yes, wait_s=wait, as_json=as_json,
        parameters=despite)  # fmt: skip
