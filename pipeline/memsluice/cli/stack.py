"""``memsluice stack``: a real Kafka and a real Weaviate on this machine, without containers."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home, Json
from memsluice.cli.terminal import friendly, progress
from memsluice.deployment.connection import Connection
from memsluice.deployment.layout import Layout
from memsluice.deployment.paths import CACHE_VARIABLE, cache_dir, home_dir
from memsluice.deployment.space import Room, RoomState
from memsluice.devstack import control, install, tools
from memsluice.devstack.bringup import bring_up
from memsluice.devstack.roles import apply_roles
from memsluice.errors import InvalidArgument, StackError
from memsluice.escaping import lines as spelled
from memsluice.escaping import visible

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="A real Kafka and Weaviate on this machine, without containers."
)

FOLLOW_POLL_S = 0.3
WHY_CHARS_MAX = 600
LOG_CHARS_MAX = 8_000
"""Longest line of a log that is shown; anybody who may connect can make a server log what he chooses."""
LOG_NAMES = (*control.SERVICES, "supervisor")

Cache = Annotated[
    Path | None,
    typer.Option(envvar=CACHE_VARIABLE, help="Downloads and builds. Default: ~/.cache/memsluice", show_default=False),
]


@app.command()
def up(home: Home = None, cache: Cache = None) -> None:
    """Start the broker and the store, and apply topics, access rules and roles. Safe to repeat."""
    console, errors = Console(), Console(stderr=True)
    with friendly(errors):
        with progress(console) as reporter:
            connection = bring_up(home, cache, reporter)
        layout = Layout(home_dir(home))
        table = Table.grid(padding=(0, 2))
        table.add_row("broker", f"{connection.bootstrap}  (SCRAM-SHA-512)")
        table.add_row("store", f"http://{connection.weaviate_host}:{connection.weaviate_http_port}  (API keys)")
        table.add_row("credentials", Text(visible(str(layout.stack_file))))
        console.print(table)
        console.print("Next: memsluice stack status · memsluice stack logs · memsluice stack down", highlight=False)


@app.command()
def status(home: Home = None, as_json: Json = False) -> None:
    """Show the state of each server. Exit code 6 if one is not running."""
    console = Console()
    with friendly(Console(stderr=True)):
        rows = control.status(home)
        if as_json:
            typer.echo(json.dumps([asdict(row) for row in rows], indent=1))
        else:
            console.print(_table(rows))
            if not any(row.pid for row in rows):
                console.print("Start the stack with: memsluice stack up", highlight=False)
            _explain(console, rows)
            if silent := next((row.name for row in rows if row.state in ("hung", "failed")), None):
                told = f"See memsluice stack logs {silent}; restart with: memsluice stack down && memsluice stack up"
                console.print(told, highlight=False, soft_wrap=True)
            _show_room(console, Layout(home_dir(home)))
    if any(row.state != "running" for row in rows):
        raise typer.Exit(ExitCode.UNAVAILABLE)


def _explain(console: Console, rows: list[control.ServiceStatus]) -> None:
    """Say why each server that does not run as it should does not; a log's words are spelled out."""
    for row in rows:
        if row.why:
            console.print(Text(f"{visible(row.name)}: {visible(row.why, WHY_CHARS_MAX)}"))


def _show_room(console: Console, layout: Layout) -> None:
    """Say how much room the disk has where that is little."""
    if not layout.home.exists():
        return
    room = Room.of(layout.home)
    if room.state is not RoomState.OK:
        colour = "yellow" if room.state is RoomState.LOW else "red"
        console.print(Text(f"disk: {visible(str(room))}: free some", style=colour), soft_wrap=True)


def _table(rows: list[control.ServiceStatus]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("server", "state", "address", "pid", "up", "memory", "restarts"):
        table.add_column(heading, no_wrap=True)
    colours = {
        "running": "green",
        "starting": "yellow",
        "restarting": "yellow",
        "failed": "red",
        "waiting for room": "red",
        "hung": "red",
    }
    for row in rows:
        age, memory = _measure(row.pid)
        note = f" (exit {row.exit_code})" if row.exit_code is not None and row.state != "running" else ""
        state = Text.assemble((visible(row.state), colours.get(row.state, "dim")), note)
        table.add_row(
            row.name, state, Text(visible(row.address)), str(row.pid or ""), age, memory, str(row.restarts or "")
        )
    return table


def _measure(pid: int | None) -> tuple[str, str]:
    """Return how long a process has run and what it holds in memory, as text."""
    try:
        process = psutil.Process(pid) if pid else None
        if process is None:
            return "", ""
        age_s = int(time.time() - process.create_time())
        return f"{age_s // 3600}:{age_s // 60 % 60:02}:{age_s % 60:02}", f"{process.memory_info().rss >> 20} MiB"
    except psutil.NoSuchProcess:
        return "", ""


@app.command()
def logs(
    service: Annotated[str, typer.Argument(help=f"One of {', '.join(LOG_NAMES)}; all when left out.")] = "",
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=1000, help="Lines of each log.")] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines until Ctrl-C; needs one server.")
    ] = False,
    home: Home = None,
) -> None:
    """Show the last lines of the servers' logs."""
    with friendly(Console(stderr=True)):
        if service and service not in LOG_NAMES:
            raise InvalidArgument(f"{service!r} has no log; the logs are of {', '.join(LOG_NAMES)}")
        if follow and not service:
            raise InvalidArgument(f"--follow needs one server: memsluice stack logs --follow {control.SERVICES[0]}")
        layout = Layout(home_dir(home))
        if not layout.logs.exists():
            raise StackError(
                f"There are no logs at {layout.home}: no stack was started there. Start one with `memsluice stack up`"
            )
        for name in (service,) if service else LOG_NAMES:
            typer.echo(spelled(f"{name}  ({layout.log(name)})"))
            typer.echo(spelled(control.tail(layout, name, lines), LOG_CHARS_MAX))
        if follow:
            _follow(layout.log(service))


def _follow(log: Path) -> None:
    """Print what is appended, across a rotation, until interrupted."""
    position = log.stat().st_size if log.exists() else 0
    while True:
        size = log.stat().st_size if log.exists() else 0
        position = min(position, size)  # the supervisor cut the log
        if size > position:
            with log.open("rb") as file:
                file.seek(position)
                text = file.read()
            position += len(text)
            typer.echo(spelled(text.decode("utf-8", "replace"), LOG_CHARS_MAX), nl=False)
        time.sleep(FOLLOW_POLL_S)


@app.command()
def down(
    home: Home = None,
    wipe: Annotated[bool, typer.Option("--wipe", help="Also remove data, logs and servers' passwords.")] = False,
) -> None:
    """Stop the broker and the store. Safe to repeat."""
    console = Console()
    with friendly(Console(stderr=True)):
        with console.status("stopping"):
            stopped = control.down(home, wipe=wipe)
        console.print("stopped" if stopped else "nothing was running", highlight=False)
        if wipe:
            text = f"data, logs and the servers' passwords at {home_dir(home)} are removed; keys and credentials stay"
            console.print(escape(visible(text)), highlight=False, soft_wrap=True)


@app.command()
def doctor(cache: Cache = None) -> None:
    """Check whether this machine has what the stack needs, and say how to install what is missing."""
    console = Console()
    with friendly(Console(stderr=True)):
        folder = cache_dir(cache)
        needed = install.missing_tools(folder)
        found = asdict(tools.find(needed))
        for name in needed:
            console.print(f"  [green]✓[/] {name}: {escape(visible(str(found[name])))}", highlight=False, soft_wrap=True)
        for name, path in (("Kafka", install.kafka_jars(folder)), ("Weaviate", install.weaviate_binary(folder))):
            state = f"installed in {path}" if path.exists() else "is installed at the first `memsluice stack up`"
            console.print(f"  [green]✓[/] {name}: {escape(visible(state))}", highlight=False, soft_wrap=True)


@app.command()
def roles(home: Home = None) -> None:
    """Apply the store's roles to a store of your own; `memsluice stack up` does it for the local one."""
    console = Console()
    with friendly(Console(stderr=True)):
        apply_roles(Connection.load(home))
        console.print("the store's roles are applied", highlight=False)
