"""``memsluice work``: stages as a worker on the real broker."""

import os
import signal
import sys
from threading import Thread
from typing import Annotated

import typer

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home
from memsluice.errors import InvalidArgument

app = typer.Typer(add_completion=False, help="Run stages of the pipeline as a worker on Kafka.")
STAGES = ("seal", "screen", "land")


@app.command()
def work(
    stages: Annotated[list[str], typer.Argument(help=f"Any of {', '.join(STAGES)}.")],
    replica: Annotated[
        str, typer.Option(help="Name of this worker; another for each worker that runs the same stages.")
    ] = "0",
    home: Home = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            min=0,
            max=65535,
            help="Serve /metrics, /livez and /readyz on this port; 0 is any free one. Default: not served.",
        ),
    ] = None,
    host: Annotated[str, typer.Option("--metrics-host", help="Interface of the endpoint.")] = "127.0.0.1",
    tenants: Annotated[
        int,
        typer.Option(
            "--tenant-metrics",
            min=0,
            max=1000,
            help="Tenants that get a metric label of their own; the others share one.",
        ),
    ] = 0,
    while_stdin: Annotated[
        bool,
        typer.Option(
            "--while-stdin", help="Exit at once when standard input ends: for a parent process that may be killed."
        ),
    ] = False,
) -> None:
    """Run stages until SIGTERM. More workers, with other replica names, share the partitions.

    Spans are exported over OTLP/HTTP where OTEL_EXPORTER_OTLP_ENDPOINT is set; OpenTelemetry's other variables apply.
    """
    unknown = [stage for stage in stages if stage not in STAGES]
    if unknown:
        raise InvalidArgument(f"{unknown[0]!r} is not a stage; the stages are {', '.join(STAGES)}")
    if while_stdin:
        Thread(target=_die_with_stdin, name="work-stdin", daemon=True).start()
    from memsluice.deployment.connection import Connection
    from memsluice.deployment.home import Home
    from memsluice.runtimes.assembly import Assembly
    from memsluice.runtimes.kafka.worker import run_worker
    from memsluice.telemetry.worker_telemetry import Telemetry

    place = Home.at(home)
    connection = Connection.load(home)
    specs = Assembly.at(place).specs(connection)
    chosen = [specs[stage] for stage in dict.fromkeys(stages)]
    telemetry = Telemetry(chosen, instance=replica, host=host, port=port, tenants_max=tenants)
    if telemetry.endpoint is not None:
        typer.echo(f"metrics and health: http://{host}:{telemetry.endpoint.port}/metrics", err=True)
    try:
        code = run_worker(
            telemetry.specs, connection, data_dir=place.workers_dir, replica=replica, on_progress=telemetry.report
        )
    finally:
        telemetry.close()
    raise typer.Exit(ExitCode(code))


def _die_with_stdin() -> None:
    """Kill this process at the end of standard input: its parent died, and a successor wants the name at once.

    What a kill leaves behind is what the next worker of the name is made for; stopping could take its whole bound.
    """
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
