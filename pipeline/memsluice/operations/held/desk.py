"""Where a reviewer works: the running stack, or a home's embedded log, with the quarantine beside the audit."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.envelope.registry import Role
from memsluice.events.models import Command
from memsluice.keystore.store import KeyStore
from memsluice.operations.commands import desk as orders
from memsluice.operations.commands.signing import sign
from memsluice.readers.base import TopicReader
from memsluice.topics.names import QUARANTINE


@dataclass(frozen=True, slots=True)
class HeldDesk:
    """``publish`` signs commands with their tenants' reviewer credentials, in order, and returns where each lies.

    ``settle`` lets the stages work on it where nobody else does (embedded); on a broker the workers do.
    """

    name: str
    held: TopicReader
    audit: TopicReader
    keys: KeyStore
    publish: Callable[[Sequence[Command]], list[str]]
    settle: Callable[[], None]

    def signer(self, tenant: str) -> str:
        """Return the key id of the reviewer credential for a tenant. Raises ConfigError: how to make one."""
        return self.keys.find_credential(Role.REVIEWER, wall_ms(), tenant=tenant).kid


def on_kafka(home: Path | None, closing: ExitStack) -> HeldDesk:
    """Return the desk of a running stack, or of the deployment that the environment names. Raises ConfigError."""
    return _reviewing(orders.on_kafka(home, closing))


def embedded(home: Home, closing: ExitStack) -> HeldDesk:
    """Return the desk of a home's embedded log. Raises ConfigError where there is none."""
    return _reviewing(orders.embedded(home, closing))


def _reviewing(desk: orders.CommandDesk) -> HeldDesk:
    def publish(commands: Sequence[Command]) -> list[str]:
        tenants = dict.fromkeys(command.tenant for command in commands)
        signers = {tenant: desk.keys.find_credential(Role.REVIEWER, wall_ms(), tenant=tenant) for tenant in tenants}
        return desk.publish([sign(command, [signers[command.tenant]], wall_ms()) for command in commands])

    return HeldDesk(desk.name, desk.topic(QUARANTINE), desk.audit, desk.keys, publish, desk.settle)
