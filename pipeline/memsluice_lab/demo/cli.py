"""``memsluice demo``: the product in two minutes."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from memsluice.cli.options import named_home
from memsluice.escaping import visible

app = typer.Typer(add_completion=False)
STACK_VARIABLE = "STACK"
WIDTH = 110


@app.command()
def demo(
    stack: Annotated[bool, typer.Option("--stack", help="Play on a real Kafka and Weaviate (also STACK=1).")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Play this stream (JSON lines) and not the sample.", exists=True, dir_okay=False)
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Play this tenant only. Default: all.")] = None,
    home: Annotated[
        Path | None,
        typer.Option(
            help="Where to keep it. Default: a home of the demo's own.", parser=named_home, metavar="DIRECTORY"
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Empty the home first.")] = False,
    incident: Annotated[
        bool, typer.Option("--incident", help="Play a campaign against the running stack instead: docs/incident.md.")
    ] = False,
    window: Annotated[
        bool,
        typer.Option("--window", help="Play its last chapter alone, a change of topic: docs/rolling-calibration.md."),
    ] = False,
) -> None:
    """See it work: a working day of three tenants, with every kind of attack, through the real gate."""
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width of its own
        console = Console(width=WIDTH)
    if incident:
        from memsluice_lab.demo.incident import play

        play(console, home)
        return
    wanted = stack or os.environ.get(STACK_VARIABLE, "") not in ("", "0")
    what = "a working day of three tenants, with every kind of attack"
    if window:
        what = "a change of topic under the policy published-rolling"
    elif data is not None:
        what = escape(visible(data.name))
    console.print(f"[bold]memsluice demo[/]  {what}", highlight=False)
    with console.status("starting"):
        from memsluice_lab.demo import show
    options = show.Options(home, data, tenant, fresh, wanted, window)
    if wanted or (home is not None and _running(home)):
        from memsluice.cli.terminal import friendly
        from memsluice_lab.demo.on_stack import stacked

        with friendly(Console(stderr=True)):  # a signal, too, stops the workers
            stacked(console, options)
    else:
        show.embedded(console, options)


def _running(home: Path) -> bool:
    from memsluice.deployment.home import Home
    from memsluice.devstack.control import is_running

    layout = Home.at(home).layout
    return layout.stack_file.exists() and is_running(layout)
