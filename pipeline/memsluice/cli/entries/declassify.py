"""``memsluice declassify``: one signed command about one entry, with what it changes shown before."""

from typing import Annotated

import typer

from memsluice.cli.signed_command import Entry, Home, Json, Kids, Propose, Tenant, Wait, Why, Yes, give
from memsluice.events.models import Action
from memsluice.gate.commands.declassification import DESPITE_PARAMETER, DETECTION

app = typer.Typer(add_completion=False)


@app.command()
def declassify(
    entry: Entry, tenant: Tenant = None, kids: Kids = None, why: Why = "", propose: Propose = None, yes: Yes = False,
    wait: Wait = 30.0,
    despite_detection: Annotated[
        bool, typer.Option("--despite-detection", help="Even if detection would hold it; both sign that.")
    ] = False,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Lift the label of one content: two reviewers sign. What was made from it before keeps its own.

    Each on their own machine (--propose, and `memsluice approve`); where both keys are here on purpose, name both.

    A contained entry moves to guidance as an observed word (tier 3), unless detection would hold it and its signers do
    not say that they set that aside. A held one stays held, without its label, until it is released.

    Exit code 2 where the gate refuses, 3 where no answer came in time.
    """
    despite = {DESPITE_PARAMETER: DETECTION} if despite_detection else None
    give(
        Action.DECLASSIFY, entry, tenant, kids or (), why, propose, home, yes=yes, wait_s=wait, as_json=as_json,
        parameters=despite,
    )  # fmt: skip
