"""Whether what a service stands on answers, asked seldom enough to be asked by anybody."""

import threading
import time
from collections.abc import Callable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from memsluice.deployment.connection import Connection, quiet

ANSWERS_WITHIN_S = 3.0
ASKED_EVERY_S = 5.0
"""How long what was found stands."""


def asks_broker(connection: Connection, user: str, topic: str) -> Callable[[], bool]:
    """Return what asks the broker, as a user, for a topic that the user may see."""
    client = AdminClient(quiet(connection.confluent(user)))

    def ask() -> bool:
        try:
            return topic in client.list_topics(topic, timeout=ANSWERS_WITHIN_S).topics
        except KafkaException:
            return False

    return ask


class Missing:
    """Says what a service lacks; asks each part, by what is said without it, once in ASKED_EVERY_S at most.

    Safe for several threads: while one asks, the others are told what was found before, and at first that all is
    missing.
    """

    def __init__(self, asks: dict[str, Callable[[], bool]], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._asks = asks
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._found = list(asks)
        self._at = float("-inf")

    def __call__(self) -> list[str]:
        """Return what is missing, in words."""
        with self._lock:
            now = self._monotonic()
            due = now - self._at >= ASKED_EVERY_S
            if due:
                self._at = now
        if due:
            self._found = [what for what, ask in self._asks.items() if not ask()]
        return self._found
