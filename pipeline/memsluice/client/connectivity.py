"""Quiet while the broker is away: one warning when it goes, one when it is back, however many clients notice.

librdkafka reports every failed attempt to connect, several times a second. Such a report only raises the question; a
client then asks the broker for the topic, and only a broker that does not answer for a second is said to be away.
librdkafka's own lines are kept at level DEBUG of the logger ``memsluice.client.librdkafka``.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from confluent_kafka import KafkaError

from memsluice.errors import BrokerUnavailable

AWAY_AFTER_S = 1.0
"""A broker that did not answer for so long after a failure is away."""
WARN_EVERY_S = 60.0
"""The least time between two warnings that a broker is away: one that comes and goes is told once a minute."""

_log = logging.getLogger(__name__)


class Connectivity:
    """What is known of one broker address in this process; all its clients share it. Safe for several threads."""

    def __init__(self, address: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._address = address
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._since_s: float | None = None  # of the first failure since the broker answered
        self._told = False
        self._told_s = float("-inf")
        self._refused_s = float("-inf")
        self._problem = ""

    def heard(self, error: Any) -> None:
        """Take a report of librdkafka (its ``error_cb``)."""
        if error.fatal():
            _log.error("the Kafka client has failed and must be opened anew: %s", error.name())
            return
        with self._lock:
            now_s = self._monotonic()
            refused = error.code() == KafkaError._AUTHENTICATION and now_s - self._refused_s >= WARN_EVERY_S
            if refused:
                self._refused_s = now_s
            if self._since_s is None:
                self._since_s = now_s
            if error.code() != KafkaError._ALL_BROKERS_DOWN:  # a consequence, not a reason
                self._problem = error.name()
        if refused:
            _log.warning("the broker at %s does not accept this user or this password", self._address)

    @property
    def in_doubt(self) -> bool:
        """Whether a client should ask the broker now."""
        return self._since_s is not None

    def answered(self) -> None:
        """Note that the broker answered, or acknowledged an event."""
        if self._since_s is None:  # the common case, for every acknowledged event
            return
        with self._lock:
            self._since_s = None
            told, self._told, self._problem = self._told, False, ""
        if told:
            _log.warning("the broker at %s is back", self._address)

    def silent(self) -> None:
        """Note that the broker was asked and did not answer."""
        with self._lock:
            now_s = self._monotonic()
            since_s = now_s if self._since_s is None else self._since_s
            late = now_s - since_s >= AWAY_AFTER_S and now_s - self._told_s >= WARN_EVERY_S
            if self._told or not late:
                return
            self._told, self._told_s = True, now_s
        _log.warning(
            "the broker at %s does not answer%s: events wait in memory and are sent when it is back, or fail as "
            "NotDelivered",
            self._address,
            self._why(),
        )

    def unavailable(self, timeout_s: float) -> BrokerUnavailable:
        """Return the error of a client that asked for so long and was not answered."""
        refused = self._problem == KafkaError(KafkaError._AUTHENTICATION).name()
        advice = "check sasl.username and sasl.password" if refused else "start it, or check bootstrap.servers"
        return BrokerUnavailable(
            f"the broker at {self._address} did not answer within {timeout_s:g} s{self._why()}: {advice}"
        )

    def _why(self) -> str:
        return f" ({self._problem})" if self._problem else ""


class LibrdkafkaLog:
    """What librdkafka logs to: DEBUG, whatever it thinks of it. What matters reaches :class:`Connectivity`."""

    def __init__(self) -> None:
        self._logger = logging.getLogger("memsluice.client.librdkafka")

    def log(self, _level: int, message: str, *arguments: object) -> None:
        """Log a line of librdkafka, which carries addresses and error names and no content."""
        self._logger.debug(message, *arguments)


_shared: WeakValueDictionary[str, Connectivity] = WeakValueDictionary()
_shared_lock = threading.Lock()


def connectivity_of(address: str) -> Connectivity:
    """Return what this process knows of a broker address."""
    with _shared_lock:
        found = _shared.get(address)
        if found is None:
            found = _shared[address] = Connectivity(address)
        return found
