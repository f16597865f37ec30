"""Figures of the harness against the real components: what a paused and a killed worker can break, and a recovery."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
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
from memsluice_lab.chaos import faults, kills, outage, results, rounds
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.chaos.recover import BARE_APP, BARE_SOURCE, READY_S_MAX
from memsluice_lab.figures.bed import STAGES, Bed, bed
from memsluice_lab.figures.dependencies import here
from memsluice_lab.figures.registry import FIGURES, Measured, Setting

ZOMBIE_ROUNDS = dict.fromkeys(STAGES, 34)
"""A hundred, and two."""
ZOMBIE_SCENE = 36
"""Rounds on one stack, between two checks."""
KILLS = dict.fromkeys(STAGES, 100)
KILL_SCENE = 45
ROWS = 60_000
ROW_BYTES = 700
RECOVERIES = 3
Play = Callable[[Setting, Sequence[int], str], tuple[list[str], list[Violation]]]


def zombie_violations(setting: Setting) -> Measured:
    """Promises broken over rounds in which a paused worker wakes up after another took over."""
    return _played(setting, "zombie_violations", rounds.GAME.play, ZOMBIE_ROUNDS, ZOMBIE_SCENE)


def kill9_violations(setting: Setting) -> Measured:
    """Promises broken over kills of each stage with more than a hundred records in flight."""
    return _played(setting, "kill9_violations", kills.GAME.play, KILLS, KILL_SCENE)


def fault_violations(setting: Setting) -> Measured:
    """Promises broken over faults of the network, the servers, the group and the clocks, one after the other."""
    return _played(setting, "fault_violations", faults.GAME.play, {"": faults.FAULTS}, faults.FAULTS)


def outage_lost(setting: Setting) -> Measured:
    """Promises broken while the store is down for minutes and the broker is restarted, both under load."""
    found, rows = outage.play(setting, f"o{os.getpid() % 10_000}")
    words = results.Outcome.of("", (), 0, found).words
    return Measured(float(len(found)), tuple(rows), words[:20])


def _played(setting: Setting, name: str, play: Play, wanted: Mapping[str, int], scene: int) -> Measured:
    """Add what is missing of the rounds on this code, as many as this run may; the figure is of all of them.

    ``wanted``: how many rounds, by how a round's row begins. Round number n is of the kind at n modulo their number.
    Raises StackError where less was played, on this run and earlier ones: what is not whole is no figure.
    """
    digest = here().digest(FIGURES[name])
    left = results.allowed(sum(wanted.values()))
    while numbers := _due(name, digest, wanted)[: min(left, scene)]:
        began = time.monotonic()
        done, found = play(setting, numbers, f"c{os.getpid() % 10_000}-{numbers[0]}")
        results.add(name, results.Outcome.of(digest, done, time.monotonic() - began, found))
        left -= len(numbers)  # a round that does not count is played again, on a later run
    outcomes = results.done(name, digest)
    rounds_done = [one for outcome in outcomes for one in outcome.rounds]
    if still := len(_due(name, digest, wanted)):
        raise StackError(
            f"{len(rounds_done)} rounds are played on this code, {still} are still wanted; what was played is kept in "
            f"{results.file(name)}, and the same command goes on from there"
        )
    table = (
        ("rounds", f"{len(rounds_done)}, on {len(outcomes)} stacks, each checked after compaction"),
        ("time", f"{sum(one.seconds for one in outcomes) / 60:.0f} min"),
        *((f"round {number}", what) for number, what in enumerate(rounds_done)),
    )
    words = [word for outcome in outcomes for word in outcome.words]
    return Measured(float(sum(one.broken for one in outcomes)), table, tuple(words[:20]))


def _due(name: str, digest: str, wanted: Mapping[str, int]) -> list[int]:
    """Return the numbers of the rounds that are still to be played on this code."""
    rounds_done = [one for outcome in results.done(name, digest) for one in outcome.rounds]
    due: list[int] = []
    for place, (kind, number) in enumerate(wanted.items()):
        had = sum(one.startswith(kind) for one in rounds_done)
        due += range(had * len(wanted) + place, number * len(wanted), len(wanted))
    return sorted(due)


def recovery_ratio(setting: Setting) -> Measured:
    """Time until a worker from empty state takes records, over a bare Faust worker's on the same changelog."""
    with bed(setting) as running:
        _fill(running)
        took: dict[str, list[float]] = {"screen": [], "bare": []}
        for number in range(RECOVERIES):
            for kind in ("screen", "bare") if number % 2 == 0 else ("bare", "screen"):
                took[kind].append(_recovered(running, kind))
                setting.say(f"{kind}: {took[kind][-1]:.2f} s")
    ratio = median(took["screen"]) / median(took["bare"])
    table = (
        ("rows, bytes each", f"{ROWS:,}, {ROW_BYTES}, over {names.PARTITIONS} partitions"),
        ("screen", ", ".join(f"{one:.2f} s" for one in took["screen"])),
        ("bare Faust", ", ".join(f"{one:.2f} s" for one in took["bare"])),
    )
    return Measured(ratio, table)


def _fill(running: Bed) -> None:
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
    for number in range(ROWS):
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


def _recovered(running: Bed, kind: str) -> float:
    with TemporaryDirectory(prefix="memsluice-recover-") as data:
        command = [executable, "-m", "memsluice_lab.chaos.recover", kind, str(running.home), data]
        done = run(command, capture_output=True, text=True, timeout=READY_S_MAX + 60, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise StackError(f"{kind} did not recover: {done.stderr.strip()[-800:]}")
    return float(lines[-1])
