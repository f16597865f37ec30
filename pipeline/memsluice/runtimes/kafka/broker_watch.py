"""Says once that the broker does not answer, and once that it does again, instead of every attempt to reach it.

Whether it answers is asked of it, every few seconds, for one of the worker's topics: a broker that is paused keeps its
connections and fails nothing for a minute. The libraries' own lines about what they try again are kept at level DEBUG.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Callable
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from memsluice.client.connectivity import LibrdkafkaLog
from memsluice.deployment.connection import Connection, quiet
from memsluice.log import get_logger

LOG = get_logger(__name__)
ASKED_EVERY_S: Final = 5.0
ANSWERS_WITHIN_S: Final = 3.0
RETRIED: Final = re.compile(
    r"Unable connect to node|Unable to (update|request) metadata|(Group Coordinator|FindCoordinator) Request failed|"
    r"Failed fetch (messages|offsets) from|Heartbeat send request failed|Heartbeat session expired|"
    r"Error sending \S+ to node|Marking the coordinator dead|Timer \S+ is overlapping"
)
"""How lines begin that aiokafka and mode log at each attempt; what is not tried again raises, and is told as it is."""
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


class BrokerWatch:
    """Asks the broker, in a thread, whether it answers. ``ask`` raises KafkaException where it does not."""

    def __init__(self, address: str, ask: Callable[[], object]) -> None:
        self._address = address
        self._ask = ask
        self.away = False

    @classmethod
    def of(cls, connection: Connection, user: str, topic: str) -> "BrokerWatch":
        """Return a watch that asks for a topic which the user may describe."""
        admin = AdminClient(quiet(connection.confluent(user)), logger=LibrdkafkaLog())
        return cls(connection.bootstrap, lambda: admin.list_topics(topic, timeout=ANSWERS_WITHIN_S))

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(ASKED_EVERY_S)

    async def look(self) -> None:
        """Ask once; say it where the answer is another than before."""
        answers = True
        try:
            await asyncio.to_thread(self._ask)
        except KafkaException:
            answers = False
        if answers is not self.away:
            return
        self.away = not answers
        if self.away:
            LOG.warning(
                "the broker does not answer: nothing is read or committed until it does; nothing is lost meanwhile",
                broker=self._address,
            )
        else:
            LOG.warning("the broker answers again", broker=self._address)


@contextlib.asynccontextmanager
async def watching(watch: BrokerWatch) -> AsyncIterator[None]:
    """Watch as long as the block runs."""
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
