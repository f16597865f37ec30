"""What a worker depends on, watched in a thread of its own: its store, and the room on its disk.

The broker is watched by the worker itself (:mod:`memsluice.runtimes.kafka.broker_watch`), which asks for a topic of its
stages; here its findings are read. One line of the log says that something went, one that it is back.
"""

import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import Final

from memsluice.deployment.connection import Connection
from memsluice.deployment.space import SCARCE_SHARE, Room, RoomState
from memsluice.log import get_logger
from memsluice.runtimes.kafka.broker_watch import ANSWERS_WITHIN_S, ASKED_EVERY_S, Dependency, brokers

LOG = get_logger(__name__)
SUCCESS: Final = range(200, 300)
OF_STORE: Final = ("land",)
"""Stages that stand still without the store."""


def asks_store(connection: Connection) -> Callable[[], bool]:
    """Return what asks a deployment's store whether it is ready."""
    url = connection.weaviate_ready_url

    def ask() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=ANSWERS_WITHIN_S) as answer:  # noqa: S310 - http or https
                return int(answer.status) in SUCCESS
        except (OSError, HTTPException):  # URLError and HTTPError are OSErrors
            return False

    return ask


def store_of(connection: Connection) -> Dependency:
    """Return the store as a worker depends on it."""
    address = f"{connection.weaviate_host}:{connection.weaviate_http_port}"
    return Dependency("store", address, "nothing lands until it does; what was accepted waits in its topic", OF_STORE)


class Surroundings:
    """A worker's store and disk. ``store`` is None where no stage of the worker writes to it."""

    def __init__(
        self,
        store: Dependency | None,
        ask: Callable[[], bool],
        disk: Path,
    ) -> None:
        self._store = store
        self._ask = ask
        self._disk = disk
        self._measured: Callable[[Room], None] = lambda room: None
        self._state = RoomState.OK
        self._ended = Event()

    @classmethod
    def of(cls, connection: Connection, stages: Sequence[str], disk: Path) -> "Surroundings":
        """Return what to watch for a worker of these stages, whose rows lie below ``disk``."""
        store = store_of(connection) if any(stage in OF_STORE for stage in stages) else None
        return cls(store, asks_store(connection), disk)

    def start(self, measured: Callable[[Room], None]) -> None:
        """Look every few seconds until :meth:`close`; ``measured`` is given the disk's room each time."""
        self._measured = measured
        Thread(target=self._run, name="surroundings", daemon=True).start()

    def close(self) -> None:
        """Look no more."""
        self._ended.set()

    def dependencies(self) -> list[Dependency]:
        """Return what the worker depends on now, as it is known."""
        return [*brokers(), *([] if self._store is None else [self._store])]

    def look(self) -> None:
        """Ask the store and measure the disk once; log what is another way than before."""
        if self._store is not None:
            self._store.told(self._ask())
        try:
            room = Room.of(self._disk)
        except OSError:
            return  # a disk that cannot be asked is no full one; whoever writes to it says what is wrong
        self._measured(room)
        if room.state is not self._state:
            self._tell(room)
        self._state = room.state

    def _tell(self, room: Room) -> None:
        told = {"disk": str(room.path), "free_mib": room.free >> 20, "free_share": round(room.share, 3)}
        if room.state is RoomState.OK:
            LOG.warning("there is room on the disk again", **told)
        elif room.state is RoomState.LOW:
            LOG.warning(f"little room is left on the disk: free some before less than {SCARCE_SHARE:.0%} is", **told)
        else:
            LOG.error(
                "the disk is nearly full: the broker and the store refuse what is new when it is; nothing that was "
                "acknowledged is lost, and all goes on by itself once there is room",
                **told,
            )

    def _run(self) -> None:
        while not self._ended.is_set():
            self.look()
            self._ended.wait(ASKED_EVERY_S)
