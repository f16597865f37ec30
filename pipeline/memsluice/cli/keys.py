"""``memsluice keys``: credentials and the gate's own keys. No command ever prints a secret."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec, cast, get_args

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memsluice.cli.options import Home, Json, check_name, duration_ms
from memsluice.cli.terminal import friendly
from memsluice.clock import wall_ms
from memsluice.envelope.keys import Algorithm, Keyring, Purpose, fingerprint
from memsluice.envelope.registry import ANY, Credential, Role
from memsluice.errors import InvalidArgument
from memsluice.escaping import visible
from memsluice.events.limits import TENANT_CHARS_MAX
from memsluice.events.models import Channel, Tier, is_tenant
from memsluice.keystore import enrolment, files, rotation
from memsluice.keystore.store import GATE_PURPOSES, KeyStore, issue_credential, public_keyring

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Credentials of producers, readers and operators, and the gate's keys.",
)
_P = ParamSpec("_P")
CELL_CHARS_MAX = 2_000
_NEW = {role.value.replace("_", "-"): role for role in Role}
_CHANNELS = (
    f"One of {', '.join(get_args(Channel))}. Default: user for a user-channel, operator for operators and reviewers, "
    "else agent."
)
_DEFAULT_CHANNEL: dict[Role, Channel] = {
    Role.USER_CHANNEL: "user", Role.OPERATOR: "operator", Role.REVIEWER: "operator",
}  # fmt: skip

Kid = Annotated[str, typer.Argument(help="Key id, as `memsluice keys list` shows it.")]


def _friendly(command: Callable[_P, None]) -> Callable[_P, None]:
    @wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        with friendly(Console(stderr=True)):
            command(*args, **kwargs)

    return run


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True, markup=False)


def _say(text: str) -> None:
    _console().print(Text(visible(text)))


def _when(at_ms: int | None) -> str:
    return "open" if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


@app.command()
@_friendly
def init(home: Home = None) -> None:
    """Create the gate's seal, digest and admission keys. Running it again changes nothing."""
    store = KeyStore.init(home, wall_ms())
    _say(f"Keys of the gate are in {store.keyring_file} (mode 0600), the registry in {store.registry_file}")


@app.command()
@_friendly
def new(
    what: Annotated[str, typer.Argument(help=f"Credential ({', '.join(_NEW)}) or gate key (seal, admission, digest).")],
    tenant: Annotated[
        list[str] | None, typer.Option(help="Tenant that the credential is for; repeat, or * for all.")
    ] = None,
    channel: Annotated[str | None, typer.Option(help=_CHANNELS)] = None,
    tier: Annotated[
        int | None, typer.Option(min=1, max=5, help="Best trust tier; default: the channel's usual.")
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option(help="Agent that the credential is for; repeat. Default: all.")
    ] = None,
    principal: Annotated[
        list[str] | None, typer.Option(help="Principal that the credential is for; repeat. Default: all.")
    ] = None,
    algorithm: Annotated[
        Algorithm | None, typer.Option(help="Default: Ed25519 for operators and reviewers, else HMAC.")
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, max=3_650, help="Lifetime; default: open-ended.")] = None,
    note: Annotated[str, typer.Option(help="What it is for; shown by `list`.")] = "",
    home: Home = None,
) -> None:
    """Issue a credential, or add a key of the gate."""
    store, name = KeyStore(home), what.lower().replace("_", "-")
    if name in {purpose.value for purpose in GATE_PURPOSES}:
        key = rotation.new_key(store, Purpose(name), wall_ms())
        _say(f"New {name} key {key.kid}, signing from {_when(key.not_before_ms)}")
        return
    if name not in _NEW:
        raise InvalidArgument(
            f"{what!r} is neither a credential ({', '.join(_NEW)}) nor a gate key (seal, admission, digest)"
        )
    if not tenant:
        raise InvalidArgument("a credential needs at least one tenant: --tenant NAME (repeat), or --tenant '*' for all")
    _check_names(tenant, agent or [], principal or [])
    role = _NEW[name]
    chosen = channel or _DEFAULT_CHANNEL.get(role, "agent")
    if chosen not in get_args(Channel):
        raise InvalidArgument(
            f"--channel: {chosen!r} is not a channel; the channels are {', '.join(get_args(Channel))}"
        )
    credential, path = issue_credential(
        store, role, cast(Channel, chosen), tenant, None if tier is None else Tier(tier), algorithm, agent or [ANY],
        principal or [ANY], wall_ms(), days, note=note,
    )  # fmt: skip
    _say(f"New {name} credential {credential.kid}; give {path} to the process that uses it")


def _check_names(tenants: list[str], agents: list[str], principals: list[str]) -> None:
    """Raise InvalidArgument, naming the option, for a name that no event could have."""
    for name in tenants:
        if name != ANY and not is_tenant(name):
            raise InvalidArgument(
                f"--tenant: {visible(name, 80)!r} is not a tenant's name: at most {TENANT_CHARS_MAX} lower-case "
                "letters, digits, hyphens and underscores, the first a letter or a digit; '*' for all"
            )
    for option, names in (("--agent", agents), ("--principal", principals)):
        for name in names:
            check_name(name, option)


@app.command()
@_friendly
def enrol(
    role: Annotated[str, typer.Argument(help=f"One of {', '.join(one.value for one in enrolment.ENROLS)}.")],
    public: Annotated[
        str, typer.Option(help="The public half, as the console shows it: 32 bytes of Ed25519 in base64.")
    ],
    principal: Annotated[str, typer.Option(help="The person who holds it. Two keys of one person approve nothing.")],
    tenant: Annotated[list[str], typer.Option(help="Tenant that it is for; repeat, or * for all.")],
    days: Annotated[int | None, typer.Option(min=1, max=3_650, help="Lifetime; default: open-ended.")] = None,
    note: Annotated[str, typer.Option(help="What it is for; shown by `list`.")] = "",
    home: Home = None,
) -> None:
    """Register a key that a person made in a browser, which keeps its private half: it never was on this machine.

    Compare the fingerprint that this prints with the one that the person sees before you tell them that it is done.
    """
    chosen = _NEW.get(role.lower().replace("_", "-"))
    if chosen not in enrolment.ENROLS:
        names = ", ".join(one.value for one in enrolment.ENROLS)
        raise InvalidArgument(f"{visible(role, 80)!r} is no role of a person: it is one of {names}")
    _check_names(tenant, [], [principal])
    if principal == ANY:
        raise InvalidArgument("--principal: name the person who holds the key; '*' is nobody")
    store, half = KeyStore(home), enrolment.public_from_text(public)
    credential = enrolment.enrol(store, chosen, half, principal, tenant, wall_ms(), days, note=note)
    said = fingerprint(store.load_keyring().get(credential.kid))
    _say(f"New {chosen.value} credential {credential.kid} of {visible(principal, 80)}, fingerprint {said}")


@app.command()
@_friendly
def rotate(
    kid: Kid,
    overlap: Annotated[str, typer.Option(help="How long both keys may sign: 90s, 30m, 24h, 7d.")] = "24h",
    home: Home = None,
) -> None:
    """Make a successor with the same grants. Both keys may sign until the overlap ends."""
    done = rotation.rotate(KeyStore(home), kid, wall_ms(), duration_ms(overlap, "--overlap"))
    _say(f"{done.new_kid} signs from {_when(done.signs_from_ms)}; {kid} signs until {_when(done.old_ends_ms)}")
    if done.path is not None:
        follow = (
            "processes that read the old file switch to it by themselves"
            if done.followed
            else "give it to the process that uses it"
        )
        _say(f"Its file is {done.path}: {follow}")


@app.command()
@_friendly
def retire(kid: Kid, home: Home = None) -> None:
    """Stop a key from signing, now. What it signed before still verifies."""
    rotation.retire(KeyStore(home), kid, wall_ms())
    _say(f"{kid} no longer signs; it still verifies what it signed")


@app.command()
@_friendly
def revoke(
    kid: Kid,
    drained: Annotated[
        bool,
        typer.Option(
            "--drained",
            help="For a gate key: confirm that no stage has lag, so that no record signed by it is still to be read.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Revoke without asking.")] = False,
    home: Home = None,
) -> None:
    """Stop a key from signing and verifying, now and for good.

    What it signed until now, and what becomes of that, is shown first. A seal or admission key must be rotated, retired
    and drained (--drained) before.
    """
    from memsluice.cli.key_usage import preview

    store = KeyStore(home)
    key = rotation.check_revocable(store, kid, wall_ms(), drained=drained)
    preview(_console(), store, key, home)
    if not yes:
        typer.confirm(f"Revoke {kid} for good?", abort=True)
    rotation.revoke(store, kid, wall_ms(), drained=drained)
    _say(f"{kid} no longer signs, and nothing that it signed verifies any more")


@app.command()
@_friendly
def public(
    file: Annotated[Path, typer.Argument(help="File to write (mode 0600).")],
    tenant: Annotated[
        list[str] | None, typer.Option(help="Tenant whose content the reader verifies; repeat for more.")
    ] = None,
    home: Home = None,
) -> None:
    """Write a reader's keyring: the public admission keys, and the digest key of each tenant that it reads.

    A digest key is a secret of its tenant: it verifies content, and cannot sign an admission.
    """
    tenants = tenant or []
    for name in tenants:
        if not is_tenant(name):
            raise InvalidArgument(f"--tenant: {name!r} is not a valid tenant name")
    files.write_atomic(file, files.keyring_to_bytes(public_keyring(KeyStore(home).load_keyring(), tenants)))
    _say(f"Public admission keys are in {file}")
    if tenants:
        _say(f"The file also has the digest keys of {', '.join(tenants)}, which are secret")
    else:
        _say("Without a digest key a reader can verify no content: add a tenant's with --tenant NAME")


@app.command("list")
@_friendly
def list_(
    as_json: Json = False,
    home: Home = None,
) -> None:
    """List every key and credential, and what each may do now. Secrets are never shown."""
    store = KeyStore(home)
    registry = {credential.kid: credential for credential in store.load_registry().all()}
    rows = describe(store.load_keyring(), registry, wall_ms())
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    table = Table(
        title=Text(visible(f"Keys of {store.home}")),
        title_justify="left",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for column in ("kid", "for", "may use", "tenants", "state", "until", "print"):
        table.add_column(column, overflow="fold", no_wrap=column != "tenants")
    for row in rows:
        use = f"{row['channel']}/{row['tier']}" if row["channel"] else ""
        what = (row["kid"], row["for"], use, ", ".join(row["tenants"]), row["state"])
        cells = (*what, _when(row["not_after_ms"])[:10], row["fingerprint"][:8])
        table.add_row(*(Text(visible(cell, CELL_CHARS_MAX)) for cell in cells))
    _console().print(table)


def describe(keyring: Keyring, registry: dict[str, Credential], now: int) -> list[dict[str, Any]]:
    """Return what ``list`` shows, one row a key, as JSON values without any secret. ``now`` is Unix ms."""
    rows = []
    for key in sorted(keyring, key=lambda key: (key.purpose.value, key.kid)):
        grants = registry.get(key.kid)
        rows.append(
            {
                "kid": key.kid,
                "for": grants.role.value if grants else key.purpose.value,
                "algorithm": key.algorithm.value,
                "channel": grants.channel if grants else None,
                "tier": int(grants.tier) if grants else None,
                "tenants": list(grants.tenants) if grants else [],
                "state": rotation.standing(key, now).value,
                "not_before_ms": key.not_before_ms,
                "not_after_ms": key.not_after_ms,
                "fingerprint": fingerprint(key),
                "note": grants.note if grants else "",
            }
        )
    return rows
