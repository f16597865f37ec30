"""Ten thousand held writes decided again on the real stack: killed and resumed, then against *screen*'s own clock."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import cycle, islice
from typing import Any

import yaml

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.envelope.records import verdict_from_bytes
from memsluice.errors import StackError
from memsluice.events.models import Recall, Write
from memsluice.events.names import DECISION_HEADER, EventType
from memsluice.operations.held import desk as desks
from memsluice.operations.held.collect import look, look_whole
from memsluice.operations.held.entries import HeldState
from memsluice.operations.held.filters import HeldFilter
from memsluice.operations.held.replay import PAGE, HeldRun
from memsluice.operations.trace.life import replayed
from memsluice.topics import names
from memsluice_lab.figures.bed import Bed, Place, Sender, Worker, bed, messages, tail
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import Published, read_stream

COUNT = 10_000
KILLS = 10
TENANTS = tuple(f"replayed-{number}" for number in range(8))
QUESTIONS, REFERENCES = 200, 60
"""Recalls, and accepted writes of as many principals, of each tenant before anything is timed: MEMSAD is calibrated."""
SECONDS_MAX = 1_800
HELD = {
    "name": "held",
    "writes_per_day": {"user_observed": 1},
    "quarantine": {"per_principal_max": 100_000},
}
"""Detectors as they ship; holds all but the first write of each principal: for its rate, which a replay asks anew."""
HELD_LEAST = 0.9
"""Share of the writes that is held at least: a tenant's first lands, and repeated texts are no matter."""
OPEN = {**HELD, "name": "open", "writes_per_day": {"user_observed": None}}


def replay_ratio(setting: Setting, count: int = COUNT) -> Measured:
    """Replays that *screen* decides in a second over first-time decisions of the same writes with the same outcome.

    Both work off a sealed backlog, once where everything is held, once where it lands; the lower ratio counts. A rate
    is that of the verdicts' append times, first to last; nothing else works meanwhile. Before, the entries are replayed
    by a run that is killed KILLS times. Raises StackError where an entry was not decided once by it, in order, or
    something hangs.
    """
    with streams(setting) as paths:
        lines = [line for path in paths for line in read_stream(path)]
    texts = [str(line["text"]) for line in lines if line["kind"] == "write"]
    questions = [str(line["text"]) for line in lines if line["kind"] == "query"]
    entries = list(islice(cycle(texts), count))
    with bed(setting, policy=HELD) as running:
        signers = running.signers(TENANTS)
        running.start("seal")
        screen = running.start("screen")
        _calibrate(running, signers, questions, texts)
        running.stop(screen)
        _publish(running, signers, "entry", entries)
        setting.say(f"{count:,} writes are published")
        screen, held = _timed(running)
        kills = _killed(running, count)
        once, ordered, total = _effects(running)
        setting.say(f"{kills} kills; {once} of {total} entries decided once by the run, order kept: {ordered}")
        if not once == total >= count * HELD_LEAST or not ordered or kills < KILLS:
            raise StackError("the killed run did not decide each entry once, in order")
        running.stop(screen)
        screen, held_again = _timed_replays(running, "held", total)
        running.stop(screen)
        Home.at(running.home).policy_file.write_text(yaml.safe_dump(OPEN), encoding="utf-8")
        screen, landed_again = _timed_replays(running, "let-in", total)
        accepted = _accepted(running, total)
        running.stop(screen)
        _publish(running, signers, "fresh", entries)
        screen, landed = _timed(running)
        running.start("land")
        running.drain(SECONDS_MAX)
    return Measured(
        min(held_again / held, landed_again / landed),
        (
            ("held writes", f"{total:,} of {len(TENANTS)} tenants, real texts, detectors on"),
            ("killed and resumed", f"{kills} × kill -9; {once:,} decided once, each tenant's in order"),
            ("held: first time; replayed; ratio", _told(held, held_again)),
            (f"let in ({accepted:,} replays land): first time; replayed; ratio", _told(landed, landed_again)),
            ("replays that land over first decisions that hold", f"{landed_again / held:.2f}"),
        ),
        ("*screen* alone works off what is sealed. A replay carries the write; encoding is *seal*'s, in no rate.",),
    )


def _told(first: float, again: float) -> str:
    return f"{first:.0f}/s; {again:.0f}/s; {again / first:.2f}"


def _timed_replays(running: Bed, run: str, total: int) -> tuple[Worker, float]:
    """Replay everything that waits, and time *screen*. Raises StackError where that is not everything."""
    if (waiting := _order_all(running, run)) != total:
        raise StackError(f"{waiting} of {total} entries wait")
    return _timed(running)


def _calibrate(running: Bed, signers: Any, questions: Sequence[str], texts: Sequence[str]) -> None:
    """Ask, and write what is accepted, for every tenant: from here on each write is scored against both."""
    sender = Sender(running)
    for number, text in enumerate(islice(cycle(questions), QUESTIONS * len(TENANTS))):
        now = datetime.now(UTC)
        recall = Recall(
            id=f"question-{number}", tenant=TENANTS[number % len(TENANTS)], time=now, question=text[:1_000] or "-",
            agent="replayed", principal="ana", session="s-1",
        )  # fmt: skip
        sender.publish(Published("reader", EventType.RECALL, recall, wall_ms(), number), signers)
    sender.flush()
    chosen = list(islice(cycle(texts), REFERENCES * len(TENANTS)))
    _publish(running, signers, "reference", chosen, lambda number: f"person-{number}")
    _wait(running, 2)


def _publish(
    running: Bed, signers: Any, name: str, texts: Sequence[str], who: Callable[[int], str] = lambda _: "ana"
) -> None:
    sender = Sender(running)
    for number, text in enumerate(texts):
        tenant, now = TENANTS[number % len(TENANTS)], datetime.now(UTC)
        write = Write(
            id=f"{name}-{number}", tenant=tenant, time=now, content=text[:2_000] or "-", agent="replayed",
            principal=who(number), session="s-1",
        )  # fmt: skip
        sender.publish(Published("user", EventType.WRITE, write, int(now.timestamp() * 1000), number), signers)
    sender.flush()


def _wait(running: Bed, stages: int) -> None:
    """Wait until the first stages have committed everything. Raises StackError where that takes too long."""
    began = time.monotonic()
    while running.lag(stages):
        running.check()
        if time.monotonic() - began > SECONDS_MAX:
            raise StackError("the stages are not through in time")
        time.sleep(0.1)


def _timed(running: Bed) -> tuple[Worker, float]:
    """Let *seal* finish, then *screen* work off what it left; return it, and the verdicts a second by their times."""
    _wait(running, 1)
    before = running.ends(names.AUDIT)
    screen = running.start("screen")
    _wait(running, 2)
    times = [
        message.timestamp()[1]
        for message in messages(running, names.AUDIT)
        if message.offset() >= before[message.partition()]
    ]
    if max(times) == min(times):
        raise StackError("too few verdicts to time")
    return screen, (len(times) - 1) / ((max(times) - min(times)) / 1_000)


def _order_all(running: Bed, name: str) -> int:
    """Publish a replay of everything that waits, and wait for no answer; return how many."""
    with ExitStack() as closing:
        desk = desks.on_kafka(running.home, closing)
        keyring, wanted = desk.keys.keyring(), HeldFilter(states=frozenset({HeldState.PENDING}))
        found = look(
            desk.held, desk.audit, keyring, wanted, partitions=names.PARTITIONS, now_ms=wall_ms(),
            age_days=lambda _: 30,
        )  # fmt: skip
        run = HeldRun(name, wall_ms(), False, len(found.seen), wanted)
        whole = look_whole(desk.held, keyring, found.seen)
        while chunk := list(islice(whole, PAGE)):
            desk.publish([run.command(seen) for seen in chunk])
        return len(found.seen)


def _accepted(running: Bed, replays: int) -> int:
    """Return how many of the last replays landed. Raises StackError where one was refused or not decided."""
    keyring, told = running.store.load_keyring(), dict[str, bool]()
    for message in messages(running, names.AUDIT):
        verdict = verdict_from_bytes(keyring, message.key().decode(), message.value())
        if verdict.policy.startswith("open@") and replayed(verdict):
            told[verdict.event_id] = verdict.object_id is not None
    if len(told) != replays:
        raise StackError(f"{len(told)} of {replays} replays were decided")
    return sum(told.values())


def _command(running: Bed, *arguments: str) -> list[str]:
    base = [sys.executable, "-m", "memsluice.cli.main", "quarantine", "replay", "--json", "--yes", "--wait", "120"]
    return [*base, "--home", str(running.home), *arguments]


def _killed(running: Bed, count: int) -> int:
    """Replay everything under the same policy, killed -9 at random points and resumed; return how often it was."""
    chance, kills, run_id = random.Random(0), 0, ""  # noqa: S311 - when to kill, no secret
    most = ("--max-messages", str(2 * count))
    pace = ("--rate", "10000", "--batch", str(max(1, count // 100)))
    while True:
        log = running.home / "logs" / f"replay-{kills}.log"
        arguments = ("--resume", run_id) if run_id else most
        with log.open("wb") as file:
            process = subprocess.Popen(
                _command(running, *arguments, *pace), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
        lines = chance.randrange(1, count // KILLS) if kills < KILLS else sys.maxsize
        while process.poll() is None and log.read_bytes().count(b"\n") < lines:
            time.sleep(0.02)
        if kills < KILLS and process.poll() is None:
            time.sleep(chance.random() * 0.3)
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            (file_of_run,) = (running.home / "replays").glob("*.json")
            run_id = file_of_run.stem
            running.setting.say(f"killed after {log.read_bytes().count(b'{')} answers")
            continue
        if process.wait() != 0:
            raise StackError(f"a replay ended with {process.returncode}:\n{tail(log)}")
        return kills


def _effects(running: Bed) -> tuple[int, bool, int]:
    """Return how many entries the audit has one replay's decision of, whether in the order held, and of how many.

    A record is left out as a re-delivery only where it is of the same intake offset: a command that was published
    twice and decided twice counts twice.
    """
    held: dict[str, list[str]] = defaultdict(list)
    again: dict[str, list[str]] = defaultdict(list)
    keyring = running.store.load_keyring()
    seen: set[Place] = set()
    for message in messages(running, names.AUDIT):
        tenant = message.key().decode()
        if (DECISION_HEADER, b"duplicate") in (message.headers() or []):
            continue
        verdict = verdict_from_bytes(keyring, tenant, message.value())
        place = verdict.intake
        if place in seen:
            continue
        seen.add(place)
        if verdict.action == "replay":
            again[tenant].append(verdict.target)
        elif verdict.decision == "quarantine":
            held[tenant].append(verdict.event_id)
    once = sum(len(again[tenant]) == len(set(again[tenant])) and len(again[tenant]) for tenant in held)
    return once, held == again, sum(map(len, held.values()))
