"""What a deployment says of events, heard as it is written: verdicts, landings, dead letters."""

import logging
import threading
from collections.abc import Callable, Sequence

from memsluice.deployment.connection import Connection
from memsluice.errors import BrokerUnavailable
from memsluice.events.records import Record
from memsluice.log import said
from memsluice.readers.kafka import FOLLOW_WAIT_MS, KafkaTopic
from memsluice.topics.names import AUDIT, DEAD_LETTER, STORE, USER_VERDICTS

TOPICS = (AUDIT, STORE, DEAD_LETTER)
POLL_S = 0.5
"""How long a thread waits for a record before it looks whether it was closed."""
AGAIN_S = 1.0
"""How long is waited before a broker that did not answer is asked again."""
CLOSE_S = 5.0
"""How long closing waits for a thread that the broker keeps waiting."""
_log = logging.getLogger(__name__)


class Hearing:
    """Follows partitions of each topic from their present ends, a thread a topic, until it is closed.

    ``back`` begins so many offsets before each end. Raises ConfigError without the user ``verdicts``, BrokerUnavailable
    where the ends cannot be asked for.
    """

    def __init__(
        self, connection: Connection, partitions: Sequence[int], take: Callable[[Record], None], back: int = 0
    ) -> None:
        self._take = take
        self._closed = threading.Event()
        self._readers = [
            KafkaTopic.of(connection, USER_VERDICTS, topic, fetch_wait_ms=FOLLOW_WAIT_MS) for topic in TOPICS
        ]
        try:
            begins = [{one: max(0, reader.end(one) - back) for one in partitions} for reader in self._readers]
        except BaseException:
            self._leave()
            raise
        self._threads = [
            threading.Thread(target=self._follow, args=(*pair,), name="memsluice-verdicts", daemon=True)
            for pair in zip(self._readers, begins, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Hear no more."""
        self._closed.set()
        for thread in self._threads:
            thread.join(CLOSE_S)
        self._leave()

    def _leave(self) -> None:
        for reader in self._readers:
            reader.close()

    def _follow(self, reader: KafkaTopic, offsets: dict[int, int]) -> None:
        away = False
        while not self._closed.is_set():
            try:
                records = reader.follow(offsets, POLL_S)
            except BrokerUnavailable as error:
                if not away:
                    _log.warning("what becomes of this process's events is not heard for now: %s", error)
                away = True
                self._closed.wait(AGAIN_S)
                continue
            away = away and not records
            for record in records:
                offsets[record.partition] = record.offset + 1
                try:
                    self._take(record)
                except Exception as error:  # one record must not make this process deaf to all that follow
                    _log.error("a record of %s at %d was not understood: %s", record.topic, record.offset, said(error))
