"""``memsluice recall-service``: memory over HTTP, for agents that hold no key of the gate."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from memsluice import log
from memsluice.cli.http_service import AtOnce, Certificate, Host, Plain, Port, TlsKey, check_encrypted, server, tracing
from memsluice.cli.options import Home

app = typer.Typer(add_completion=False, help="Answer recalls over HTTP, for agents that hold no key of the gate.")


@app.command()
def serve(
    host: Host = "127.0.0.1",
    port: Port = 8090,
    per_s: Annotated[
        int, typer.Option("--quota-per-s", min=1, max=100_000, help="Questions a second that a credential may ask.")
    ] = 50,
    burst: Annotated[
        int, typer.Option("--quota-burst", min=1, max=100_000, help="Questions that it may ask at once.")
    ] = 200,
    at_once: AtOnce = 256,
    certificate: Certificate = None,
    key: TlsKey = None,
    plain: Plain = False,
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
    from memsluice.recall_service.app import application
    from memsluice.recall_service.known_good import asking, read
    from memsluice.recall_service.opening import opened
    from memsluice.stages.quota import Quota
    from memsluice.telemetry.meters import Meters

    log.structure_libraries()
    meters, holdout = Meters(), None if known_good is None else read(known_good)
    with ExitStack() as closing:
        closing.enter_context(tracing("memsluice-recall", meters))
        serving = closing.enter_context(opened(home, Quota(per_s, burst), meters))
        run = closing.enter_context(
            server("recall service", application(serving), host, port, at_once, certificate, key)
        )
        if holdout is not None:
            closing.enter_context(asking(serving.recaller, holdout, meters, every_s))
        run()
