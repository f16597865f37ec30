"""``memsluice calibration``: what is usual for a tenant, and how that moved."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from memsluice.escaping import visible

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="What is usual for a tenant, and how that moved over time."
)
EXIT_NOT_FOUND = 1
SHOWN_CHARS_MAX = 160


@app.callback()
def _calibration() -> None:
    """What is usual for a tenant, and how that moved over time."""


@app.command()
def show(
    tenant: Annotated[str, typer.Argument(help="The tenant to look at.")],
    detector: Annotated[
        Literal["default", "memsad"] | None, typer.Option(help="Whose calibration. Default: the one that decides.")
    ] = None,
    last: Annotated[int, typer.Option(min=1, max=10_000, help="Scored writes shown, the latest.")] = 1_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Write the chart to this new file as SVG.", dir_okay=False)] = None,
    png: Annotated[Path | None, typer.Option(help="Write the chart to this new file as PNG.", dir_okay=False)] = None,
    home: Annotated[Path | None, typer.Option(help="Default: MEMSLUICE_HOME or ~/.memsluice")] = None,
) -> None:
    """Show how unusual each scored write was, where the line lay, and the phases of the calibration.

    Phases: cold, warming, calibrated, drifting, frozen. Of the conformal strategy the chart is -log10 of p-values.
    Made from memory.audit.v1 alone, every record verified. Exit code 1 where no write of the tenant was scored.
    """
    from memsluice.cli.entries.trace import audit_topic
    from memsluice.cli.render.calibration import as_data, picture, render
    from memsluice.events.partition import partition_of
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.monitor.calibration import History
    from memsluice.topics.names import PARTITIONS

    history = History(tenant, KeyStore(home).keyring())
    with audit_topic(home) as topic:
        with Console(stderr=True).status("reading the audit"):
            for record in topic.read(partition_of(tenant, PARTITIONS)):
                history.take(record)
        where = topic.name
    chosen = detector or history.deciding
    if chosen is None or chosen not in history.points:
        line = (
            f"not found: no scored write of tenant {visible(tenant, SHOWN_CHARS_MAX)} among the {history.read} records "
            f"of its partition in {visible(where)}; {history.unverified} did not verify under this home's keys"
        )
        Console(stderr=True, soft_wrap=True, highlight=False).print(Text(line))
        raise typer.Exit(EXIT_NOT_FOUND)
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
