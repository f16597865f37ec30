"""``memsluice doctor``: check everything that a deployment needs, and say what to do."""

import json
import time

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home, Json
from memsluice.clock import wall_ms
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
    from memsluice.deployment.connection import Connection
    from memsluice.deployment.home import Home as Place
    from memsluice.encoder import EncoderSetting
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.doctor import checks, remote
    from memsluice.operations.target import on_broker
    from memsluice.stores.opening import embedded_space
    from memsluice.topics.names import WEAVIATE_RECALL

    place = Place.at(home)
    todo: dict[str, checks.Check] = {
        "home": lambda: checks.disk(place),
        "keys": lambda: checks.keys(KeyStore(place.path), wall_ms()),
        "policy file": lambda: checks.policies(place),
        "embedded": lambda: checks.embedded(place),
        "model": lambda: checks.model(EncoderSetting.read()),
    }
    if place.store_file.exists():
        todo["encoder"] = lambda: checks.encoder(EncoderSetting.read(), lambda: embedded_space(place.store_file))
    stack = on_broker(place, home)
    if stack:
        connection = Connection.load(home)
        todo |= {
            "broker": lambda: remote.broker(connection),
            "workers": lambda: remote.workers(connection),
            "partitions": lambda: remote.partitions(connection, KeyStore(place.path)),
            "broker clock": lambda: remote.broker_clock(connection, time.time()),
            "store": lambda: remote.store(connection, time.time()),
        }
        if WEAVIATE_RECALL in connection.weaviate_keys:
            todo["encoder"] = lambda: checks.encoder(EncoderSetting.read(), lambda: remote.space(connection))
    elif place.layout.run_file.exists():  # `stack down` removes it
        todo["stack"] = lambda: checks.crashed(place)
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
