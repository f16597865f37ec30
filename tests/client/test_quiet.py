"""What an application hears of a broker that is away: one warning when it goes, one when it is back."""

import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError
from tests.client.home import keys, session
from tests.client.road import Road
from tests.patience import HANG_S, until

from memsluice.client import connectivity
from memsluice.client.connectivity import AWAY_AFTER_S, WARN_EVERY_S, Connectivity
from memsluice.client.options import WriterOptions
from memsluice.client.writer import MemoryWriter, RuntimeChannel
from memsluice.envelope.registry import Role
from memsluice.topics.names import USER_PRODUCER, USER_RUNTIME


def test_a_process_without_a_broker_prints_one_line(tmp_path: Path) -> None:
    """Three clients, six seconds or until it is told, nothing behind the port, no logging set up: one line on stderr,
    none on stdout."""
    _, credential = keys(tmp_path)
    code = f"""if True:
        import time
        from memsluice import MemoryWriter, NotDelivered, Session, WriterOptions
        from memsluice.client.connectivity import connectivity_of
        options = WriterOptions(check_seconds=None, delivery_seconds=6)
        writers = [MemoryWriter({{"bootstrap.servers": "127.0.0.1:9"}}, {str(credential)!r}, options) for _ in range(3)]
        session = Session("acme", "assistant", "ada", "s-1")
        pending = [writer.write(session, "x") for writer in writers]
        assert all(isinstance(future.exception({HANG_S}), NotDelivered) for future in pending)
        while not connectivity_of("127.0.0.1:9")._told:  # a busy machine may notice it later
            time.sleep(0.05)
        [writer.close() for writer in writers]
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.splitlines() == [
        "the broker at 127.0.0.1:9 does not answer (_TRANSPORT): events wait in memory and are sent when it is back, "
        "or fail as NotDelivered"
    ]


class Heard(logging.Handler):
    """Keeps what is logged, and says when there is so much of it."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.said: list[str] = []
        self.changed = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        with self.changed:
            self.said.append(f"{record.levelname} {record.getMessage()}")
            self.changed.notify_all()

    def until(self, lines: int) -> None:
        """Wait until so many lines were said."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.said) >= lines, HANG_S), self.said


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_a_broker_that_goes_and_comes_back_is_told_once_each(
    stack: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two clients of a broker that is cut off and mended: one warning each way, what was written meanwhile arrives."""
    heard, logger = Heard(), logging.getLogger("memsluice")
    monkeypatch.setattr(logger, "propagate", False)
    logger.addHandler(heard)
    _, producer = keys(tmp_path / "1")
    _, platform = keys(tmp_path / "2", Role.RUNTIME)
    try:
        with (
            Road(stack.connection.bootstrap) as road,
            MemoryWriter(road.of(stack.connection.confluent(USER_PRODUCER)), producer) as memory,
            RuntimeChannel(road.of(stack.connection.confluent(USER_RUNTIME)), platform) as runtime,
        ):
            opened = runtime.open_session(session()).result(HANG_S)
            memory.write(session(), "before").result(HANG_S)
            assert heard.said == []
            road.cut()
            heard.until(1)
            meanwhile = memory.write(session(), "meanwhile")
            road.mend()
            assert meanwhile.result(HANG_S).offset > opened.offset
            heard.until(2)
            runtime.open_session(session()).result(HANG_S)
    finally:
        logger.removeHandler(heard)
    address = road.of({})["bootstrap.servers"]
    assert [line.partition(address)[0] for line in heard.said] == ["WARNING the broker at "] * 2
    assert ["does not answer" in heard.said[0], heard.said[1].endswith("is back")] == [True, True]
    assert "".join(capfd.readouterr()) == ""


class Said:
    """One broker's state under a clock of its own."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, "memsluice")
        self._caplog = caplog
        self.now_s = 1_000.0
        self.state = Connectivity("kafka:9092", lambda: self.now_s)

    def away(self, seconds: float, code: int = KafkaError._TRANSPORT) -> None:
        """Let the broker be away for so long, asked five times a second."""
        for _ in range(round(seconds * 5)):
            self.state.heard(KafkaError(code))
            self.now_s += 0.2
            self.state.silent()

    def lines(self) -> list[str]:
        """Return what was said since the last time, shortened."""
        found = [" ".join(record.getMessage().split()[3:6]) for record in self._caplog.records]
        self._caplog.clear()
        return found


def test_a_short_silence_is_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """One broker of several that restarts, an idle connection that is closed: asked, the broker answers."""
    said = Said(caplog)
    assert not said.state.in_doubt
    said.away(AWAY_AFTER_S / 2)
    assert said.state.in_doubt
    said.state.answered()
    assert not said.state.in_doubt
    said.away(AWAY_AFTER_S / 2)
    assert said.lines() == []


def test_a_broker_that_comes_and_goes_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Ten minutes of it: a warning a minute at most, and "is back" only where its absence was told."""
    said = Said(caplog)
    for _ in range(10):
        for _ in range(6):
            said.away(5)
            said.state.answered()
            said.now_s += 5
    lines = said.lines()
    assert lines == ["kafka:9092 does not", "kafka:9092 is back"] * (len(lines) // 2)
    assert 10 <= len(lines) // 2 <= 600 / WARN_EVERY_S


def test_an_absence_without_a_reason_has_no_empty_parentheses(caplog: pytest.LogCaptureFixture) -> None:
    """Where only the consequence was heard the warning names no reason, nor the one of an earlier absence."""
    said = Said(caplog)
    said.away(5, KafkaError._ALL_BROKERS_DOWN)
    said.state.answered()
    said.now_s += WARN_EVERY_S
    said.away(5)
    said.state.answered()
    said.now_s += WARN_EVERY_S
    said.away(5, KafkaError._ALL_BROKERS_DOWN)
    told = [record.getMessage() for record in caplog.records if "does not answer" in record.getMessage()]
    assert [line.partition("does not answer")[2].partition(":")[0] for line in told] == ["", " (_TRANSPORT)", ""]


def test_an_unavailable_broker_is_told_by_what_to_do() -> None:
    """A broker that refuses the user asks for another look at user and password, not for a start."""
    state = Connectivity("kafka:9092")
    assert str(state.unavailable(2)).endswith("within 2 s: start it, or check bootstrap.servers")
    state.heard(KafkaError(KafkaError._AUTHENTICATION))
    assert str(state.unavailable(2)).endswith("(_AUTHENTICATION): check sasl.username and sasl.password")


def test_hours_of_absence_are_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Away for an hour: said at the beginning and at the end."""
    said = Said(caplog)
    said.away(3_600)
    said.state.answered()
    assert said.lines() == ["kafka:9092 does not", "kafka:9092 is back"]


def test_a_wrong_password_and_a_client_that_is_lost_are_said(caplog: pytest.LogCaptureFixture) -> None:
    """A broker that answers but does not let the client in is not called away; a fatal error is an error."""
    said = Said(caplog)
    for _ in range(5):
        said.state.heard(KafkaError(KafkaError._AUTHENTICATION))
    said.state.heard(KafkaError(KafkaError._FATAL, "fenced", True))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "the broker at kafka:9092 does not accept this user or this password"),
        ("ERROR", "the Kafka client has failed and must be opened anew: _FATAL"),
    ]


def test_clients_of_one_broker_share_what_is_known_and_forget_it_after_them() -> None:
    """The table of brokers holds those that have clients."""
    first = connectivity.connectivity_of("one:1")
    assert connectivity.connectivity_of("one:1") is first
    assert connectivity.connectivity_of("two:1") is not first
    del first
    assert "one:1" not in connectivity._shared


def test_librdkafka_s_own_lines_are_for_those_who_ask(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """At level DEBUG of their logger they are there, for an operator who looks for the reason."""
    caplog.set_level(logging.DEBUG, "memsluice.client.librdkafka")
    _, credential = keys(tmp_path)
    options = WriterOptions(check_seconds=None, delivery_seconds=1)
    with MemoryWriter({"bootstrap.servers": "127.0.0.1:9"}, credential, options) as writer:
        writer.write(session(), "x").exception(HANG_S)
        lines = until(
            lambda: [record for record in caplog.records if record.name == "memsluice.client.librdkafka"],
            "a line of librdkafka's",
        )
    assert {record.levelno for record in lines} == {logging.DEBUG}
