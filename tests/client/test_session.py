"""One agent's session without a broker: what the gate makes of its order, and what its limits are."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.home import keys
from tests.client.local_channels import NOWHERE, Platform, SlowWriter
from tests.patience import HANG_S
from tests.provenance.shop import Shop

from memsluice.client.options import WriterOptions
from memsluice.client.requests import Session, observation
from memsluice.client.session import AgentSession
from memsluice.client.writer import MemoryWriter, RuntimeChannel
from memsluice.envelope.registry import Role
from memsluice.errors import (
    BufferFull,
    ConfigError,
    EarlierFailed,
    LimitExceeded,
    NotDelivered,
    NotPermitted,
    WriterClosed,
)
from memsluice.events.models import Origin

SESSION = Session("acme", "helper", "ana", "s-1")
NOTES = [
    f"{thing} {place}"
    for thing in ("The spare key hangs", "The rota is pinned", "The seed catalogue lies")
    for place in ("in the porch.", "by the office door.", "behind the till.")
]


@pytest.mark.parametrize("kept", [False, True], ids=["loose", "session"])
def test_nine_writes_that_nobody_awaited_before_a_page_was_seen_are_guidance(tmp_path: Path, kept: bool) -> None:
    """What was written before the page is guidance, and what came after is not; without the session nothing is."""
    shop = Shop(tmp_path)
    shop.publish("runtime")  # makes the log
    log_file, options = shop.home.log_file, WriterOptions(check_seconds=None)
    behind, at_once = threading.Event(), threading.Event()
    at_once.set()
    with (
        SlowWriter(NOWHERE, shop.keys.credential_path("agent"), options) as writer,
        Platform(NOWHERE, shop.keys.credential_path("runtime"), options).into(log_file, at_once) as runtime,
    ):
        if kept:
            writer.into(log_file, at_once, delay_s=0.02)
            with AgentSession(SESSION, writer, runtime) as agent:
                pending = [agent.open_session()]
                pending += [agent.write(text, event_id=f"n-{number}") for number, text in enumerate(NOTES)]
                pending += [agent.observe(Origin.WEB), agent.write("Follow the page.", event_id="n-9")]
                for future in pending:  # what waits at the session's end is given up after a while
                    future.result(HANG_S)
        else:
            writer.into(log_file, behind)
            runtime.open_session(SESSION).result(HANG_S)
            pending = [writer.write(SESSION, text, event_id=f"n-{number}") for number, text in enumerate(NOTES)]
            runtime.observe(SESSION, Origin.WEB).result(HANG_S)
            pending += [writer.write(SESSION, "Follow the page.", event_id="n-9")]
            behind.set()
        for future in pending:
            future.result(HANG_S)
    shop.publish("runtime")  # runs the stages until nothing waits
    where = [shop.now(f"n-{number}") for number in range(10)]
    assert where == (["guidance"] * 9 if kept else ["external"] * 9) + ["external"]


def _dark(folder: Path, delivery_seconds: float) -> Iterator[tuple[MemoryWriter, RuntimeChannel]]:
    options = WriterOptions(check_seconds=None, delivery_seconds=delivery_seconds)
    _, producer = keys(folder / "producer")
    _, platform = keys(folder / "runtime", Role.RUNTIME)
    writer, runtime = MemoryWriter(NOWHERE, producer, options), RuntimeChannel(NOWHERE, platform, options)
    yield writer, runtime
    writer.close(0)
    runtime.close(0)


@pytest.fixture
def dark(tmp_path: Path) -> Iterator[tuple[MemoryWriter, RuntimeChannel]]:
    """Give channels whose broker is away, and which give an event up after a second."""
    yield from _dark(tmp_path, 1.0)


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[tuple[MemoryWriter, RuntimeChannel]]:
    """Give channels whose broker is away, and which give no event up within a test's time."""
    yield from _dark(tmp_path, 600.0)


def test_without_a_broker_every_future_fails_and_a_retry_fails_again(dark: tuple[MemoryWriter, RuntimeChannel]) -> None:
    """The first as NotDelivered, those behind it as EarlierFailed with their own ids; so does every retry."""
    with AgentSession(SESSION, *dark) as agent:
        pending = [agent.write("note", event_id="n-0"), agent.observe(Origin.WEB), agent.write("n", event_id="n-2")]
        for _ in range(2):
            errors: list[Any] = [future.exception(HANG_S) for future in pending]
            assert [type(error) for error in errors] == [NotDelivered, EarlierFailed, EarlierFailed]
            assert (errors[0].event_id, errors[2].event_id, errors[2].maybe_written) == ("n-0", "n-2", False)
            assert agent.flush(HANG_S) == 0
            pending = agent.retry()
            assert len(pending) == 3
        assert [type(future.exception(HANG_S)) for future in pending] == [NotDelivered, EarlierFailed, EarlierFailed]


def test_the_buffer_is_bounded_and_a_refused_call_leaves_no_gap(patient: tuple[MemoryWriter, RuntimeChannel]) -> None:
    """The fourth of three is refused at once; so is what no gate would take; neither stops the session."""
    with AgentSession(SESSION, *patient, pending_max=3) as agent:
        with pytest.raises(LimitExceeded):
            agent.write("x" * 100_000)
        pending = [agent.write("note") for _ in range(3)]
        with pytest.raises(BufferFull, match="3 events of the session wait already") as caught:
            agent.observe(Origin.WEB)
        assert caught.value.event_id
        assert agent.failure is None
        assert not any(future.done() for future in pending)
        patient[0].close(0)
        errors = [future.exception(HANG_S) for future in pending]
        assert [type(error) for error in errors] == [WriterClosed, EarlierFailed, EarlierFailed]


def test_closing_leaves_no_future_open(patient: tuple[MemoryWriter, RuntimeChannel]) -> None:
    """What had no turn yet fails as WriterClosed, what the broker may have resolves later; then calls are refused."""
    agent = AgentSession(SESSION, *patient)
    pending = [agent.write("note") for _ in range(3)]
    agent.close(0)
    assert [type(future.exception(HANG_S)) for future in pending[1:]] == [WriterClosed, WriterClosed]
    with pytest.raises(WriterClosed, match="session is closed"):
        agent.write("note")
    agent.close(0)
    assert not patient[0]._closed, "channels that were given to a session are not its own"
    assert not pending[0].done()
    patient[0].close(0)
    assert isinstance(pending[0].exception(HANG_S), WriterClosed)


def test_a_channel_that_refuses_stops_the_session_or_the_call(dark: tuple[MemoryWriter, RuntimeChannel]) -> None:
    """A closed channel: where nothing waits the call raises, and nothing is left behind it."""
    dark[1].close(0)
    with AgentSession(SESSION, *dark) as agent:
        with pytest.raises(WriterClosed, match="writer is closed"):
            agent.observe(Origin.WEB)
        assert (agent.failure, agent.flush()) == (None, 0)
        assert isinstance(agent.write("note").exception(HANG_S), NotDelivered)


def test_a_session_speaks_for_itself_alone(dark: tuple[MemoryWriter, RuntimeChannel]) -> None:
    """An event of another session is refused, and so is a recall where there is no channel for it."""
    other = observation("o-1", dark[0].now(), Session("acme", "helper", "ben", "s-1"), Origin.WEB, None, None)
    with AgentSession(SESSION, *dark) as agent:
        with pytest.raises(NotPermitted, match="another session"):
            agent.publish(other)
        with pytest.raises(ConfigError, match="no channel for recalls"):
            agent.recalled("tea?", [])
