"""A stack of one's own with a worker and a writer, for tests that take parts of it away, and `top` on a terminal."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memsluice import MemoryWriter, Session, WriterOptions
from memsluice.deployment.connection import Connection
from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import verdict_from_bytes
from memsluice.keystore.store import KeyStore
from memsluice.operations.monitor.lag import KafkaLag
from memsluice.readers.kafka import KafkaTopic
from memsluice.topics import names

HANG_GUARD_S = 240.0
AGAIN_S = 20.0
"""After so long Ctrl-C is pressed again."""
TENANT = "acme"
STAGES = ("seal", "screen", "land")
COMMAND = [sys.executable, "-m", "memsluice.cli.main"]


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for something that happens by itself."""
    deadline = time.monotonic() + HANG_GUARD_S
    while not condition():
        assert time.monotonic() < deadline, f"did not happen: {what}"
        time.sleep(0.2)


@dataclass
class Town:
    """A stack on a disk of its own, a worker on all stages, and somebody who writes."""

    disk: Path
    home: Path
    connection: Connection
    keys: KeyStore
    worker: Any = None
    port: int = 0
    written: int = 0
    acknowledged: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def log(self) -> str:
        """What the worker has said so far."""
        return (self.disk / "worker.log").read_text(errors="replace")

    def start(self) -> None:
        """Start the worker, and wait until it says that it is ready."""
        before = self.log.count("worker ready")
        with (self.disk / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                [*COMMAND, "work", *STAGES, "--home", str(self.home), "--metrics-port", "0"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until(lambda: self.log.count("worker ready") > before or self.worker.poll() is not None, "the worker is ready")
        assert self.worker.poll() is None, self.log[-3000:]
        self.port = int(self.log.rsplit("metrics and health: http://127.0.0.1:", 1)[1].split("/")[0])

    def asked(self, path: str) -> tuple[int, str]:
        """Return status and body of the worker's endpoint."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=HANG_GUARD_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def status(self, name: str) -> dict[str, Any]:
        """Return what `stack status` says of a server."""
        done = subprocess.run([*COMMAND, "stack", "status", "--json", "--home", str(self.home)], capture_output=True)
        return next(row for row in json.loads(done.stdout) if row["name"] == name)

    def write(self, memory: MemoryWriter) -> None:
        """Write one event, and note what became of it. Ten of a principal, so that no rate holds them."""
        number, self.written = self.written, self.written + 1
        event = f"event-{number}"
        principal = f"person-{number // 10}"
        session = Session(tenant=TENANT, agent="desk", principal=principal, session=f"{principal}-1")
        told = memory.write(session, f"Shelf {number} of the archive holds volume {number * 7}.", event_id=event)
        told.add_done_callback(lambda done: (self.refused if done.exception() else self.acknowledged).append(event))

    def say(self, events: int) -> None:
        """Write events and wait until each is acknowledged."""
        with MemoryWriter.open_local(tenant=TENANT, home=self.home) as memory:
            for _ in range(events):
                self.write(memory)

    @contextmanager
    def load(self) -> Iterator[None]:
        """Write all the time; what is not acknowledged within seconds is refused."""
        ended = threading.Event()

        def write() -> None:
            options = WriterOptions(delivery_seconds=20)
            with MemoryWriter.open_local(tenant=TENANT, home=self.home, options=options) as memory:
                while not ended.is_set():
                    self.write(memory)
                    time.sleep(0.05)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def told(self, what: str) -> list[str]:
        """Return what the worker said of the broker, or of the store: each time that it was away, and back, in order.
        A busy machine takes one for away now and then."""
        return re.findall(rf"the {what} (does not answer|answers again)", self.log)

    def behind(self, stage: str) -> int:
        """Return how many records wait for a stage."""
        return next(lag.behind for lag in KafkaLag(self.connection)() if lag.stage == stage)

    def decided(self) -> list[str]:
        """Return the event ids that the audit has verdicts of."""
        return [one.event_id for one in audited(self.connection, self.keys.keyring())]


def audited(connection: Connection, keyring: Keyring) -> list[Any]:
    """Return every verdict of the audit."""
    topic, found = KafkaTopic.of(connection), []
    try:
        for partition in range(names.PARTITIONS):
            for record in topic.read(partition):
                found.append(verdict_from_bytes(keyring, (record.key or b"").decode(), record.value or b""))
    finally:
        topic.close()
    return found


def by_turns(told: list[str]) -> bool:
    """Tell whether each absence was told once, and its end, once and after it."""
    return bool(told) and told == ["does not answer", "answers again"] * (len(told) // 2)


class Screen:
    """`memsluice top` on a terminal."""

    def __init__(self, home: Path) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, "top", "--every", "0.5", "--home", str(home)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50", "PYTHONFAULTHANDLER": "1"},
        )
        os.close(slave)
        self._shown = b""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._master, 65536)
            except OSError:
                return
            if not part:
                return
            self._shown += part

    def since(self, place: int) -> bytes:
        """Return what was drawn after so many bytes."""
        return self._shown[place:]

    def place(self) -> int:
        """Return how many bytes were drawn."""
        return len(self._shown)

    def close(self) -> int:
        """Press Ctrl-C, as often as a person does who is not heard: Python drops one that meets a finaliser. Return the
        exit code."""
        deadline = time.monotonic() + HANG_GUARD_S
        try:
            while True:
                self.process.send_signal(signal.SIGINT)
                try:
                    return self.process.wait(AGAIN_S)
                except subprocess.TimeoutExpired:
                    if time.monotonic() > deadline:
                        self.process.send_signal(signal.SIGABRT)  # the fault handler writes where each thread stands
                        self.process.wait(HANG_GUARD_S)
                        raise AssertionError(self._shown[-4_000:].decode(errors="replace")) from None
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self._master)


@contextmanager
def drawn(home: Path) -> Iterator[Screen]:
    """Watch `top` until the block ends, and end it as a person would."""
    screen = Screen(home)
    try:
        yield screen
    finally:
        code = screen.close()
    assert code == 0
