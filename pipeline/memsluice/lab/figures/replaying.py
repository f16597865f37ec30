"""Ten thousand held writes decided again on the real stack: killed and resumed, then in one go against the clock."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from datetime import UTC, datetime
from itertools import cycle, islice
from typing import Any

import yaml

from memsluice.envelope.seals import open_
from memsluice.errors import StackError
from memsluice.events.models import Write
from memsluice.events.names import DECISION_HEADER, VERDICT, EventType
from memsluice.home import Home
from memsluice.lab.figures.bed import STAGES, Bed, Sender, bed, messages, tail
from memsluice.lab.figures.records import streams
from memsluice.lab.figures.registry import Measured, Setting
from memsluice.lab.streams import Published, read_stream
from memsluice.topics import names

COUNT = 10_000
KILLS = 10
TENANTS = tuple(f"replayed-{number}" for number in range(8))
WARM_UP = 64
SECONDS_MAX = 1_800
HELD = {
    "name": "held",
    "writes_per_day": {"user_observed": 1},
    "memsad": {"enabled": False},
    "instructions": {"enabled": False},
    "quarantine": {"per_principal_max": 100_000},
}
"""Holds all but the first write of each principal: for its rate, a reason that a replay asks anew."""
SETTLE_S = 8.0
"""A worker that was started anew has its partitions by then."""
OPEN = {**HELD, "name": "open", "writes_per_day": {"user_observed": None}}


def replay_ratio(setting: Setting, count: int = COUNT) -> Measured:
    """Replayed entries a second over first-time decisions a second, both from the first publication to the last answer.

    Before, the same entries are replayed by a run that is killed KILLS times. Raises StackError where an entry was not
    decided once by it, in order, or something hangs.
    """
    with streams(setting) as paths:
        texts = [str(line["text"]) for path in paths for line in read_stream(path) if line["kind"] == "write"]
    with bed(setting, policy=HELD) as running:
        signers = running.signers(TENANTS)
        workers = {stage: running.start(stage) for stage in STAGES}
        _publish(running, signers, "warm-up", texts[:WARM_UP])
        running.drain(SECONDS_MAX)
        setting.say(f"{count:,} writes go in")
        began = time.monotonic()
        _publish(running, signers, "entry", list(islice(cycle(texts), count)))
        _decided(running, began)
        first_s = time.monotonic() - began
        kills = _killed(running, count)
        once, ordered, total = _effects(running)
        setting.say(f"{kills} kills; {once} of {total} entries decided once by the run, order kept: {ordered}")
        if not once == total >= count or not ordered or kills < KILLS:
            raise StackError("the killed run did not decide each entry once, in order")
        Home.at(running.home).policy_file.write_text(yaml.safe_dump(OPEN), encoding="utf-8")
        running.stop(workers["screen"])
        running.start("screen")
        time.sleep(SETTLE_S)
        began = time.monotonic()
        told = _run(running, total)
        again_s = time.monotonic() - began
        running.drain(SECONDS_MAX)
    ratio = (total / again_s) / (count / first_s)
    return Measured(
        ratio,
        (
            ("held writes", f"{total:,} of {len(TENANTS)} tenants, real texts"),
            ("first time", f"{count / first_s:.0f}/s, from the first write published to the last verdict"),
            ("killed and resumed", f"{kills} × kill -9; {once:,} decided once, each tenant's in order"),
            ("replayed in one go", f"{total / again_s:.0f}/s, from the command's start to its last answer; {told}"),
        ),
        ("Both go through Kafka and all stages; a replay needs no encoder, but Ed25519 and the write once more.",),
    )


def _publish(running: Bed, signers: Any, name: str, texts: list[str]) -> None:
    sender = Sender(running)
    for number, text in enumerate(texts):
        tenant, now = TENANTS[number % len(TENANTS)], datetime.now(UTC)
        write = Write(
            id=f"{name}-{number}", tenant=tenant, time=now, content=text[:2_000] or "-", agent="replayed",
            principal="ana", session="s-1",
        )  # fmt: skip
        sender.publish(Published("user", EventType.WRITE, write, int(now.timestamp() * 1000), number), signers)
    sender.flush()


def _decided(running: Bed, began: float) -> None:
    """Wait until *screen* has committed all that was sealed."""
    while running.lag(2):
        running.check()
        if time.monotonic() - began > SECONDS_MAX:
            raise StackError("the writes are not decided in time")
        time.sleep(0.1)


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
    """Return how many entries the audit has one replay's decision of, whether in the order held, and of how many."""
    held: dict[str, list[str]] = defaultdict(list)
    again: dict[str, list[str]] = defaultdict(list)
    keyring = running.store.load_keyring()
    seen: set[tuple[str, str]] = set()
    for message in messages(running, names.AUDIT):
        tenant = message.key().decode()
        if (DECISION_HEADER, b"duplicate") in (message.headers() or []):
            continue
        verdict = open_(keyring, tenant, VERDICT, message.value())
        if (tenant, verdict["event_id"]) in seen:  # a re-delivery
            continue
        seen.add((tenant, verdict["event_id"]))
        if verdict["action"] == "replay":
            again[tenant].append(verdict["target"])
        elif verdict["decision"] == "quarantine":
            held[tenant].append(verdict["event_id"])
    once = sum(len(again[tenant]) == len(set(again[tenant])) and len(again[tenant]) for tenant in held)
    return once, held == again, sum(map(len, held.values()))


def _run(running: Bed, total: int) -> str:
    """Replay everything in one go; return what it came to."""
    done = subprocess.run(
        _command(running, "--max-messages", str(total), "--rate", "10000", "--batch", "500"),
        capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
    )  # fmt: skip
    decisions = [json.loads(line)["new"]["decision"] for line in done.stdout.splitlines()]
    if done.returncode != 0 or decisions != ["accept"] * total:
        raise StackError(f"the replay ended with {done.returncode}: {done.stderr[-500:]}")
    return f"{len(decisions):,} accepted"
