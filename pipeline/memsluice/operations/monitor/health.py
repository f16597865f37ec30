"""How the stages get on: what each is behind, and which partitions stand still. On a broker, or in a home's log."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.keystore.store import KeyStore
from memsluice.operations.monitor.lag import KafkaLag, Lag, LocalLag
from memsluice.operations.partitions.desk import PartitionDesk


@dataclass(frozen=True, slots=True)
class HealthDesk:
    """``lags`` asks what each stage is behind. ``partitions`` is None for an embedded log: no worker could park one."""

    name: str
    lags: Callable[[], list[Lag]]
    partitions: PartitionDesk | None


def on_kafka(home: Path | None, closing: ExitStack) -> HealthDesk:
    """Return the desk of a running stack, or of the deployment that the environment names. Raises ConfigError."""
    connection = Connection.load(home)
    partitions = PartitionDesk(connection, KeyStore(home))
    closing.callback(partitions.close)
    return HealthDesk(f"the broker at {connection.bootstrap}", KafkaLag(connection), partitions)


def embedded(home: Home, closing: ExitStack) -> HealthDesk:
    """Return the desk of a home's embedded log. Raises ConfigError where there is none."""
    log = home.local_log(reading=True)
    closing.callback(log.close)
    return HealthDesk(f"the embedded log in {home.path}", LocalLag(log), None)
