"""``memsluice doctor``: look at everything that a deployment needs, and say what to do."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memsluice.clock import wall_ms
from memsluice.escaping import visible

app = typer.Typer(add_completion=False, help="Look at everything that a deployment needs, and say what to do.")
EXIT_FAIL = 1
_SIGNS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}


@app.command()
def doctor(
    home: Annotated[
        Path | None, typer.Option(help="Default: MEMSLUICE_HOME or ~/.memsluice", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check home, disk, keys, policies, model, broker, topics, access rules, workers, store and clocks.

    Exit code 0 where nothing fails, 1 where something does. Reads only.
    """
    from memsluice.deployment.connection import Connection
    from memsluice.deployment.home import Home
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.doctor import checks, remote
    from memsluice.operations.target import on_broker

    place = Home.at(home)
    todo: dict[str, checks.Check] = {
        "home": lambda: checks.disk(place),
        "keys": lambda: checks.keys(KeyStore(place.path), wall_ms()),
        "policy file": lambda: checks.policies(place),
        "model": checks.model,
    }
    stack = on_broker(place, home)
    if stack:
        connection = Connection.load(home)
        todo |= {
            "broker": lambda: remote.broker(connection),
            "workers": lambda: remote.workers(connection),
            "broker clock": lambda: remote.broker_clock(connection, time.time()),
            "store": lambda: remote.store(connection, time.time()),
        }
    elif place.layout.run_file.exists():  # `stack down` removes it
        todo["stack"] = lambda: checks.crashed(place)
    found = []
    console = Console(soft_wrap=True, highlight=False)
    for finding in checks.run(todo):
        found.append(finding)
        if not as_json:
            sign, colour = _SIGNS[finding.state.value]
            console.print(Text(f"{sign} {finding.what:12} ", style=colour) + Text(visible(finding.said)))
            if finding.do:
                console.print(Text(f"  {'':12} → {visible(finding.do)}"))
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in found]))
    elif "stack" not in todo and not stack:
        console.print("No stack runs here: `memsluice stack up` starts one; `memsluice demo` needs none.")
    if any(finding.state is checks.State.FAIL for finding in found):
        raise typer.Exit(EXIT_FAIL)
