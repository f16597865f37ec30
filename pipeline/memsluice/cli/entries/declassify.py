"""``memsluice declassify``: a signed command about one entry; what it changes is shown first."""

from typing import Annotated

import typer

from memsluice.cli.options import Entry, Home, Json, KidsOfTwo, Propose, TenantOfEntry, Wait, Why, Yes
from memsluice.cli.signed_command import give
from memsluice.events.models import Action
from memsluice.gate.commands.despite import DESPITE_PARAMETER, DETECTION

app = typer.Typer(add_completion=False)


@app.command()
def declassify(
    entry: Entry, tenant: TenantOfEntry = None, kids: KidsOfTwo = None, why: Why = "", propose: Propose = None,
    yes: Yes = False, wait: Wait = 30.0,
    despite_detection: Annotated[
        bool, typer.Option("--despite-detection", help="Even if the detector would hold it; both sign that.")
    ] = False,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Remove the taint label of one content: two reviewers sign. What was made from it before keeps its own label.

    Each reviewer signs on their own machine: one with --propose FILE, the other with `memsluice approve FILE`. Where
    both keys are on this machine on purpose, name both with --kid.

    A contained entry moves to guidance as an observation (tier 3), unless the detector would hold it; with
    --despite-detection both reviewers sign that it moves all the same. A held entry stays held until it is released.
    """
    despite = {DESPITE_PARAMETER: DETECTION} if despite_detection else None
    give(
        Action.DECLASSIFY, entry, tenant, kids or (), why, propose, home, yes=yes, wait_s=wait, as_json=as_json,
        parameters=despite,
    )  # fmt: skip
