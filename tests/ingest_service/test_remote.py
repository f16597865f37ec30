"""A memory in a process that has neither broker nor key of the gate: two services, and the same promises."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import httpx
import pytest
from tests.ingest_service.place import FREE, Place, Service, served
from tests.memory.conftest import ORDER, heard_at_once
from tests.patience import HANG_S

from memsluice import Origin, Session
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.errors import (
    InvalidArgument,
    LandingUnknown,
    MalformedEvent,
    NotDelivered,
    NotPermitted,
    WriteHeld,
    WriterClosed,
)
from memsluice.keystore.store import issue_credential
from memsluice.memory import remote as remotes
from memsluice.memory.memory import Memory
from memsluice.memory.outcome import Status
from memsluice.memory.remote import RemoteGate
from memsluice.recall.recaller import Recaller
from memsluice.recall_service.app import Serving, application
from memsluice.telemetry.meters import Meters


class InItsThread:
    """The gate's recaller, asked in the thread that it belongs to."""

    def __init__(self, place: Place) -> None:
        self._gate = place.gate

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **more: self._gate.reading(lambda recaller: getattr(recaller, name)(*args, **more))


@pytest.fixture
def remote(service: Service, place: Place) -> Iterator[RemoteGate]:
    """Give a gate over both services."""
    keys = place.keys
    reader = keys.credential(issue_credential(keys, Role.READER, "agent", ["acme"])[0].kid)
    keys.refresh()
    recaller = cast(Recaller, InItsThread(place))
    with served(application(Serving(recaller, keys.keyring, keys.registry, Meters(), wall_ms, FREE))) as recall:
        gate = RemoteGate(
            "acme", ingest=service.url, recall=recall, writer=place.ours, runtime=place.platform, reader=reader
        )
        yield gate
        gate.close()


def test_a_memory_over_http_keeps_its_promises(remote, service) -> None:
    """A write can be read back once it returns, by question, by key and in a list; a held one raises; what was seen
    taints; said again it is written once."""
    memory = Memory(remote, Session("acme", "assistant", "ben", "b1"), timeout_s=HANG_S)
    done = memory.write("Ben drinks cocoa.", key="drink", event_id="cocoa")
    assert (done.status, done.place[0]) == (Status.LANDED, "memory.events.v1")
    assert [one.content for one in memory.search("What does Ben drink?").entries] == ["Ben drinks cocoa."]
    assert memory.read(["drink", "nothing"])["drink"].admission.object_id == done.object_id
    assert memory.write("Ben drinks cocoa.", key="drink", event_id="cocoa").status is Status.LANDED
    assert [one.content for one in memory.every().entries] == ["Ben drinks cocoa."]
    with pytest.raises(WriteHeld) as caught:
        memory.write(ORDER)
    assert "wording.held" in caught.value.reasons
    memory.observe(Origin.WEB, content="a page")
    with pytest.raises(WriteHeld, match="outside data"):
        memory.write("The mill is cheapest.")
    assert remote.waiting._expected == {}


def test_while_the_broker_is_away_nothing_is_remembered(remote, service) -> None:
    """The service's 503 is NotDelivered, and the same write lands once it is back."""
    memory = Memory(remote, Session("acme", "assistant", "cem", "c1"), timeout_s=HANG_S)
    memory.observe(Origin.TOOL)
    service.fails = NotDelivered("gone", event_id="e", maybe_written=True)
    with pytest.raises(NotDelivered, match="acknowledged") as caught:
        memory.write("Cem plays chess.", event_id="chess")
    assert caught.value.maybe_written
    service.fails = None
    with pytest.raises(WriteHeld, match="outside data"):
        memory.write("Cem plays chess.", event_id="chess")


def test_silence_is_told_as_silence(remote, service, monkeypatch) -> None:
    """Where the gate does not decide in time nothing is claimed, and saying it again under the id is safe."""
    memory = Memory(remote, Session("acme", "assistant", "dan", "d1"), timeout_s=HANG_S)
    memory.write("Dan sings.")
    heard_at_once(remote, monkeypatch)
    service.waits, memory._timeout_s = True, 1.0
    with pytest.raises(LandingUnknown, match="no verdict, or no landing, was heard"):
        memory.write("Dan paints.", event_id="paints")
    service.decide()
    memory._timeout_s = HANG_S
    assert memory.write("Dan paints.", event_id="paints").status is Status.LANDED


def test_what_the_gate_would_not_take_is_raised(remote, service, place) -> None:
    """Another's agent or a recall is refused before anything is sent; a closed gate sends nothing."""
    only = place.keys.credential(
        issue_credential(place.keys, Role.PRODUCER, "agent", ["acme"], agents=["assistant"])[0].kid
    )
    place.keys.refresh()
    narrow = RemoteGate(
        "acme", ingest=service.url, recall=service.url, writer=only, runtime=place.platform, reader=only
    )
    with pytest.raises(NotPermitted, match="agent"):
        Memory(narrow, Session("acme", "spy", "eva", "e1")).write("Eva sings.")
    narrow.close()
    with pytest.raises(WriterClosed):
        Memory(narrow, Session("acme", "assistant", "eva", "e1")).write("Eva sings.")
    with pytest.raises(InvalidArgument, match="https"):
        RemoteGate("acme", ingest="gate", recall="gate", writer=only, runtime=only, reader=only)


def test_an_id_that_said_something_else_is_refused_for_good(remote) -> None:
    """The service's 422 is no doubt about whether the log has it: the id has to be another one."""
    memory = Memory(remote, Session("acme", "assistant", "fay", "f1"), timeout_s=HANG_S)
    memory.write("Fay sings.", event_id="fay")
    with pytest.raises(MalformedEvent, match="something else"):
        memory.write("Fay paints.", event_id="fay")


def test_a_write_that_nobody_decides_takes_no_others_turn(remote, place, monkeypatch) -> None:
    """With one question at a time, one that stays open is asked again behind the others'."""
    said = {"place": None, "reasons": [], "object_id": None, "version": None}
    status = {"undecided": "accepted", "decided": "held"}
    monkeypatch.setattr(remote, "_hearers", ThreadPoolExecutor(1))
    monkeypatch.setattr(
        remote, "_asked", lambda _method, _path, _credential, name, *_: {**said, "id": name, "status": status[name]}
    )
    heard = [remote.waiting.expect(name) for name in status]
    for name in status:
        remote._hearers.submit(remote._hear, name, f"/{name}?", place.ours)
    assert heard[1].result(HANG_S).status is Status.HELD
    assert not heard[0].done()
    remote.waiting.forget("undecided")


def test_what_is_over_the_quota_is_sent_again(remote, monkeypatch) -> None:
    """The service's 429 says when to come again, and is no failure before that could help; a closed gate waits not."""
    monkeypatch.setattr(remotes, "AGAIN_S", 0.01)
    answers = [httpx.Response(429, headers={"retry-after": said}) for said in ("0", "soon", "3600")]
    place = {"topic": "t", "partition": 0, "offset": 7}
    answers.insert(2, httpx.Response(202, json={"url": "/v1/events/e?tenant=acme", "place": place}))
    monkeypatch.setattr(
        remote, "_client", httpx.Client(base_url="http://gate", transport=httpx.MockTransport(lambda _: answers.pop(0)))
    )
    memory = Memory(remote, Session("acme", "assistant", "gus", "g1"), opens=False, timeout_s=HANG_S)
    assert memory.observe(Origin.WEB).offset == 7
    with pytest.raises(NotDelivered) as caught:
        memory.observe(Origin.WEB)
    assert (answers, caught.value.maybe_written) == ([], False)
