"""``memsluice work``: stages as a worker on the real broker."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from memsluice import log
from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home
from memsluice.errors import InvalidArgument

if TYPE_CHECKING:
    from memsluice.deployment.connection import Connection
    from memsluice.deployment.home import Home as Place
    from memsluice.runtimes.kafka.progress import StageProgress
    from memsluice.runtimes.kafka.spec import StageSpec

LOG = log.get_logger(__name__)
ROOM_PAUSE_FIRST_S, ROOM_PAUSE_MAX_S = 1.0, 15.0
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
    code, place = _run(list(dict.fromkeys(stages)), replica, home, (host, port), tenants)
    if code == ExitCode.WORKER_FAILED:
        _again_once_there_is_room(place)
    raise typer.Exit(ExitCode(code))


def _run(
    stages: list[str], replica: str, home: Path | None, endpoint: tuple[str, int | None], tenants: int
) -> "tuple[int, Place]":
    """Run a worker to its end; return its exit code and its home. ``endpoint`` is interface and port."""
    from memsluice.deployment.connection import Connection
    from memsluice.deployment.home import Home
    from memsluice.keystore.store import KeyStore
    from memsluice.runtimes.assembly import Assembly
    from memsluice.runtimes.kafka.worker import run_worker
    from memsluice.telemetry.readiness import ReadyLine
    from memsluice.telemetry.surroundings import Surroundings
    from memsluice.telemetry.worker_telemetry import Telemetry

    log.structure_libraries()
    place = Home.at(home)
    connection = Connection.load(home)
    planned = Assembly(place, KeyStore(place.path)).specs(connection)
    _say_what_is_missing(place, connection, [planned[stage] for stage in stages])
    specs = Assembly.at(place).specs(connection)
    surroundings = Surroundings.of(connection, stages, place.path)
    telemetry = Telemetry(
        [specs[stage] for stage in stages],
        instance=replica,
        host=endpoint[0],
        port=endpoint[1],
        tenants_max=tenants,
        depends=surroundings.dependencies,
    )
    surroundings.start(telemetry.room)
    if telemetry.endpoint is not None:
        typer.echo(f"metrics and health: http://{endpoint[0]}:{telemetry.endpoint.port}/metrics", err=True)
    ready = ReadyLine(stages)

    def progress(seen: "Sequence[StageProgress]") -> None:
        telemetry.report(seen)
        ready.report(seen)

    try:
        code = run_worker(
            telemetry.specs,
            connection,
            data_dir=place.workers_dir,
            replica=replica,
            on_progress=progress,
            on_cut_off=partial(_again_if_cut_off_on_a_full_disk, place),
        )
    finally:
        surroundings.close()
        telemetry.close()
    return code, place


def _say_what_is_missing(place: "Place", connection: "Connection", specs: "Sequence[StageSpec]") -> None:
    """Log one line for each thing that is missing; raise the first error that keeps the worker from starting."""
    from memsluice.operations.doctor.preflight import missing
    from memsluice.telemetry.surroundings import OF_STORE, asks_store

    ask = asks_store(connection) if any(spec.name in OF_STORE for spec in specs) else None
    found = list(missing(place, connection, specs, ask))
    for one in found:
        LOG.warning(f"missing: {one.said}", do=one.remedy)
    errors = [one.error for one in found if one.error is not None]
    if errors:
        raise errors[0]


def _again_once_there_is_room(place: "Place") -> None:
    """Begin anew, as the same process, where the worker failed on a full disk; wait until there is room on it.

    Nothing past the last commit was written. Returns where the disk is not full: the failure is another one.
    """
    from memsluice.deployment.space import Room

    room, pause_s = Room.of(place.path), ROOM_PAUSE_FIRST_S
    if room.enough_again:
        return
    LOG.error("the worker ended on a full disk; it begins anew once there is room", disk=str(room))
    while not Room.of(place.path).enough_again:
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, ROOM_PAUSE_MAX_S)
    LOG.warning("there is room on the disk again: the worker begins anew", disk=str(Room.of(place.path)))
    _begin_anew()


def _again_if_cut_off_on_a_full_disk(place: "Place", code: int) -> None:
    """Begin anew at once, where a worker that failed on a full disk hung as it stopped: what hangs ends with it, and
    what comes anew waits for room like any other."""
    from memsluice.deployment.space import Room

    if code == ExitCode.WORKER_FAILED and not (room := Room.of(place.path)).enough_again:
        LOG.error("the worker hung on a full disk; it begins anew", disk=str(room))
        _begin_anew()


def _begin_anew() -> None:
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the program that this one is


def _die_with_stdin() -> None:
    """Kill this process at the end of standard input: its parent died, and a successor wants the name at once.

    What a kill leaves behind is what the next worker of the name is made for; stopping could take its whole bound.
    """
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
