"""What stands for aiokafka's producer: a queue a partition, one request a partition under way, answers in any order.

As aiokafka does, records of a partition leave in the order in which they were given, and are retried without being
doubled; what a stopped or killed process had queued is sent by nobody, what was on its way may arrive all the same.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aiokafka.errors import KafkaConnectionError, KafkaError, ProducerFenced

from memsluice_lab.simulation.broker import TP, Broker, Message
from memsluice_lab.simulation.loop import WorkerLoop

RETRY_S = 0.5
BATCH_MAX = 8
"""Records of a batch: few, so that one transaction has several batches of a topic."""


class Placed(NamedTuple):
    """What a send's future resolves with."""

    offset: int


class Request:
    """One request on its way to the broker."""

    __slots__ = ("call", "future", "gone", "tp")

    def __init__(self, call: Callable[[], Any], future: "asyncio.Future[Any]", tp: TP | None) -> None:
        self.call = call
        self.future = future
        self.tp = tp
        self.gone = False
        """Whether it arrived after its process had died."""

    def arrive(self) -> bool:
        """Arrive at the broker when nobody waits for the answer any more; return whether it was taken."""
        self.gone = True
        try:
            self.call()
        except KafkaError:
            return False
        return True


class Wire:
    """One process's connection to the broker. The scheduler says which request arrives next."""

    def __init__(self, loop: WorkerLoop, broker: Broker) -> None:
        self.loop = loop
        self.broker = broker
        self.requests: list[Request] = []

    def ask(self, call: Callable[[], Any], tp: TP | None = None) -> "asyncio.Future[Any]":
        """Send a request; the future has the answer."""
        future = self.loop.create_future()
        if not self.loop.dead:
            self.requests.append(Request(call, future, tp))
        return future

    def deliver(self, number: int, lost: BaseException | None = None) -> None:
        """Let a request arrive, and its answer come back; ``lost``: the answer does not, and this is raised."""
        request = self.requests.pop(number)
        result: Any = None
        error: BaseException | None = None
        try:
            result = request.call()
        except KafkaError as refused:
            error = refused
        error = lost or error
        if request.future.done() or self.loop.dead:
            return
        if error is None:
            request.future.set_result(result)
        else:
            request.future.set_exception(error)
            request.future.exception()  # somebody may have stopped waiting


class _Accumulator:
    """What was given to a producer and not sent yet, by partition."""

    def __init__(self, wire: Wire, send: Callable[[TP, Sequence[Message]], list[int]]) -> None:
        self._wire = wire
        self._send = send
        self._batches: dict[TP, list[tuple[Message, asyncio.Future[Any]]]] = {}
        self._under_way: set[TP] = set()
        self._waiting: set[asyncio.Future[Any]] = set()
        self._scheduled = False

    def add(self, tp: TP, message: Message) -> "asyncio.Future[Any]":
        """Queue a record; the future has its place."""
        future = self._wire.loop.create_future()
        self._batches.setdefault(tp, []).append((message, future))
        self._schedule()
        return future

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._wire.loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        for tp in [tp for tp in self._batches if tp not in self._under_way]:
            batch = self._batches.pop(tp)
            self._under_way.add(tp)
            self._waiting.update(future for _, future in batch)
            messages = [message for message, _ in batch]
            asked = self._wire.ask(lambda tp=tp, messages=messages: self._send(tp, messages), tp)  # type: ignore[misc]
            asked.add_done_callback(lambda done, tp=tp, batch=batch: self._answered(tp, batch, done))  # type: ignore[misc]

    def _answered(
        self, tp: TP, batch: list[tuple[Message, "asyncio.Future[Any]"]], done: "asyncio.Future[Any]"
    ) -> None:
        self._under_way.discard(tp)
        error = done.exception()
        places = done.result() if error is None else ()
        for number, (_, future) in enumerate(batch):
            self._waiting.discard(future)
            if future.done():
                continue
            if error is None:
                future.set_result(Placed(places[number]))
            else:
                future.set_exception(error)
                future.exception()
        if self._batches:
            self._schedule()

    def fail_all(self, error: BaseException) -> None:
        """Answer everything that was not sent, or not answered, with an error."""
        queued = [future for batch in self._batches.values() for _, future in batch]
        for future in (*queued, *self._waiting):
            if not future.done():
                future.set_exception(error)
                future.exception()

    async def flush(self) -> None:
        """Wait until everything is answered."""
        while self._batches or self._under_way or self._scheduled:
            waiting = [*self._waiting, *(future for batch in self._batches.values() for _, future in batch)]
            await asyncio.gather(*waiting, return_exceptions=True)
            await asyncio.sleep(0)


class Builder:
    """As much of aiokafka's ``BatchBuilder`` as the fence uses; a full one has BATCH_MAX records."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def append(self, *, timestamp: None, key: bytes | None, value: bytes | None, headers: Any) -> Any:
        """Add a record; return None where the batch is full."""
        if len(self.messages) == BATCH_MAX:
            return None
        self.messages.append(Message(key, value, tuple(headers)))
        return self.messages[-1]

    def record_count(self) -> int:
        """Return how many records there are."""
        return len(self.messages)


class _Manager:
    def __init__(self, owner: "TransactionalProducer") -> None:
        self._owner = owner

    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._owner.open


class TransactionalProducer:
    """As much of ``AIOKafkaProducer`` as the fence uses. ``wire`` comes along with the settings."""

    def __init__(self, *, wire: Wire, transactional_id: str, **_settings: Any) -> None:
        self._wire = wire
        self._name = transactional_id
        self._epoch = -1
        self._error: BaseException | None = None
        self.open = False
        self._message_accumulator = _Accumulator(wire, self._send)
        self._txn_manager = _Manager(self)

    async def start(self) -> None:
        """Ask for the id; waits for a broker that is away."""
        while True:
            try:
                self._epoch = await self._wire.ask(lambda: self._wire.broker.identify(self._name))
            except KafkaConnectionError:
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def begin_transaction(self) -> None:
        """Begin; the broker hears of it with the first record."""
        if self._error is not None:
            raise self._error
        self.open = True

    def _send(self, tp: TP, messages: Sequence[Message]) -> list[int]:
        try:
            return self._wire.broker.produce_in(self._name, self._epoch, tp, messages)
        except KafkaError as error:
            self._error = error
            raise

    def _serialize(self, key: bytes | None, value: bytes | None, headers: Any) -> None:
        """Do nothing: no record is too large."""

    def create_batch(self) -> Builder:
        """Return an empty batch."""
        return Builder()

    async def send_batch(self, batch: Builder, topic: str, *, partition: int) -> "asyncio.Future[Any]":
        """Queue a batch's records; the future has the first one's place. Raises what ended this producer."""
        if self._error is not None:
            raise self._error
        first, *_ = [self._message_accumulator.add((topic, partition), message) for message in batch.messages]
        return first

    async def send_offsets_to_transaction(self, offsets: dict[Any, int], group: str) -> None:
        """Add offsets."""
        said = {(tp.topic, tp.partition): offset for tp, offset in offsets.items()}
        await self._ask(lambda: self._wire.broker.offsets_in(self._name, self._epoch, group, said))

    async def commit_transaction(self) -> None:
        """Commit, once everything is answered."""
        await self._message_accumulator.flush()
        await self._ask(lambda: self._wire.broker.end_in(self._name, self._epoch, commit=True))
        self.open = False

    async def abort_transaction(self) -> None:
        """Abort."""
        await self._ask(lambda: self._wire.broker.end_in(self._name, self._epoch, commit=False))
        self.open = False

    async def _ask(self, call: Callable[[], Any]) -> Any:
        if self._error is not None:
            raise self._error
        try:
            return await self._wire.ask(call)
        except KafkaError as error:
            self._error = error
            raise

    async def stop(self) -> None:
        """Send nothing more."""
        self._error = self._error or ProducerFenced()
