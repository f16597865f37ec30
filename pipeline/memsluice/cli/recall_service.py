"""``memsluice recall-service``: memory over HTTP, for agents that hold no key of the gate."""

import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memsluice import log
from memsluice.cli.options import Home
from memsluice.cli.serving import STOP_S, check_encrypted, ended, listen_on

if TYPE_CHECKING:
    from memsluice.telemetry.meters import Meters

app = typer.Typer(add_completion=False, help="Answer recalls over HTTP, for agents that hold no key of the gate.")


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Interface to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 is any free one.")] = 8090,
    per_s: Annotated[
        int, typer.Option("--quota-per-s", min=1, max=100_000, help="Questions a second that a credential may ask.")
    ] = 50,
    burst: Annotated[
        int, typer.Option("--quota-burst", min=1, max=100_000, help="Questions that it may ask at once.")
    ] = 200,
    at_once: Annotated[
        int, typer.Option("--connections", min=1, max=10_000, help="Connections at most; beyond, the answer is 503.")
    ] = 256,
    certificate: Annotated[
        Path | None, typer.Option("--tls-certificate", dir_okay=False, exists=True, help="PEM file for HTTPS.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--tls-key", dir_okay=False, exists=True, help="PEM file of its private key.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Serve HTTP on other interfaces than loopback: TLS ends in front of it.")
    ] = False,
    known_good: Annotated[
        Path | None,
        typer.Option(
            "--known-good", dir_okay=False, exists=True, help="YAML file of questions and the entries that answer them."
        ),
    ] = None,
    every_s: Annotated[
        float, typer.Option("--known-good-every-s", min=1, max=86_400, help="Seconds between two rounds of them.")
    ] = 300.0,
    home: Home = None,
) -> None:
    """Answer POST /v1/recall until SIGTERM; /openapi.json describes it, /metrics, /livez and /readyz tell of it.

    A bearer token is a JWT that a reader's credential signs; what that may ask is in the registry. The service verifies
    what the store gives against the log, publishes the recall with its own credential, and hands over nothing before.
    """
    check_encrypted(host, certificate, key, plain=plain)
    import uvicorn

    from memsluice.recall_service.app import application
    from memsluice.recall_service.known_good import asking, read
    from memsluice.recall_service.opening import opened
    from memsluice.stages.quota import Quota
    from memsluice.telemetry.meters import Meters

    log.structure_libraries()
    meters, holdout = Meters(), None if known_good is None else read(known_good)
    with ExitStack() as closing:
        closing.enter_context(_tracing(meters))
        serving = closing.enter_context(opened(home, Quota(per_s, burst), meters))
        config = uvicorn.Config(
            application(serving), host, port, log_config=None, access_log=False, lifespan="off", server_header=False,
            limit_concurrency=at_once, timeout_graceful_shutdown=STOP_S, timeout_keep_alive=30,
            ssl_certfile=None if certificate is None else str(certificate),
            ssl_keyfile=None if key is None else str(key),
        )  # fmt: skip
        with listen_on("the recall service", host, port) as listening:
            scheme = "http" if certificate is None else "https"
            where = f"[{host}]" if ":" in host else host
            typer.echo(f"recall service: {scheme}://{where}:{listening.getsockname()[1]}", err=True)
            signal.signal(signal.SIGTERM, ended)
            if holdout is not None:
                closing.enter_context(asking(serving.recaller, holdout, meters, every_s))
            uvicorn.Server(config).run([listening])


@contextmanager
def _tracing(meters: "Meters") -> Iterator[None]:
    """Export spans over OTLP/HTTP where OpenTelemetry's variables name an endpoint."""
    from opentelemetry import trace

    from memsluice.telemetry import registry
    from memsluice.telemetry.tracing import provider

    def lost(why: str, spans: int) -> None:
        meters.add(registry.SPANS_LOST, why, amount=spans)

    exporting = provider("memsluice-recall", socket.gethostname(), lost)
    if exporting is None:
        yield
        return
    from memsluice.telemetry.exporting import close

    trace.set_tracer_provider(exporting)
    try:
        yield
    finally:
        close(exporting)
