"""``memsluice mcp``: a memory server for MCP clients, over stdio or streamable HTTP."""

import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memsluice.cli.http_service import LOOPBACK, AtOnce, Certificate, Plain, TlsKey, check_encrypted
from memsluice.cli.http_service import server as listening
from memsluice.cli.options import Home, check_name
from memsluice.errors import InvalidArgument
from memsluice.escaping import visible
from memsluice.events.models import TENANT_PATTERN

if TYPE_CHECKING:
    from memsluice.adapters.mcp.callers import Person
    from memsluice.adapters.mcp.tokens import RegistryTokens

app = typer.Typer(add_completion=False, help="Serve memory to MCP clients, over stdio or streamable HTTP.")
BODY_BYTES_MAX = 1_048_576
SESSIONS_MAX = 1_000
PORT_MAX = 65_535


@app.command()
def serve(
    tenant: Annotated[str, typer.Option(envvar="MEMSLUICE_TENANT", help="Tenant whose memory it is.")],
    principal: Annotated[
        str | None,
        typer.Option(envvar="MEMSLUICE_PRINCIPAL", help="Person whose memory it is; not with bearer tokens."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(envvar="MEMSLUICE_AGENT", help="Agent that the client is. Default: mcp.")
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve streamable HTTP at /mcp there, and not stdio; port 0 is any."),
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Take no tokens: every program of this machine is --principal. Loopback.")
    ] = False,
    host_reports: Annotated[
        bool,
        typer.Option(
            "--host-reports",
            help="Open the session as clean: the host promises to call report_observation before it shows its model "
            "what any other tool returned. With stdio and --session.",
        ),
    ] = False,
    session: Annotated[
        str | None, typer.Option(help="The host's conversation, which the same name goes on with. With --host-reports.")
    ] = None,
    certificate: Certificate = None,
    key: TlsKey = None,
    plain: Plain = False,
    at_once: AtOnce = 256,
    home: Home = None,
) -> None:
    """Serve until standard input ends, or a SIGTERM: the tools of MCP's reference memory server, gated.

    On the deployment that is named or runs, else on a gate in this process. Whose memory a call is about is said here,
    or by the credential that signed its bearer token, and never by a tool's arguments.
    """
    if not re.fullmatch(TENANT_PATTERN, tenant):
        raise InvalidArgument(f"--tenant must be a tenant's name, such as acme; it is {visible(tenant, 80)!r}")
    address = None if http is None else _address(http)
    _check(address, principal, agent, session, no_auth=no_auth, host_reports=host_reports)
    if address is not None:
        check_encrypted(address[0], certificate, key, plain=plain)
    from memsluice.adapters.mcp import memory_server, open_reading_gate
    from memsluice.deployment.home import Home as Folder
    from memsluice.gate.policy.model import load_or_default

    with closing(open_reading_gate(tenant=tenant, home=home)) as gate:
        held_days = load_or_default(Folder.at(home).policy_file).of(tenant).quarantine.age_days
        server = memory_server(gate, _who(tenant, principal, agent, home), session=session, held_days=held_days)
        if address is None:
            server.run("stdio")
            return
        app = server.streamable_http_app(
            host=address[0], max_request_body_size=BODY_BYTES_MAX, max_sessions=SESSIONS_MAX
        )
        where = (*address, at_once, certificate, key)
        with listening("memory server", app, *where, path="/mcp", lifespan="on") as run:
            run()


def _who(tenant: str, principal: str | None, agent: str | None, home: Path | None) -> "Person | RegistryTokens":
    """Return the one person that a command line names, else what tells it from tokens."""
    from memsluice.adapters.mcp.callers import Person
    from memsluice.adapters.mcp.tokens import RegistryTokens
    from memsluice.keystore.store import KeyStore

    if principal is not None:
        return Person(agent or "mcp", principal)
    keys = KeyStore(home)
    return RegistryTokens(tenant, keys.keyring, keys.registry)


def _check(
    address: tuple[str, int] | None,
    principal: str | None,
    agent: str | None,
    session: str | None,
    *,
    no_auth: bool,
    host_reports: bool,
) -> None:
    """Raise InvalidArgument for options that do not go together: nobody is served as somebody else by mistake."""
    tokens = address is not None and not no_auth
    if tokens and (principal is not None or agent is not None):
        raise InvalidArgument(
            "--principal and --agent do not go with bearer tokens, whose credentials name them: leave them out (and "
            "MEMSLUICE_PRINCIPAL, MEMSLUICE_AGENT), or give --no-auth on loopback"
        )
    if not tokens and principal is None:
        raise InvalidArgument("--principal is missing: it names the person whose memory this is")
    if no_auth and address is None:
        raise InvalidArgument("--no-auth goes with --http: over stdio there are no tokens")
    if no_auth and address is not None and address[0] not in LOOPBACK:
        raise InvalidArgument(f"--no-auth is for loopback ({', '.join(LOOPBACK)}): anybody could be {principal}")
    if host_reports and address is not None:
        raise InvalidArgument("--host-reports goes with stdio: over HTTP others may come beside the host that reports")
    if host_reports is not (session is not None):
        raise InvalidArgument("--host-reports and --session go together: the session is the host's conversation")
    for option, name in (("--principal", principal), ("--agent", agent), ("--session", session)):
        if name is not None:
            check_name(name, option)


def _address(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, where a host of IPv6 may stand in brackets."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise InvalidArgument(f"--http must be HOST:PORT, such as 127.0.0.1:8092; it is {visible(text, 80)!r}")
    return host, int(port)
