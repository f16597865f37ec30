"""Figures of a worker that starts: from empty state, and with all its rows on its disk, beside bare Faust."""

from collections.abc import Callable
from pathlib import Path
from statistics import median
from subprocess import run
from sys import executable
from tempfile import TemporaryDirectory

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from memsluice.envelope.codec import canonical
from memsluice.errors import StackError
from memsluice.gate.state.rows import row_key
from memsluice.topics import names
from memsluice_lab.chaos.recover import BARE_APP, BARE_SOURCE, READY_S_MAX
from memsluice_lab.figures.bed import Bed, bed
from memsluice_lab.figures.registry import Measured, Setting

ROWS = 60_000
"""Rows that a recovery brings back."""
KNOWN_ROWS = 1_000_000
"""Rows that a restart finds on its disk."""
ROW_BYTES = 700
RECOVERIES, RESTARTS = 3, 5
KINDS = ("screen", "bare")


def recovery_ratio(setting: Setting) -> Measured:
    """Time until a worker from empty state takes records, over a bare Faust worker's on the same changelog."""
    with bed(setting) as running:
        _fill(running, ROWS)

        def recovered(kind: str) -> float:
            with TemporaryDirectory(prefix="memsluice-recover-") as data:
                return _started(running, kind, data)

        took = _in_turns(setting, RECOVERIES, recovered)
    return _measured(took, ROWS)


def restart_ratio(setting: Setting) -> Measured:
    """Time until a worker with all its rows on its disk takes records, over a bare Faust worker's with as many."""
    with bed(setting) as running, TemporaryDirectory(prefix="memsluice-restart-") as folder:
        _fill(running, KNOWN_ROWS)
        data = {kind: str(Path(folder) / kind) for kind in KINDS}
        for kind in KINDS:
            Path(data[kind]).mkdir()
            setting.say(f"{kind}, from empty state: {_started(running, kind, data[kind]):.2f} s")
        took = _in_turns(setting, RESTARTS, lambda kind: _started(running, kind, data[kind]))
    return _measured(took, KNOWN_ROWS)


def _in_turns(setting: Setting, rounds: int, start: Callable[[str], float]) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind in KINDS if number % 2 == 0 else reversed(KINDS):
            took[kind].append(start(kind))
            setting.say(f"{kind}: {took[kind][-1]:.2f} s")
    return took


def _measured(took: dict[str, list[float]], rows: int) -> Measured:
    ratio = median(took["screen"]) / median(took["bare"])
    table = (
        ("rows, bytes each", f"{rows:,}, {ROW_BYTES}, over {names.PARTITIONS} partitions"),
        ("screen", ", ".join(f"{one:.2f} s" for one in took["screen"])),
        ("bare Faust", ", ".join(f"{one:.2f} s" for one in took["bare"])),
    )
    return Measured(ratio, table)


def _fill(running: Bed, rows: int) -> None:
    """Write the same rows to the changelog of *screen* and to that of the bare worker."""
    settings = running.connection.confluent(names.USER_ADMIN)
    other = names.changelog_topic(BARE_APP, names.SCREEN_STATE_TABLE)
    admin = AdminClient({**settings, "log_level": 0})
    new = [
        NewTopic(BARE_SOURCE, num_partitions=names.PARTITIONS, replication_factor=1),
        NewTopic(other, num_partitions=names.PARTITIONS, replication_factor=1, config={"cleanup.policy": "compact"}),
    ]
    for done in admin.create_topics(new, operation_timeout=30).values():
        done.result(30)
    producer = Producer({**settings, "acks": "all", "linger.ms": 20, "log_level": 0})
    for number in range(rows):
        key = row_key("north", "entry", f"e-{number:08d}")
        value = canonical({"object": f"{number:08d}" + "x" * ROW_BYTES, "x": None})
        for topic in (names.SCREEN_CHANGELOG, other):
            while True:
                try:
                    producer.produce(topic, key=key, value=value, partition=number % names.PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
    if producer.flush(120):
        raise StackError("the rows were not acknowledged")


def _started(running: Bed, kind: str, data: str) -> float:
    """Start a worker over a folder, end it, and return the seconds until it took records."""
    command = [executable, "-m", "memsluice_lab.chaos.recover", kind, str(running.home), data]
    done = run(command, capture_output=True, text=True, timeout=READY_S_MAX + 60, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise StackError(f"{kind} did not start: {done.stderr.strip()[-800:]}")
    return float(lines[-1])
