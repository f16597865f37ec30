"""``memsluice top`` as a person meets it: on the log that a demo leaves, on the real broker, and drawn for hours."""

import io
import json
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from rich.console import Console
from rich.text import Text
from tests.gate.build import PARTITION, RING
from tests.patience import HANG_S
from tests.trace.audit import Gate
from tests.trace.command import run
from tests.trace.conftest import Played
from tests.trace.test_life import PATTERN

from memsluice.cli import top
from memsluice.clock import wall_ms
from memsluice.deployment.connection import FILE_VARIABLE
from memsluice.deployment.home import Home
from memsluice.errors import BrokerUnavailable
from memsluice.keystore.store import KeyStore
from memsluice.operations.monitor import sources
from memsluice.operations.monitor.lag import KafkaLag, LocalLag
from memsluice.operations.monitor.pulse import Pulse
from memsluice.readers.local import LocalTopic
from memsluice.runtimes.embedded import LocalLog
from memsluice.topics.names import AUDIT, EVENTS, PARTITIONS, USER_PRODUCER, USER_READER, USER_SCREEN


def test_the_numbers_are_those_of_the_log(played: Played) -> None:
    """Every verdict of the played day is in exactly one count, for a person and for a program."""
    code, out, said = run("top", "--json", "--home", str(played.home))
    found = json.loads(out)
    assert (code, said) == (0, "")
    decisions = Counter(str(verdict["decision"]) for verdict in played.verdicts)
    assert found["decisions"] == {**dict.fromkeys(found["decisions"], 0), **decisions}
    assert (found["events"], found["unverified"]) == (len(played.verdicts), 0)
    first = found["tenants"][0]
    told = [
        verdict["usual"] for verdict in played.verdicts if verdict["tenant"] == first["tenant"] and verdict["usual"]
    ]
    assert (first["phase"], first["window_size"]) == (told[-1]["phase"], told[-1]["size"])
    code, out, _ = run("top", "--once", "--home", str(played.home))
    assert code == 0
    assert f"held     {decisions['quarantine']} wait for a reviewer" in out
    assert "casa-lindqvist" in out


def test_without_a_terminal_one_picture_is_enough(played: Played) -> None:
    """In a pipe it prints once and ends, instead of drawing for ever."""
    code, out, _ = run("top", "--home", str(played.home))
    assert code == 0
    assert "seal" in out


def test_the_lag_of_a_local_log_is_what_was_not_taken(tmp_path: Path) -> None:
    """Records that a stage has not moved past count, stage by stage."""
    log = LocalLog(tmp_path / "log.db")
    for _ in range(3):
        log.append(EVENTS, b"acme", b"x", append_ms=1)
    with log.transaction():
        log.advance("seal", EVENTS, PARTITION, 2)
    lags = {lag.stage: (lag.behind, lag.partitions, lag.worst, lag.started) for lag in LocalLag(log)()}
    log.close()
    assert lags == {"seal": (1, 1, 1, True), "screen": (0, 0, 0, False), "land": (0, 0, 0, False)}


def test_a_broker_that_is_away_is_said_and_asked_again(
    played: Played, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The live view survives a restart of the broker, goes on where it stopped, and ends when interrupted."""
    log = LocalLog(Home(played.home).log_file)
    pulse = Pulse(KeyStore(played.home).keyring)
    follower = sources.Follower(LocalTopic(log, name="log"), pulse, PARTITIONS, 0)
    drawn: list[int] = []
    pauses: list[float] = []

    def picture() -> Text:
        drawn.append(pulse.read)
        if len(drawn) == 2:
            raise BrokerUnavailable("the broker is away")
        return Text(f"picture {len(drawn)}")

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(top.time, "sleep", pause)
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=10)
    top._watch(console, follower, picture, 2.0)
    log.close()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert drawn == [len(played.verdicts)] * 3
    assert pauses == [2.0] * 3
    assert all(said in text for said in ("picture 1", "the broker is away", "picture 3"))


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_the_running_stack_is_watched_as_an_operator(stack: Any, tmp_path: Path) -> None:
    """Through SCRAM and the access rules: verdicts from the audit topic, lag from groups that others own."""
    gate, tenant = Gate(), f"top-{uuid.uuid4().hex[:8]}"
    KeyStore(tmp_path).save_keyring(RING)
    gate.write(tenant=tenant, append_ms=wall_ms())
    gate.write(tenant=tenant, append_ms=wall_ms(), content=PATTERN)
    producer = Producer({**stack.connection.confluent(USER_SCREEN), "acks": "all"})
    for one in gate.audit:
        producer.produce(AUDIT, key=one.key, value=one.value, headers=list(one.headers), partition=PARTITION)
    assert producer.flush(HANG_S) == 0
    file = tmp_path / "connection.json"
    stack.connection.save(file)
    environment = {FILE_VARIABLE: str(file), "MEMSLUICE_HOME": str(tmp_path)}
    code, out, said = run("top", "--json", "--tenants", "1000", "--since", "1h", environment=environment)
    assert (code, said) == (0, "")
    found = json.loads(out)
    (own,) = [one for one in found["tenants"] if one["tenant"] == tenant]
    assert (own["decisions"], own["held"]) == ({"accept": 1, "quarantine": 1}, 1)
    assert list(found["lag"]) == ["seal", "screen", "land"]


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_the_lag_on_the_broker_grows_with_what_nobody_takes(stack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker runs: what is appended to the intake is seal's lag. Who may not ask is told so."""
    asked = KafkaLag(stack.connection)
    before = {lag.stage: lag.behind for lag in asked()}
    producer = Producer({**stack.connection.confluent(USER_PRODUCER), "acks": "all"})
    for number in range(5):
        producer.produce(EVENTS, key=b"nobody", value=b"x", partition=number)
    assert producer.flush(HANG_S) == 0
    after = {lag.stage: lag.behind for lag in asked()}
    assert after["seal"] - before["seal"] == 5
    monkeypatch.setattr("memsluice.operations.monitor.lag.ANSWER_S", 10.0)  # which a refusal takes
    with pytest.raises(BrokerUnavailable):
        KafkaLag(stack.connection, USER_READER)()
