"""What a stage tells of its parked partitions, and how it hears what an operator orders about them.

Both lie in one small compacted topic. It is read once an assignment, and then only while a partition is parked or an
order was obeyed. An order counts once, for the very failure that it names; one that does not verify is refused aloud.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from memsluice.client.connectivity import LibrdkafkaLog
from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection, quiet
from memsluice.envelope.partition_orders import (
    ACKNOWLEDGE,
    PartitionOrder,
    PartitionState,
    order_from_bytes,
    state_from_bytes,
    state_key,
    state_to_bytes,
)
from memsluice.errors import BrokerUnavailable, SealError
from memsluice.events.records import Record
from memsluice.log import get_logger, said
from memsluice.readers.kafka import KafkaTopic
from memsluice.runtimes.kafka.progress import progress
from memsluice.runtimes.kafka.spec import StageSpec
from memsluice.runtimes.kafka.thread import StageThreads

LOG = get_logger(__name__)
LOOK_S: Final = 1.0
"""How often it is looked whether there is anything to tell or to hear."""
TELL_S: Final = 10.0
ORDERS: Final = b"order/"
ORDERS_MAX: Final = 64
"""Orders of one partition that are looked at; of more, the newest."""


def publish(connection: Connection, user: str, topic: str, records: Sequence[tuple[bytes, bytes]]) -> None:
    """Append records, key and value, to a topic's one partition. Blocks. Raises BrokerUnavailable."""
    settings = {**connection.confluent(user), "acks": "all", "message.timeout.ms": int(TELL_S * 1000)}
    producer, failed = Producer(quiet(settings), logger=LibrdkafkaLog()), []
    try:
        for key, value in records:
            producer.produce(
                topic, key=key, value=value, partition=0, on_delivery=lambda error, _: failed.append(error)
            )
        left = producer.flush(TELL_S + 1.0)
    except KafkaException as error:
        raise BrokerUnavailable(f"{topic} can not be written: {error.args[0].str()}") from None
    if left or any(failed):
        why = next((error.str() for error in failed if error), "no answer")
        raise BrokerUnavailable(f"{topic} can not be written: {why}; `memsluice topics apply` makes it")


class Board:
    """One stage's place on the topic. Its methods run on the event loop, but for what blocks."""

    def __init__(self, spec: StageSpec, connection: Connection) -> None:
        self._spec = spec
        self._connection = connection
        self._threads = StageThreads(f"board-{spec.name}")  # that no end of the worker waits for
        self._reader: KafkaTopic | None = None
        self._next = 0
        self._primed = False
        self._of: tuple[int, int] | None = None
        """The runner and its generation that the topic was read for."""
        self._told: dict[int, str] = {}
        self._news: list[PartitionState] = []
        self._states: dict[int, PartitionState] = {}
        """What the topic says of this stage's partitions."""
        self._orders: dict[int, list[tuple[Record, bool]]] = {}
        """Orders that were not looked at yet, and whether each came after the first reading."""
        self._kids: dict[int, str] = {}
        """The key of the order by which a partition was begun anew, until it has passed what stopped it."""
        self._silent = False

    async def attend(self, app: Callable[[], Any]) -> None:
        """Tell and hear until cancelled; nothing that fails here ends the stage."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look(app())
                self._silent = False
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise  # else what was asked of a stage that begins anew was: it is looked again
            except Exception as error:
                if not self._silent:
                    LOG.warning("parked partitions can not be told, nor orders heard", why=said(error))
                self._silent = True

    async def look(self, app: Any) -> None:
        """Tell what is new, read what was ordered where anything waits for it, and obey."""
        runner = app.runner
        assignment = (id(runner), runner.generation)
        parked = tuple(runner.parked.values())
        unread = assignment != self._of and runner.is_ready()
        news = [*self._news, *(state for state in parked if self._told.get(state.partition) != state.failure)]
        if not (parked or news or unread):
            self._notice_ends(app)
            return
        await self._threads.submit(self._exchange, news)
        self._told.update((state.partition, state.failure) for state in news)
        for state in parked:
            self._kids.pop(state.partition, None)
        self._news.clear()
        if unread:
            self._of = assignment
        for state in parked:
            await self._obey(runner, state)
        self._notice_ends(app)

    def _exchange(self, news: Sequence[PartitionState]) -> None:
        """Write what is new, then read what was added. Blocks."""
        spec = self._spec
        if news:
            records = [(state_key(spec.name, state.partition), state_to_bytes(state)) for state in news]
            publish(self._connection, spec.user, spec.states, records)
        if self._reader is None:
            self._reader = KafkaTopic.of(self._connection, spec.user, spec.states, group=spec.app_id)
        for record in self._reader.read(0, self._next):
            self._next = record.offset + 1
            self._note(record)
        self._primed = True

    def _note(self, record: Record) -> None:
        parts = (record.key or b"").removeprefix(ORDERS).split(b"/")
        if len(parts) < 2 or parts[0] != self._spec.name.encode() or not parts[1].isdigit():
            return
        partition = int(parts[1])
        if (record.key or b"").startswith(ORDERS):
            orders = self._orders.setdefault(partition, [])
            orders.append((record, self._primed))
            del orders[:-ORDERS_MAX]
        elif (state := state_from_bytes(record.value)) is not None:
            self._states[partition] = state

    async def _obey(self, runner: Any, state: PartitionState) -> None:
        """Carry the newest order out that is about this very failure; say of each that came since why it is not."""
        orders = self._orders.get(state.partition, [])
        while orders:
            record, fresh = orders[-1]  # forgotten once it was answered: what breaks off here is tried again
            if await self._carried_out(runner, state, record, fresh=fresh):
                orders.clear()
                return
            orders.pop()

    async def _carried_out(self, runner: Any, state: PartitionState, record: Record, *, fresh: bool) -> bool:
        try:
            order, kid = self._verified(record, state)
        except SealError as error:
            if fresh:
                LOG.warning(
                    "an order about a parked partition was refused",
                    stage=state.stage,
                    partition=state.partition,
                    why=said(error),
                )
            return False
        missing = order.missing
        LOG.warning(
            "a parked partition begins anew, by an operator's order",
            stage=state.stage,
            partition=state.partition,
            order=order.action,
            missing=None if missing is None else [missing.topic, missing.first, missing.last],
            why=order.why,
            key=kid,
        )
        self._kids[state.partition] = kid  # what it acknowledges holds also where it comes too late for this failure
        return bool(await runner.resume(state.failure, state.partition, missing))

    def _verified(self, record: Record, state: PartitionState) -> tuple[PartitionOrder, str]:
        """Return an order about this failure, and its key. Raises SealError for any other."""
        keys = self._spec.keys
        if keys is None:
            raise SealError("this worker has no keys to verify it with")
        keys.refresh()
        order, kid = order_from_bytes(keys, record.value, record.timestamp_ms)
        if (order.stage, order.partition, order.failure) != (state.stage, state.partition, state.failure):
            raise SealError("it answers another failure than this one")
        if order.action == ACKNOWLEDGE and order.missing != state.missing:
            raise SealError("it acknowledges other records than those that are missing")
        return order, kid

    def _notice_ends(self, app: Any) -> None:
        """Note that a partition runs which the topic says is parked: it has passed what stopped it."""
        runner = app.runner
        if not runner.is_ready() or self._of != (id(runner), runner.generation):
            return
        for row in progress(app):
            state = self._states.get(row.partition)
            if state is None or not state.parked or row.partition in runner.parked or row.topic != state.topic:
                continue
            passed = state.offset is None or (row.committed is not None and row.committed > state.offset)
            if passed or row.lag == 0:
                del self._states[row.partition]
                kid = self._kids.pop(row.partition, "")
                self._news.append(replace(state, parked=False, since_ms=wall_ms(), kid=kid))
                LOG.warning("a partition that was parked runs again", stage=state.stage, partition=state.partition)
