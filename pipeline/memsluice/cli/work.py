"""``memsluice work``: stages as a worker on the real broker."""

from pathlib import Path
from typing import Annotated

import typer

from memsluice.errors import ConfigError

app = typer.Typer(add_completion=False, help="Run stages of the pipeline as a worker on Kafka.")
STAGES = ("seal", "screen", "land")


@app.command()
def work(
    stages: Annotated[list[str], typer.Argument(help=f"Any of {', '.join(STAGES)}.")],
    replica: Annotated[str, typer.Option(help="Name of this worker among those that run the same stages.")] = "0",
    home: Annotated[Path | None, typer.Option(help="Default: MEMSLUICE_HOME or ~/.memsluice")] = None,
) -> None:
    """Run stages until SIGTERM; more workers with other replica names share the partitions."""
    unknown = [stage for stage in stages if stage not in STAGES]
    if unknown:
        raise ConfigError(f"there is no stage {unknown[0]!r}; there are: {', '.join(STAGES)}")
    from memsluice.assembly import Assembly
    from memsluice.connection import Connection
    from memsluice.home import Home
    from memsluice.stages.faust.worker import run_worker

    place = Home.at(home)
    connection = Connection.load(home)
    specs = Assembly.at(place).specs(connection)
    chosen = [specs[stage] for stage in dict.fromkeys(stages)]
    raise typer.Exit(run_worker(chosen, connection, data_dir=place.workers_dir, replica=replica))
