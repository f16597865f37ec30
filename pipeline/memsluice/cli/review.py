"""``memsluice review``: held writes in groups, on a full screen, decided by key."""

import sys
from typing import Annotated

import typer

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.leaving import leaving
from memsluice.cli.options import Home, Tenant, Wait, check_name
from memsluice.clock import wall_ms
from memsluice.extras import require

app = typer.Typer(add_completion=False, help="Review held writes on a full screen, in groups.")

Filter = Annotated[
    str, typer.Argument(metavar="[FILTER]", help="What to look for: field:value ..., or @name for a saved filter.")
]

UNANSWERED = (
    "the gate has not answered every command yet: it decides what the broker has of them, in their order; start "
    "memsluice review again to see what came of them"
)


@app.command()
def review(wanted: Filter = "", tenant: Tenant = None, wait: Wait = 30.0, home: Home = None) -> None:
    """Review held writes on a full screen: groups of what is alike, each write whole, decided by key; ? shows the keys.

    Nothing is decided that was not on the screen to its end. Each decision is signed with the newest reviewer
    credential of this home that may sign for the tenant. For scripts there is `memsluice quarantine`.
    """
    from memsluice.operations.review.query import HeldQuery
    from memsluice.terminal.guard import refuse_without_terminal

    require("`memsluice review`", "review")
    saved = wanted.startswith("@")
    query = HeldQuery() if saved else HeldQuery.parse(wanted, wall_ms())
    if tenant is not None:
        check_name(tenant, "--tenant")
    refuse_without_terminal(there=all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)))

    from memsluice.operations.review.index import ReviewIndex
    from memsluice.terminal.app import ReviewApp
    from memsluice.terminal.clerk import Clerk
    from memsluice.terminal.columns import refuse_wide_signs
    from memsluice.terminal.going import Ending

    refuse_wide_signs()
    clerk = Clerk(home)
    with leaving(lambda: clerk.works):
        with ReviewIndex.open(home) as index, Ending(ExitCode.INTERRUPTED) as ending, clerk:
            query = index.saved.get(wanted[1:], tenants=None) if saved else query
            shown = ReviewApp(clerk, index, query if tenant is None else query.narrowed(tenant=tenant), wait_s=wait)
            ending.call(shown.end_soon)
            shown.run(mouse=False)
        if shown.failed is not None:
            raise shown.failed
        if shown.signalled:
            raise typer.Exit(ExitCode.INTERRUPTED)
        if shown.unheard or shown.busy:
            typer.echo(UNANSWERED, err=True)
            raise typer.Exit(ExitCode.NO_ANSWER)
