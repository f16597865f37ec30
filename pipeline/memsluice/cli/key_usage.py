"""What ``memsluice keys revoke`` shows before it asks: what the key signed, and what becomes of it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from memsluice.cli.terminal import waiting
from memsluice.clock import wall_ms
from memsluice.envelope.keys import Key, Purpose
from memsluice.envelope.registry import ANY, Credential
from memsluice.errors import MemsluiceError
from memsluice.escaping import visible
from memsluice.keystore import rotation
from memsluice.keystore.store import KeyStore

if TYPE_CHECKING:
    from memsluice.operations.provenance.key_usage import KeyUsage

READ_S_MAX = 30.0
"""How long the audit is read for the counts: a key that was stolen is not left valid for them."""
NAMES_SHOWN_MAX = 8


def preview(console: Console, store: KeyStore, key: Key, home: Path | None) -> None:
    """Print what a key is, what it signed, and what revoking it means. It fails for no reason but a broken registry:
    where the audit cannot be read, that is said."""
    registry = store.load_registry()
    credential = registry.get(key.kid) if key.purpose is Purpose.CREDENTIAL else None
    lines = [f"{key.kid}  {_what(key, credential)}"]
    try:
        usage = _counted(key, credential, home)
    except (MemsluiceError, OSError) as error:
        lines.append(f"  what it signed is not counted: {error}")
    else:
        lines += (f"  {line}" for line in _signed(usage, credential))
    lines += (f"  {line}" for line in _afterwards(store, key, credential))
    for line in lines:
        console.print(Text(visible(line, 2_000)))


def _what(key: Key, credential: Credential | None) -> str:
    if credential is None:
        return f"{key.purpose.value} key of the gate"
    return f"{credential.role.value} of {_names(credential.tenants)}, channel {credential.channel}"


def _names(names: tuple[str, ...]) -> str:
    if ANY in names:
        return "every tenant"
    more = len(names) - NAMES_SHOWN_MAX
    return ", ".join(names[:NAMES_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def _counted(key: Key, credential: Credential | None, home: Path | None) -> "KeyUsage":
    """Read the audit for at most READ_S_MAX seconds. Raises ConfigError where there is none, BrokerUnavailable."""
    from memsluice.operations.commands.desk import open_desk
    from memsluice.operations.provenance.key_usage import key_usage
    from memsluice.topics.names import PARTITIONS

    tenants = None if credential is None or ANY in credential.tenants else credential.tenants
    ends = time.monotonic() + READ_S_MAX
    with open_desk(home) as desk, waiting("reading the audit"):
        return key_usage(
            desk.audit, desk.keys.keyring(), key.kid, tenants, wall_ms(), PARTITIONS, lambda: time.monotonic() > ends
        )


def _signed(usage: "KeyUsage", credential: Credential | None) -> Iterator[str]:
    from memsluice.operations.trace.life import EntryStanding
    from memsluice.recall.show import moment

    if credential is None:
        yield f"admitted: {usage.admitted} entries that are in memory now"
        yield f"sealed: {usage.held} held writes that wait for a decision, {usage.sealed} audit records"
    elif usage.last_ms is None:
        yield "signed: nothing that the audit has"
    else:
        kinds = ", ".join(f"{count} {name}" for name, count in usage.signed.most_common())
        yield f"signed: {kinds}; {usage.sessions} sessions; the last one decided at {moment(usage.last_ms)}"
        if usage.wrote:
            held, refused = usage.wrote[EntryStanding.HELD], usage.wrote[EntryStanding.REFUSED]
            yield f"of its writes: {usage.in_memory} in memory, {held} held and waiting, {refused} refused"
    if not usage.whole:
        yield f"there may be more: of the audit {usage.read} records were read in {READ_S_MAX:.0f} s"
    if usage.unverified:
        yield f"{usage.unverified} audit records do not verify under this home's keys and are not counted"


def _afterwards(store: KeyStore, key: Key, credential: Credential | None) -> Iterator[str]:
    if credential is None:
        lost = "recalls withhold every entry that it admitted" if key.purpose is Purpose.ADMISSION else (
            "held writes under its seal cannot be shown, released or replayed, and audit records under it say nothing"
        )  # fmt: skip
        yield f"afterwards: {lost}, for good. A key that was not stolen is retired instead: memsluice keys retire"
        return
    yield "afterwards: what it still sends, or is on its way, is a dead letter; no revocation is undone"
    yield (
        "what it wrote stays as it was decided, and what is held of it can still be released; to take it back: "
        f"memsluice revoke key:{key.kid} --remove"
    )
    left = _left_alone(store, credential)
    if left:
        yield f"no other {credential.role.value} credential is for {left}: nobody signs for it until you make one"


def _left_alone(store: KeyStore, credential: Credential) -> str:
    """Return for whom no other credential of the role signs now: of which tenants, and of which people in them."""
    keys, now = {key.kid: key for key in store.load_keyring()}, wall_ms()
    others = [
        one
        for one in store.load_registry().all()
        if one.role is credential.role
        and one.kid != credential.kid
        and _covers(one.principals, credential.principals)
        and _covers(one.agents, credential.agents)
        and one.kid in keys
        and rotation.standing(keys[one.kid], now) is rotation.KeyStanding.ACTIVE
    ]
    served = {tenant for one in others for tenant in one.tenants}
    if ANY in served:
        return ""
    alone = tuple(tenant for tenant in credential.tenants if tenant not in served)
    who = "" if ANY in credential.principals else f"{_names(credential.principals)} of "
    return f"{who}{_names(alone)}" if alone else ""


def _covers(names: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return ANY in names or set(wanted) <= set(names)
