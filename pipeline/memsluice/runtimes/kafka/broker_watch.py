"""Says once that a worker's broker or store does not answer, and once that it does again, and after how long.

Whether it answers is asked of it, every few seconds, for one of the worker's topics: a broker that is paused keeps its
connections and fails nothing for a minute. The libraries' own lines about what they try again are kept at level DEBUG.
"""

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from memsluice.client.connectivity import LibrdkafkaLog
from memsluice.deployment.connection import Connection, quiet
from memsluice.log import get_logger
from memsluice.runtimes.kafka.thread import StageThreads

LOG = get_logger(__name__)
ASKED_EVERY_S: Final = 5.0
ANSWERS_WITHIN_S: Final = 3.0
RETRIED: Final = re.compile(
    r"Unable connect to node|Unable to (update|request) metadata|(Group Coordinator|FindCoordinator) Request failed|"
    r"Failed fetch (messages|offsets) from|Heartbeat (send request )?failed|Heartbeat session expired|"
    r"Error sending \S+ to node|Cannot send |Marking the coordinator dead|Timer \S+ is overlapping|"
    r"Got error produce response|Unexpected error in sender routine|Attempt to join group failed due to fatal error"
    r"|Thread keepalive is not responding"
)
"""How lines begin that aiokafka and mode log at each attempt, or of a process that was paused; what is not tried again
raises as well, and is told by whoever gets it."""
LIBRARIES: Final = ("aiokafka", "mode", "faust")


class RetriesAtDebug(logging.Filter):
    """Lets a library's line pass unless it is about what the library tries again, or about a task that was ended."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is to be told at its own level."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, asyncio.CancelledError) and RETRIED.match(record.getMessage()) is None:
            return True
        logging.getLogger(f"{__name__}.{record.name}").debug(record.msg, *(record.args or ()))
        return False


_RETRIES = RetriesAtDebug()


def quiet_libraries() -> None:
    """Keep at DEBUG what the libraries that are loaded say about retries; called again, it changes nothing."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in LIBRARIES:
            logging.getLogger(name).addFilter(_RETRIES)


class Dependency:
    """What a worker cannot do without: whether it answers, since when, and one line of the log for each change.

    ``means`` says what its absence does; ``stages`` which stages stand still meanwhile, all of them where it is empty.
    Written by whoever asks, read by other threads: every field is set whole.
    """

    def __init__(
        self,
        name: str,
        address: str,
        means: str,
        stages: Sequence[str] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.address = address
        self._means = means
        self._stages = tuple(stages)
        self._monotonic = monotonic
        self.away_since_s: float | None = None
        """Seconds of the monotonic clock at which it was first found not to answer; None while it answers."""

    @property
    def away(self) -> bool:
        """Whether it did not answer when it was asked last."""
        return self.away_since_s is not None

    def stops(self, stage: str) -> bool:
        """Whether a stage stands still because this does not answer."""
        return self.away and (not self._stages or stage in self._stages)

    def told(self, answers: bool) -> None:
        """Take in whether it answered just now; log it where that is another answer than before."""
        since = self.away_since_s
        if answers is (since is None):
            return
        if since is None:
            self.away_since_s = self._monotonic()
            LOG.warning(f"the {self.name} does not answer: {self._means}", **{self.name: self.address})
            return
        away_s = self._monotonic() - since
        self.away_since_s = None
        LOG.warning(
            f"the {self.name} answers again: it is back after {away_s:.0f} s",
            away_s=round(away_s, 1),
            **{self.name: self.address},
        )

    def problem(self) -> str:
        """Return in words for how long it has been away; "" while it answers."""
        since = self.away_since_s
        if since is None:
            return ""
        return f"the {self.name} at {self.address} has not answered for {self._monotonic() - since:.0f} s"


class BrokerWatch:
    """Asks the broker, in a thread, whether it answers. ``ask`` raises KafkaException where it does not."""

    def __init__(self, address: str, ask: Callable[[], object]) -> None:
        self.broker = Dependency(
            "broker", address, "nothing is read or committed until it does; nothing is lost meanwhile"
        )
        self._ask = ask
        self._threads = StageThreads("broker-watch")  # that no end of the worker waits for

    @classmethod
    def of(cls, connection: Connection, user: str, topic: str) -> "BrokerWatch":
        """Return a watch that asks for a topic which the user may describe."""
        admin = AdminClient(quiet(connection.confluent(user)), logger=LibrdkafkaLog())
        return cls(connection.bootstrap, lambda: admin.list_topics(topic, timeout=ANSWERS_WITHIN_S))

    @property
    def away(self) -> bool:
        """Whether the broker did not answer when it was asked last."""
        return self.broker.away

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(ASKED_EVERY_S)

    async def look(self) -> None:
        """Ask once; say it where the answer is another than before."""
        answers = True
        try:
            await self._threads.submit(self._ask)
        except KafkaException:
            answers = False
        self.broker.told(answers)


_watched: list[BrokerWatch] = []
"""The watches that run now in this process: one, as a process has one worker."""


def brokers() -> list[Dependency]:
    """Return the brokers that this process's worker depends on, as they are known now."""
    return [watch.broker for watch in tuple(_watched)]


@contextlib.asynccontextmanager
async def watching(watch: BrokerWatch) -> AsyncIterator[None]:
    """Watch as long as the block runs."""
    task = asyncio.create_task(watch.run())
    _watched.append(watch)
    try:
        yield
    finally:
        _watched.remove(watch)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
