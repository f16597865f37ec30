"""``memsluice topics``: compare the topic files with the broker, and apply them."""

from pathlib import Path
from typing import Annotated

import typer
from confluent_kafka.admin import AdminClient
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home
from memsluice.cli.terminal import friendly
from memsluice.deployment.connection import Connection, quiet
from memsluice.escaping import visible
from memsluice.topics import plan as plans
from memsluice.topics.names import USER_ADMIN
from memsluice.topics.spec import load

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Topics and access rules as code.")

_SIGNS = {
    "create": "[green]+ create[/]",
    "grant": "[green]+ grant[/]",
    "set": "[yellow]~ set[/]",
    "unset": "[yellow]~ unset[/]",
    "revoke": "[red]- revoke[/]",
    "refused": "[bold red]! refused[/]",
    "manual": "[bold red]! by hand[/]",
}

Files = Annotated[
    Path | None,
    typer.Option("--files", help="Folder of the topic files. Default: the project's own.", show_default=False),
]


def _open(home: Path | None) -> tuple[AdminClient, str]:
    """Return a client, and the name of the broker that it asks."""
    connection = Connection.load(home)
    return AdminClient(quiet(connection.confluent(USER_ADMIN))), f"the broker at {connection.bootstrap}"


def _show(console: Console, found: plans.TopicPlan) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "subject", "what", "broker", "files"):
        table.add_column(heading, overflow="fold")
    for change in found.changes:
        said = (change.subject, change.what, change.have, change.want)
        table.add_row(_SIGNS[change.kind], *(Text(visible(cell)) for cell in said))
    console.print(table)


@app.command()
def plan(home: Home = None, files: Files = None) -> None:
    """Show what apply would do, and change nothing."""
    console = Console()
    with friendly(Console(stderr=True)):
        admin, where = _open(home)
        found = plans.plan(admin, load(files), where)
        if found.empty:
            console.print("nothing to do: the broker matches the files", highlight=False)
            return
        _show(console, found)
        if found.refused:
            console.print(
                "`memsluice topics apply` would refuse this plan and change nothing: a partition count differs",
                highlight=False,
            )
        else:
            console.print(f"{len(found.changes)} differences; apply them with: memsluice topics apply", highlight=False)


@app.command()
def apply(home: Home = None, files: Files = None) -> None:
    """Change the broker to match the files. If a partition count differs, nothing is changed."""
    console = Console()
    with friendly(Console(stderr=True)):
        admin, where = _open(home)
        done = plans.apply(admin, load(files), where)
        if done.empty:
            console.print("nothing to do: the broker matches the files", highlight=False)
            return
        _show(console, done)
        by_hand = sum(change.kind == "manual" for change in done.changes)
        console.print(f"{len(done.changes) - by_hand} changes applied", highlight=False)
        if by_hand:
            console.print(
                f"{by_hand} differences must be changed in the broker's own configuration and are left", highlight=False
            )
    if by_hand:
        raise typer.Exit(ExitCode.DIFFERENT)


@app.command()
def check(home: Home = None, files: Files = None) -> None:
    """Compare the broker with the files, and exit with code 4 where they differ."""
    console = Console()
    with friendly(Console(stderr=True)):
        desired = load(files)
        admin, where = _open(home)
        found = plans.plan(admin, desired, where)
        if found.empty:
            console.print(
                f"{len(desired.topics)} topics and {len(plans.wanted_acls(desired))} access rules match the files",
                highlight=False,
            )
            return
        _show(console, found)
    raise typer.Exit(ExitCode.DIFFERENT)
