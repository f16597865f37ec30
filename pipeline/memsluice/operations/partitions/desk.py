"""Reads which partitions are parked, signs an operator's order about one, and waits for what the worker makes of it."""

import time
from pathlib import Path
from typing import Final

from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.envelope.partition_orders import (
    ACKNOWLEDGE,
    Accepted,
    Action,
    Missing,
    PartitionOrder,
    PartitionState,
    accepted_from_bytes,
    order_from_bytes,
    order_key,
    order_to_bytes,
    state_from_bytes,
)
from memsluice.envelope.registry import Role
from memsluice.errors import InvalidArgument, NotFound
from memsluice.events.names import EVERYBODY
from memsluice.keystore.files import SigningCredential
from memsluice.keystore.store import KeyStore
from memsluice.operations.commands.desk import signers
from memsluice.readers.kafka import KafkaTopic
from memsluice.runtimes.kafka.board import ORDERS, publish
from memsluice.runtimes.kafka.parking import way_on
from memsluice.topics.names import PARTITION_STATES, USER_OPERATOR

LOOK_S: Final = 0.25
ORDER_BYTES_MAX: Final = 16_384


class PartitionDesk:
    """One deployment's parked partitions."""

    def __init__(
        self,
        connection: Connection,
        keys: KeyStore,
        *,
        user: str = USER_OPERATOR,
        topic: str = PARTITION_STATES,
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._user = user
        self._topic = topic
        self._reader = KafkaTopic.of(connection, user, topic)
        self._next = 0
        self._states: dict[bytes, PartitionState] = {}
        self._accepted: dict[bytes, Accepted] = {}

    @classmethod
    def at(cls, home: Path | None) -> "PartitionDesk":
        """Return the desk of a home's deployment. Raises ConfigError where there is none."""
        return cls(Connection.load(home), KeyStore(home))

    def close(self) -> None:
        """Leave the broker."""
        self._reader.close()

    def states(self) -> list[PartitionState]:
        """Return what the workers told last, by stage and partition. Raises BrokerUnavailable."""
        self._read()
        return sorted(self._states.values(), key=lambda state: (state.stage, state.partition))

    def parked_now(self) -> list[PartitionState]:
        """Return those that are parked, by stage and partition. Raises BrokerUnavailable."""
        return [state for state in self.states() if state.parked]

    def accepted(self) -> list[Accepted]:
        """Return the losses that were acknowledged, oldest first; an order that does not verify is none."""
        self._read()
        return sorted(self._accepted.values(), key=lambda each: each.append_ms)

    def _read(self) -> None:
        for record in self._reader.read(0, self._next):
            self._next = record.offset + 1
            key = record.key or b""
            if not key.startswith(ORDERS):
                if (state := state_from_bytes(record.value)) is not None:
                    self._states[key] = state
                continue
            if (loss := accepted_from_bytes(self._keys, record.value, record.timestamp_ms)) is not None:
                self._accepted[key] = loss

    def parked(self, stage: str, partition: int) -> PartitionState:
        """Return the state of a partition that is parked. Raises NotFound where it is not."""
        for state in self.parked_now():
            if (state.stage, state.partition) == (stage, partition):
                return state
        raise NotFound(
            f"Partition {partition} of {stage} is not parked; memsluice partition status lists those that are"
        )

    def signer(self, kid: str | None = None) -> SigningCredential:
        """Return the operator's credential that signs: the one named, else the newest for all tenants held here.

        Raises ConfigError where there is none, and says how to make one.
        """
        (found,) = signers(self._keys, Role.OPERATOR, EVERYBODY, [kid] if kid else (), 1)
        return found

    def order(
        self,
        action: Action,
        state: PartitionState,
        why: str,
        missing: Missing | None = None,
        signer: SigningCredential | None = None,
    ) -> PartitionOrder:
        """Sign and send an order about the failure that ``state`` tells of.

        Raises InvalidArgument where it acknowledges other records than those that are missing, BrokerUnavailable, and
        ConfigError where the home has no key that may sign it.
        """
        order = PartitionOrder(action, state.stage, state.partition, state.failure, missing, why, wall_ms())
        _check(order, state)
        self._send(order, order_to_bytes((signer or self.signer()).signer(), order))
        return order

    def forward(self, data: bytes) -> tuple[PartitionOrder, str]:
        """Send an order that was signed elsewhere, as it is; return it, and the key id that signed it.

        Raises SealError for one that does not verify, NotFound where the partition is not parked, InvalidArgument where
        the order is about another failure, or acknowledges other records than are missing; BrokerUnavailable.
        """
        if len(data) > ORDER_BYTES_MAX:
            raise InvalidArgument(f"the order has {len(data)} bytes, and at most {ORDER_BYTES_MAX} are taken")
        order, kid = order_from_bytes(self._keys, data, wall_ms())
        _check(order, self.parked(order.stage, order.partition))
        self._send(order, data)
        return order, kid

    def _send(self, order: PartitionOrder, data: bytes) -> None:
        publish(self._connection, self._user, self._topic, [(order_key(order), data)])

    def answer(self, order: PartitionOrder, wait_s: float) -> PartitionState | None:
        """Return what the worker told since of the partition, or None where it told nothing within the time."""
        deadline = time.monotonic() + wait_s
        while True:
            for state in self.states():
                same = (state.stage, state.partition) == (order.stage, order.partition)
                if same and (not state.parked or state.failure != order.failure):
                    return state
            if time.monotonic() >= deadline:
                return None
            time.sleep(LOOK_S)


def _check(order: PartitionOrder, state: PartitionState) -> None:
    """Raise InvalidArgument for an order that no worker would obey about this failure."""
    if order.failure != state.failure:
        raise InvalidArgument(
            f"partition {state.partition} of {state.stage} is parked for another failure by now: look at it again"
        )
    if order.action == ACKNOWLEDGE and state.missing is None:
        raise InvalidArgument(
            f"partition {state.partition} of {state.stage} is not parked for records that are missing but for "
            f"{state.error}; once that is mended: {way_on(state)}"
        )
    if order.action == ACKNOWLEDGE and order.missing != state.missing:
        raise InvalidArgument(
            f"other records are missing: {_range(state.missing)}. Only these can be acknowledged, all of them"
        )


def _range(missing: Missing | None) -> str:
    return "none" if missing is None else f"{missing.first} to {missing.last} of {missing.topic}"
