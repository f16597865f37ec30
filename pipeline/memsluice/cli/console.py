"""``memsluice console``: held writes and all that an operator looks at, in a browser."""

from typing import Annotated

import typer

from memsluice import log
from memsluice.cli.http_service import AtOnce, Certificate, Host, Plain, Port, TlsKey, check_encrypted, server
from memsluice.cli.options import Home
from memsluice.errors import InvalidArgument

app = typer.Typer(add_completion=False, help="Held writes and all that an operator looks at, in a browser.")


@app.command()
def console(
    host: Host = "127.0.0.1",
    port: Port = 8714,
    url: Annotated[
        str | None,
        typer.Option(help="How browsers reach it, such as https://desk.example.org; else what console.toml says."),
    ] = None,
    at_once: AtOnce = 256,
    certificate: Certificate = None,
    key: TlsKey = None,
    plain: Plain = False,
    home: Home = None,
) -> None:
    """Serve the console until SIGTERM. Who comes in, sees and does what follows from the registry's roles and tenants.

    It listens on this machine alone unless it is told otherwise, and it holds no reviewer's key: whoever decides signs
    in the browser.
    """
    check_encrypted(host, certificate, key, plain=plain)
    from memsluice.cli.http_service import LOOPBACK
    from memsluice.console.app import create_app
    from memsluice.console.serving import opened
    from memsluice.console.settings import Settings
    from memsluice.deployment.home import Home as Place

    settings = Settings.read(Place.at(home).path)
    if url is not None:
        settings = Settings.checked({**settings.model_dump(), "url": url}, "--url")
    if host not in LOOPBACK and settings.url is None:
        raise InvalidArgument("--url: say how browsers reach the console, such as --url https://desk.example.org")
    log.structure_libraries()
    with (
        opened(home, settings) as serving,
        server(
            "console",
            create_app(serving),
            host,
            port,
            at_once,
            certificate,
            key,
            trusted_proxies=settings.trusted_proxies,
        ) as run,
    ):
        run()
