"""``memsluice ingest-service``: events over HTTP, for programs in any language, and back what became of them."""

from contextlib import ExitStack
from typing import Annotated

import typer

from memsluice import log
from memsluice.cli.http_service import AtOnce, Certificate, Host, Plain, Port, TlsKey, check_encrypted, server, tracing
from memsluice.cli.options import Home

app = typer.Typer(add_completion=False, help="Take events over HTTP, and tell their producers what became of them.")


@app.command()
def serve(
    host: Host = "127.0.0.1",
    port: Port = 8091,
    per_s: Annotated[
        int, typer.Option("--quota-per-s", min=1, max=100_000, help="Requests a second that a credential may send.")
    ] = 50,
    burst: Annotated[
        int, typer.Option("--quota-burst", min=1, max=100_000, help="Requests that it may send at once.")
    ] = 200,
    at_once: AtOnce = 512,
    certificate: Certificate = None,
    key: TlsKey = None,
    plain: Plain = False,
    home: Home = None,
) -> None:
    """Take POST /v1/events, /v1/writes and /v1/observations until SIGTERM; GET /v1/events/ID tells what became of one.

    /openapi.json describes it, /metrics, /livez and /readyz tell of it. A bearer token is a JWT that a producer's, a
    user channel's or the platform's own credential signs. An event is accepted once the broker has acknowledged it.
    """
    check_encrypted(host, certificate, key, plain=plain)
    from memsluice.ingest_service.app import application
    from memsluice.ingest_service.opening import opened
    from memsluice.stages.quota import Quota
    from memsluice.telemetry.meters import Meters

    log.structure_libraries()
    meters = Meters()
    with ExitStack() as closing:
        closing.enter_context(tracing("memsluice-ingest", meters))
        serving = closing.enter_context(opened(home, Quota(per_s, burst), meters))
        run = closing.enter_context(
            server("ingest service", application(serving), host, port, at_once, certificate, key)
        )
        run()
