"""One agent's session keeps the order of its calls, on the real broker, over slow, closed and broken roads."""

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.client.home import keys, reading
from tests.client.road import Road
from tests.patience import HANG_S

from memsluice.client.aio import AsyncAgentSession, AsyncMemoryWriter, AsyncRuntimeChannel
from memsluice.client.options import WriterOptions
from memsluice.client.publisher import Receipt
from memsluice.client.requests import Session
from memsluice.client.session import AgentSession
from memsluice.client.writer import MemoryWriter, RecallChannel, RuntimeChannel
from memsluice.envelope import dsse
from memsluice.envelope.registry import Role
from memsluice.errors import EarlierFailed, NotDelivered
from memsluice.events import cloudevent
from memsluice.events.models import Origin, parse_payload
from memsluice.events.partition import partition_of
from memsluice.topics.names import EVENTS, PARTITIONS

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("unhurried")]
ROLES = {"producer": Role.PRODUCER, "reader": Role.READER, "runtime": Role.RUNTIME}


@dataclass(frozen=True)
class Town:
    """The three channels of a platform, each on a road of its own."""

    writer: MemoryWriter
    runtime: RuntimeChannel
    recalls: RecallChannel
    roads: dict[str, Road]
    files: dict[str, Path]


@contextmanager
def built(stack: Any, folder: Path, delivery_seconds: float) -> Iterator[Town]:
    """Give channels; writes fail after so many seconds without a broker, what the other two publish waits longer."""
    with ExitStack() as closing:
        roads = {user: closing.enter_context(Road(stack.connection.bootstrap)) for user in ROLES}
        files = {user: keys(folder / user, role)[1] for user, role in ROLES.items()}

        def channel(kind: Any, user: str) -> Any:
            options = WriterOptions(delivery_seconds=delivery_seconds if kind is MemoryWriter else 2.0 * HANG_S)
            settings = roads[user].of(stack.connection.confluent(user))
            return closing.enter_context(kind(settings, files[user], options))

        yield Town(
            channel(MemoryWriter, "producer"), channel(RuntimeChannel, "runtime"), channel(RecallChannel, "reader"),
            roads, files,
        )  # fmt: skip


@pytest.fixture
def town(stack: Any, tmp_path: Path) -> Iterator[Town]:
    """Give channels whose writes fail after ten seconds without a broker."""
    with built(stack, tmp_path, 10.0) as town:
        yield town


@pytest.fixture
def patient(stack: Any, tmp_path: Path) -> Iterator[Town]:
    """Give channels whose events do not fail because a road is closed or the machine is busy."""
    with built(stack, tmp_path, 2.0 * HANG_S) as town:
        yield town


def somebody() -> Session:
    """Return a session that no other test uses."""
    return Session(f"t-{uuid4().hex[:12]}", "assistant", "ada", "s-1")


def logged(stack: Any, session: Session) -> list[str]:
    """Return the ids of a session's events as they lie on its partition, from the broker's own log."""
    from confluent_kafka import TopicPartition

    partition = partition_of(session.tenant, PARTITIONS)
    found = []
    with reading(stack.connection) as consumer:
        low, end = consumer.get_watermark_offsets(TopicPartition(EVENTS, partition), timeout=HANG_S)
        consumer.assign([TopicPartition(EVENTS, partition, low)])
        offset = low
        while offset < end:
            for message in consumer.consume(500, timeout=1.0):
                assert message.error() is None
                offset = message.offset() + 1
                if message.key() != session.tenant.encode():
                    continue
                event = cloudevent.read(message.key(), message.value(), tuple(message.headers()))
                payload = parse_payload(event.type, dsse.parse(event.envelope).payload)
                if payload.session == session.session:  # type: ignore[union-attr]
                    found.append(payload.id)
    return found


def retried(agent: AgentSession) -> tuple[list[Receipt], int]:
    """Retry as an application does, until the log has all, and return how often: a broker may be late once more."""
    deadline, receipts, tries = time.monotonic() + 2 * HANG_S, list[Receipt](), 0
    while tries == 0 or agent.failure is not None:
        assert time.monotonic() < deadline, agent.failure
        pending, tries = agent.retry(), tries + 1
        receipts += [future.result() for future in pending if future.exception(HANG_S) is None]
    return receipts, tries


def offsets(pending: list["Future[Receipt]"]) -> list[int]:
    """Return where acknowledged events lie."""
    return [future.result(HANG_S).offset for future in pending]


def test_without_a_session_object_a_slow_writer_is_overtaken_and_with_one_it_is_not(patient: Town) -> None:
    """Nine writes that nobody awaits, then an observation: it lies behind them all, though its own road is open."""
    patient.roads["producer"].close_for_now()
    session = somebody()
    loose = [patient.writer.write(session, f"note {number}") for number in range(9)]
    overtaking = patient.runtime.observe(session, Origin.WEB).result(HANG_S)
    patient.roads["producer"].let_pass()
    assert overtaking.offset < offsets(loose)[0], "the fault that the session object is against"
    with AgentSession(somebody(), patient.writer, patient.runtime) as agent:
        opened = agent.open_session()
        patient.roads["producer"].close_for_now()
        notes = [agent.write(f"note {number}") for number in range(9)]
        seen = agent.observe(Origin.WEB)
        assert not seen.done(), "no call waited"
        patient.roads["producer"].let_pass()
        lie = offsets([opened, *notes, seen])
    assert lie == sorted(lie)


def test_many_sessions_under_load_on_roads_that_open_and_close(stack: Any, patient: Town) -> None:
    """Four sessions on the same three channels, eighty calls each of all kinds: each lies in the order of its calls."""
    sessions = [somebody() for _ in range(4)]
    ended = threading.Event()

    def roadworks() -> None:
        chance = random.Random(17)
        while not ended.is_set():
            road = patient.roads[chance.choice(sorted(patient.roads))]
            road.close_for_now()
            time.sleep(chance.random() * 0.2)
            road.let_pass()
            time.sleep(chance.random() * 0.1)

    def call(agent: AgentSession, chance: random.Random) -> "list[Future[Receipt]]":
        kinds = (lambda: agent.write("note"), lambda: agent.observe(Origin.TOOL), lambda: agent.recalled("tea?", []))
        return [chance.choice(kinds)() for _ in range(80)]

    worker = threading.Thread(target=roadworks)
    worker.start()
    try:
        with ExitStack() as closing:
            agents = [
                closing.enter_context(AgentSession(one, patient.writer, patient.runtime, patient.recalls))
                for one in sessions
            ]
            pending = [call(agent, random.Random(number)) for number, agent in enumerate(agents)]
            receipts = [[future.result(2 * HANG_S) for future in of_one] for of_one in pending]
    finally:
        ended.set()
        worker.join()
    for session, of_one in zip(sessions, receipts, strict=True):
        assert logged(stack, session) == [receipt.event_id for receipt in of_one]


def test_a_failure_holds_back_what_was_called_later_until_it_is_retried(stack: Any, town: Town) -> None:
    """The writer's road is cut: what follows fails without being published; a retry publishes all in their order."""
    session = somebody()
    with AgentSession(session, town.writer, town.runtime) as agent:
        first = agent.open_session().result(HANG_S)
        town.roads["producer"].cut()
        note = agent.write("a note", event_id="note")
        later = [agent.observe(Origin.WEB), agent.write("another", event_id="another")]
        assert isinstance(note.exception(HANG_S), NotDelivered)
        held_back = [future.exception(HANG_S) for future in later]
        assert [type(error) for error in held_back] == [EarlierFailed, EarlierFailed]
        assert agent.failure is note.exception()
        with pytest.raises(EarlierFailed, match=r"retry\(\)"):
            agent.observe(Origin.TOOL)
        assert logged(stack, session) == [first.event_id]
        town.roads["producer"].mend()
        again, tries = retried(agent)
        assert agent.failure is None
        last = agent.observe(Origin.TOOL).result(HANG_S)
    ids = [first.event_id, "note", held_back[0].event_id, "another", last.event_id]  # type: ignore[union-attr]
    assert [first.event_id, *(receipt.event_id for receipt in again), last.event_id] == ids
    found = logged(stack, session)
    assert found == ids or (tries > 1 and list(dict.fromkeys(found)) == ids), (
        "what is retried twice may lie there twice"
    )


def test_an_event_that_arrives_after_it_was_given_up_overtakes_nothing(stack: Any, town: Town) -> None:
    """A write waits on a closed road until it is given up, and is retried: whatever arrives, nothing lies before it."""
    session = somebody()
    with AgentSession(session, town.writer, town.runtime) as agent:
        agent.open_session().result(HANG_S)
        town.roads["producer"].close_for_now()
        note, seen = agent.write("a note", event_id="note"), agent.observe(Origin.WEB)
        problem = note.exception(HANG_S)
        assert isinstance(problem, NotDelivered)
        assert problem.maybe_written
        assert isinstance(seen.exception(HANG_S), EarlierFailed)
        town.roads["producer"].let_pass()
        receipts, _ = retried(agent)
    ids = logged(stack, session)[1:]
    assert ids[-1] == receipts[1].event_id
    assert set(ids[:-1]) == {"note"}, "once, or more often: the gate knows it for a duplicate"


def test_a_process_that_ends_without_closing_publishes_what_it_called(stack: Any, patient: Town) -> None:
    """The interpreter's end waits for the calls of a session as it does for those of a writer."""
    session = somebody()
    connection = patient.files["producer"].with_name("connection.json")
    stack.connection.save(connection)
    code = f"""if True:
        from memsluice import AgentSession, Connection, MemoryWriter, Origin, RuntimeChannel, Session, WriterOptions
        from memsluice.client import publisher, session
        publisher.EXIT_FLUSH_SECONDS = session.EXIT_FLUSH_SECONDS = {HANG_S}  # forty round trips on a busy machine
        options = WriterOptions(check_seconds={HANG_S}, delivery_seconds={HANG_S})
        import pathlib
        connection = Connection.from_file(pathlib.Path({str(connection)!r}))
        writer = MemoryWriter(connection.confluent("producer"), {str(patient.files["producer"])!r}, options)
        runtime = RuntimeChannel(connection.confluent("runtime"), {str(patient.files["runtime"])!r}, options)
        agent = AgentSession({session!r}, writer, runtime)
        for number in range(20):
            agent.write("note", event_id=f"note-{{number}}")
            agent.observe(Origin.TOOL)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = logged(stack, session)
    assert len(found) == 40
    assert found[::2] == [f"note-{number}" for number in range(20)]


def test_asyncio_calls_keep_their_order_whichever_is_awaited_first(stack: Any, patient: Town) -> None:
    """Fifty calls gathered in reverse, one cancelled: the log has them all, in the order of the calls."""
    session = somebody()

    async def run() -> list[str]:
        connection, ids = stack.connection, [f"e-{number}" for number in range(50)]
        async with (
            await AsyncMemoryWriter.open(connection.confluent("producer"), patient.files["producer"]) as writer,
            await AsyncRuntimeChannel.open(connection.confluent("runtime"), patient.files["runtime"]) as runtime,
            AsyncAgentSession(session, writer, runtime) as agent,
        ):
            calls = [agent.write("note", event_id=ids[0]), agent.observe(Origin.SKILL)]
            calls += [agent.write("note", event_id=name) for name in ids[1:]]
            calls[3].cancel()
            receipts = await asyncio.gather(*reversed(calls), return_exceptions=True)
            assert sum(isinstance(one, asyncio.CancelledError) for one in receipts) == 1
            assert await agent.flush(HANG_S) == 0
        return ids

    ids = asyncio.run(run())
    found = logged(stack, session)
    assert [found[0], *found[2:]] == ids
