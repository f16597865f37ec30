"""``memsluice doctor``: check everything that a deployment needs, and say what to do."""

import json

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home, Json
from memsluice.escaping import visible

app = typer.Typer(add_completion=False, help="Check everything that a deployment needs, and say what to do.")
_SIGNS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}


@app.command()
def doctor(
    home: Home = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Check home, disk, keys, policies, embedded log, encoder, broker, topics, access rules, workers,
    parked partitions, store and clocks.

    Reads only. A failed check has a line that says what to do about it.
    """
    from memsluice.deployment.home import Home as Place
    from memsluice.operations.doctor import checks
    from memsluice.operations.doctor.everything import checks_of
    from memsluice.operations.target import on_broker

    place = Place.at(home)
    stack = on_broker(place, home)
    todo = checks_of(place, home)
    found = []
    console = Console(soft_wrap=True, highlight=False)
    for finding in checks.run(todo):
        found.append(finding)
        if not as_json:
            sign, colour = _SIGNS[finding.state.value]
            console.print(Text(f"{sign} {finding.what:12} ", style=colour) + Text(visible(finding.said)))
            if finding.remedy:
                console.print(Text(f"  {'':12} → {visible(finding.remedy)}"))
    if as_json:
        typer.echo(json.dumps([finding.as_data() for finding in found]))
    elif "stack" not in todo and not stack:
        console.print("No local stack runs here, so no broker and store were checked: `memsluice stack up` starts one.")
    if any(finding.state is checks.CheckState.FAIL for finding in found):
        raise typer.Exit(ExitCode.PROBLEM)
