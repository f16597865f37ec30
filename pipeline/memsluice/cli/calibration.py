"""``memsluice calibration``: a tenant's detector calibration over time."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home, Json
from memsluice.cli.terminal import waiting
from memsluice.escaping import visible

app = typer.Typer(no_args_is_help=True, add_completion=False, help="A tenant's detector calibration over time.")
SHOWN_CHARS_MAX = 160


@app.callback()
def _calibration() -> None:
    """A tenant's detector calibration over time."""


@app.command()
def show(
    tenant: Annotated[str, typer.Argument(help="The tenant to look at.")],
    detector: Annotated[
        Literal["default", "memsad"] | None, typer.Option(help="The detector. Default: the one whose score decides.")
    ] = None,
    last: Annotated[int, typer.Option(min=1, max=10_000, help="Scored writes to show; the latest.")] = 1_000,
    as_json: Json = False,
    svg: Annotated[Path | None, typer.Option(help="Write the chart to this new file as SVG.", dir_okay=False)] = None,
    png: Annotated[Path | None, typer.Option(help="Write the chart to this new file as PNG.", dir_okay=False)] = None,
    home: Home = None,
) -> None:
    """Show the score of each screened write, the threshold at that time, and the phases of the calibration.

    Phases: cold, warming, calibrated, drifting, frozen. With the conformal strategy the chart shows -log10 of p-values.
    The command reads only memory.audit.v1 and verifies each record's seal.
    """
    from memsluice.cli.render.calibration import render
    from memsluice.events.partition import partition_of
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.monitor.calibration import History
    from memsluice.operations.monitor.calibration_view import as_data, picture
    from memsluice.operations.trace.opening import audit_topic
    from memsluice.topics.names import PARTITIONS

    history = History(tenant, KeyStore(home).keyring())
    with audit_topic(home) as topic:
        with waiting("reading the audit"):
            for record in topic.read(partition_of(tenant, PARTITIONS)):
                history.take(record)
        where = topic.name
    chosen = detector or history.deciding
    if chosen is None or chosen not in history.points:
        line = (
            f"not found: no write of tenant {visible(tenant, SHOWN_CHARS_MAX)} was scored, among the {history.read} "
            f"records of its partition in {visible(where)}; {history.unverified} did not verify under this home's keys"
        )
        Console(stderr=True, soft_wrap=True, highlight=False).print(Text(line))
        raise typer.Exit(ExitCode.NOT_FOUND)
    if svg is not None:
        _keep(svg, picture(history, chosen, last).svg().encode())
    if png is not None:
        _keep(png, picture(history, chosen, last).png())
    if as_json:
        print(json.dumps(as_data(history, chosen, last)))
    else:
        Console(highlight=False).print(render(history, chosen, last))


def _keep(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
