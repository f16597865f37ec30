"""The SDK's channels, each writing to an embedded log with a client of its own, as each has its own to the broker."""

import queue
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from memsluice.client.writer import MemoryWriter, RecallChannel, RuntimeChannel
from memsluice.clock import wall_ms
from memsluice.deployment.local_log import LocalLog

NOWHERE = {"bootstrap.servers": "127.0.0.1:9"}


class Appended(NamedTuple):
    """What a delivery report says of a record."""

    where: tuple[str, int, int]

    def topic(self) -> str:
        """Return the topic."""
        return self.where[0]

    def partition(self) -> int:
        """Return the partition."""
        return self.where[1]

    def offset(self) -> int:
        """Return the offset."""
        return self.where[2]

    def timestamp(self) -> tuple[int, int]:
        """Return kind and time (Unix ms)."""
        return 1, wall_ms()


class _IntoTheLog:
    """A channel whose client is a thread that appends to an embedded log: a queue of its own, as librdkafka's is."""

    def into(self, log_file: Path, may_append: threading.Event, delay_s: float = 0.0) -> Any:
        """Begin; nothing is appended before ``may_append``."""
        self.waiting: queue.Queue[partial[None]] = queue.Queue()
        threading.Thread(target=self._append, args=(log_file, may_append, delay_s), daemon=True).start()
        return self

    def _produce(self, topic: str, message: Any, delivered: Any, partition: int | None = None) -> None:
        self.waiting.put(partial(self._appended, topic, message, delivered))

    def _append(self, log_file: Path, may_append: threading.Event, delay_s: float) -> None:
        log = LocalLog(log_file)
        log._connection.execute("PRAGMA busy_timeout = 240000")  # beside others, on a disk that may stand still
        while True:
            one = self.waiting.get()
            may_append.wait()
            time.sleep(delay_s)
            one(log)

    @staticmethod
    def _appended(topic: str, message: Any, delivered: Any, log: LocalLog) -> None:
        partition, offset = log.append(topic, message.key, message.value, message.headers, append_ms=wall_ms())
        delivered(None, Appended((topic, partition, offset)))


class SlowWriter(_IntoTheLog, MemoryWriter):
    """A writer into the embedded log."""


class Platform(_IntoTheLog, RuntimeChannel):
    """A runtime channel into the embedded log."""


class Recalls(_IntoTheLog, RecallChannel):
    """A recall channel into the embedded log."""
