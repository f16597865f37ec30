"""One session's memory on the embedded gate: what it promises to every adapter."""

import os
import threading
from concurrent.futures import Future
from contextlib import suppress

import pytest
from tests.memory.conftest import ADA, ORDER
from tests.patience import HANG_S

from memsluice import Origin, Recall, Session
from memsluice.envelope.seals import sealed_from_bytes
from memsluice.errors import (
    BatchNotRemembered,
    ConfigError,
    InvalidArgument,
    LandedElsewhere,
    LandingUnknown,
    LimitExceeded,
    NotDelivered,
    StateError,
    StoreUnavailable,
    WriteHeld,
    WriterClosed,
    WriteRefused,
)
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.memory.embedded import EmbeddedGate
from memsluice.memory.memory import BY_NAME, Entry, Memory
from memsluice.memory.opening import open_gate
from memsluice.memory.outcome import Status
from memsluice.topics.names import SEALED


def test_what_was_written_can_be_read_back_at_once(memory) -> None:
    """``landed`` means searchable, by question, by key, and in a list."""
    done = memory.write("Ada drinks tea in the morning.", key="drink")
    assert (done.status, done.remembered) == (Status.LANDED, True)
    assert [one.content for one in memory.search("What does Ada drink?").entries] == ["Ada drinks tea in the morning."]
    assert memory.read(["drink", "nothing"])["drink"].admission.object_id == done.object_id
    memory.write("Ada drinks coffee now.", key="drink")
    assert [one.content for one in memory.every().entries] == ["Ada drinks coffee now."]


def test_a_held_write_raises_what_became_of_it(memory) -> None:
    """The error has id, reasons and place, says what to do, and quotes nothing of the content."""
    with pytest.raises(WriteHeld, match="reviewer") as caught:
        memory.write(ORDER, event_id="w-1")
    assert (caught.value.event_id, caught.value.place) == ("w-1", ("memory.events.v1", partition_of("acme", 8), 1))
    assert "wording.held" in caught.value.reasons
    assert "mallory" not in str(caught.value)
    assert "w-1" in str(caught.value)
    assert memory.every().entries == ()


def test_what_landed_under_another_key_is_told_from_a_held_write(memory) -> None:
    """A secret in a key is taken out, so the key is another one: the entry is there, and no reviewer is waited for."""
    with pytest.raises(LandedElsewhere, match="looks like a secret") as caught:
        memory.write("The harbour closes at ten.", key="password: " + "kkTOP" + "SECRET99")
    assert (caught.value.became, caught.value.reasons) == ("landed", ("sensitive.redacted",))
    assert [one.content for one in memory.every().entries] == ["The harbour closes at ten."]


def test_a_refused_write_is_told_from_a_held_one(memory) -> None:
    """Nobody waits for a reviewer where none will be asked."""
    with pytest.raises(WriteRefused, match="longer than the policy allows"):
        memory.write("word " * 3_000)
    with pytest.raises(LimitExceeded):  # what no event can carry was never published
        memory.write("word " * 30_000)


def test_what_the_session_saw_keeps_its_later_writes_out_of_guidance(memory, gate) -> None:
    """The observation is acknowledged before it returns; another session of the same person is not concerned."""
    memory.write("Ada drinks tea.", event_id="before")
    memory.observe(Origin.WEB, content="a page")
    with pytest.raises(WriteHeld, match="outside data") as caught:
        memory.write("The mill is cheapest.")
    assert caught.value.reasons == ("monitor.rule_4_tainted",)
    assert Memory(gate, Session("acme", "assistant", "ada", "t2")).write("Ada lives in Lyon.").remembered
    assert len(memory.every().entries) == 2


def test_an_event_that_is_said_again_is_written_once(memory) -> None:
    """After a timeout a caller says it again under its id, and hears of the first one."""
    memory.write("Ada lives in Lyon.", event_id="home", key="home")
    assert memory.write("Ada lives in Lyon.", event_id="home", key="home").status is Status.LANDED
    for _ in range(2):
        with pytest.raises(WriteHeld):
            memory.write(ORDER, event_id="order")
    assert len(memory.every().entries) == 1


@pytest.mark.parametrize("away", [1, 99])
def test_what_is_said_again_is_unknown_while_the_store_is_away(memory, gate, monkeypatch, away: int) -> None:
    """Only the store tells what lies there: it is asked again until the time is over, and nothing else is raised."""
    memory.write("Ada lives in Lyon.", event_id="home", key="home")
    reading, left = gate.reading, [StoreUnavailable("away")] * away

    def asked(call):
        if left:
            raise left.pop()
        return reading(call)

    monkeypatch.setattr(gate, "reading", asked)
    memory._timeout_s = HANG_S if away == 1 else 2.0
    if away == 1:
        assert memory.write("Ada lives in Lyon.", event_id="home", key="home").status is Status.LANDED
    else:
        with pytest.raises(LandingUnknown):
            memory.write("Ada lives in Lyon.", event_id="home", key="home")


def test_what_is_said_again_is_not_told_as_kept_once_another_took_its_place(memory) -> None:
    """Its first one landed, and a later write replaced it: nobody can read what it says."""
    memory.write("Ada lives in Lyon.", event_id="home", key="home")
    memory.write("Ada lives in Nice.", key="home")
    with pytest.raises(WriteHeld, match="decided before under this id"):
        memory.write("Ada lives in Lyon.", event_id="home", key="home")
    assert memory.read(["home"])["home"].content == "Ada lives in Nice."


def test_a_batch_publishes_all_and_raises_once_with_every_result(memory) -> None:
    """One bad entry takes no other with it, and none of them is told as another's result."""
    with pytest.raises(BatchNotRemembered, match="2 of 4") as caught:
        memory.write_all([Entry("Ada likes plums."), Entry(ORDER), Entry("x" * 99_999), Entry("Ada has a cat.")])
    kinds = [getattr(one, "status", type(one)) for one in caught.value.results]
    assert kinds == [Status.LANDED, WriteHeld, LimitExceeded, Status.LANDED]
    assert {one.content for one in memory.every().entries} == {"Ada likes plums.", "Ada has a cat."}
    assert [one.status for one in memory.write_all([Entry("a b", {"key": "k"}), Entry("c d", {"key": "k"})])] == [
        Status.LANDED, Status.LANDED,
    ]  # fmt: skip
    assert memory.read(["k"])["k"].content == "c d"
    assert len(memory.write_all(Entry(text) for text in ("Ada reads.", "Ada rows."))) == 2


def test_one_persons_memory_is_not_anothers(memory, gate) -> None:
    """Neither by question, nor by key, nor in a list."""
    memory.write("Ada's door code is on the blue card.", key="door")
    ben = Memory(gate, Session("acme", "assistant", "ben", "t9"))
    assert ben.search("What is Ada's door code?").entries == ()
    assert (ben.read(["door"]), ben.every().entries) == ({}, ())


def test_looking_up_is_published_as_no_question(memory, gate) -> None:
    """A recall by name is an event, so that what was read taints; detectors learn from vectors, and it has none."""
    memory.write("Ada drinks tea.", key="drink")
    memory.read(["drink"])
    memory.every()
    memory.search("What does Ada drink?")
    sealed = gate._own.run(lambda: list(gate._runtime.read(SEALED)))
    every = [sealed_from_bytes(gate.waiting._keys(), "acme", one.value or b"") for one in sealed]
    asked = [one for one in every if isinstance(one.payload, Recall)]
    assert [(one.payload.named, one.payload.question, one.vector_text is None) for one in asked] == [
        (True, BY_NAME, True), (True, BY_NAME, True), (False, "What does Ada drink?", False),
    ]  # fmt: skip
    assert all(one.payload.returned for one in asked)


def test_silence_is_told_as_silence(gate, monkeypatch) -> None:
    """Where no verdict comes in time nothing is claimed, nobody waits on, and saying it again under the id is safe."""
    memory = Memory(gate, ADA, timeout_s=0.2)
    memory.write("Ada drinks tea.")
    with monkeypatch.context() as deaf:
        deaf.setattr(gate.waiting, "_settle", lambda name, outcome: None)
        with pytest.raises(LandingUnknown, match="no verdict, or no landing, was heard") as caught:
            memory.write("Ada lives in Lyon.", event_id="home")
    assert caught.value.event_id == "home"
    assert gate.waiting._expected == {}


def test_an_event_that_was_not_acknowledged_raises_that(memory, gate, monkeypatch) -> None:
    """Then nothing was remembered, and the producer's own error says so; nobody waits for a verdict."""
    memory.write("Ada drinks tea.")
    lost: Future[object] = Future()
    lost.set_exception(NotDelivered("no broker", event_id="e"))
    monkeypatch.setattr(gate, "publish", lambda session, event: lost)
    with pytest.raises(NotDelivered):
        memory.write("Ada lives in Lyon.")
    with pytest.raises(NotDelivered):
        memory.observe(Origin.WEB)
    with pytest.raises(NotDelivered):
        memory.search("What does Ada drink?")
    assert gate.waiting._expected == {}


def test_a_log_that_says_nothing_is_told_as_one(memory, gate, monkeypatch) -> None:
    """Of observations, recalls and openings, too: the caller's error is one of ours, and may be said again."""
    memory.write("Ada drinks tea.")
    quick = Memory(gate, ADA, timeout_s=0.05)
    monkeypatch.setattr(gate, "publish", lambda session, event: Future())
    for call in (lambda: quick.write("x y"), lambda: quick.observe(Origin.WEB), lambda: quick.search("What?")):
        with pytest.raises(NotDelivered, match="not acknowledged") as caught:
            call()
        assert caught.value.maybe_written
    memory._timeout_s = 0.05
    with pytest.raises(LandingUnknown, match="has not acknowledged"):
        memory.write("Ada lives in Lyon.")


def test_a_session_whose_opening_failed_is_opened_again(gate, monkeypatch) -> None:
    """A session that the log never opened is not clean: the next call opens it before it writes."""
    memory, publish = Memory(gate, ADA), gate.publish
    lost: Future[object] = Future()
    lost.set_exception(NotDelivered("no broker", event_id="e"))
    monkeypatch.setattr(gate, "publish", lambda session, event: lost)
    with pytest.raises(NotDelivered):
        memory.write("Ada lives in Lyon.")
    monkeypatch.setattr(gate, "publish", publish)
    assert memory.write("Ada lives in Lyon.").remembered


def test_two_events_never_have_one_id(gate) -> None:
    """Said at the same time with other words, the second is refused; said afterwards, the gate holds it."""
    memory, found = Memory(gate, ADA, timeout_s=HANG_S), list[object]()
    barrier = threading.Barrier(2)

    def write(city: str) -> None:
        barrier.wait()
        try:
            found.append(memory.write(f"Ada lives in {city}.", event_id="home").status)
        except (InvalidArgument, WriteHeld) as error:
            found.append(type(error))

    threads = [threading.Thread(target=write, args=(city,)) for city in ("Lyon", "Rome")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Status.LANDED in found
    assert {InvalidArgument, WriteHeld} & set(found)
    assert len(memory.every().entries) == 1


def test_an_event_of_another_place_is_asked_after_there(memory) -> None:
    """A duplicate of a session's own entry, another namespace's, or one to be shared is told by what lies there."""
    for options in ({"visibility": "session"}, {"namespace": "notes"}, {"visibility": "shared", "key": "home"}):
        said = {"event_id": "-".join(options.values()), **options}
        for _ in range(2):
            assert memory.write("Ada lives in Lyon.", **said).status is Status.LANDED
        memory._gate.waiting._told.clear()  # as in another process
        assert memory.write("Ada lives in Lyon.", **said).status is Status.LANDED


def test_what_an_unopened_session_writes_is_remembered_as_outside_data(gate) -> None:
    """Where the caller asks for that: it is read back as data, is no guidance, and said again it is known."""
    memory = Memory(gate, ADA, opens=False, zone=Zone.EXTERNAL)
    for _ in range(2):
        assert memory.write("Ada lives in Lyon.", key="home", event_id="w-1").status is Status.CONTAINED
        gate.waiting._told.clear()  # as in another process
    assert memory.read(["home"])["home"].content == "Ada lives in Lyon."
    assert (memory.every().as_data, len(memory.search("Where does Ada live?").entries)) == (True, 1)
    assert Memory(gate, ADA, opens=False).every().entries == ()
    with pytest.raises(WriteHeld, match="outside data") as caught:
        Memory(gate, ADA, opens=False).write("Ada rows.")
    assert caught.value.became == Status.CONTAINED


def test_one_gate_at_a_time_is_open_on_a_home(gate, tmp_path, encoder) -> None:
    """A second one, of this process or another, would decide on rows that the first one changes: it does not open."""
    with pytest.raises(StateError, match="another embedded gate is open"):
        EmbeddedGate.open_local(tenant="globex", home=tmp_path / "home", encoder=encoder)
    gate.close()
    EmbeddedGate.open_local(tenant="globex", home=tmp_path / "home", encoder=encoder).close()


def test_a_forked_process_is_told_to_open_its_own(memory, gate) -> None:
    """The thread that everything belongs to is not in it: a call must not wait for ever."""
    memory.write("Ada drinks tea.")
    pid = os.fork()
    if pid == 0:
        code = 1
        with suppress(BaseException):
            memory.every()
        try:
            memory.every()
        except WriterClosed:
            code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_what_is_decided_no_more_after_its_append_is_told_as_unsure(memory, gate) -> None:
    """It is in the log: whoever is told of a failure is told, too, that it may still land."""
    memory.write("Ada drinks tea.")
    run = gate._runtime.run_until_idle

    def fails() -> int:
        raise StateError("rows and log disagree")

    gate._runtime.run_until_idle = fails
    with pytest.raises(NotDelivered) as caught:
        memory.write("Ada lives in Lyon.", event_id="home")
    assert caught.value.maybe_written
    gate._runtime.run_until_idle = run
    assert memory.write("Ada lives in Lyon.", event_id="home").status is Status.LANDED


@pytest.mark.parametrize(
    "call",
    [lambda one: one.search("x", k="3"), lambda one: one.search("x", k=0), lambda one: one.search(5),
     lambda one: one.read("k"), lambda one: one.observe(Origin.WEB, content=5), lambda one: one.write_all([5]),
     lambda one: one.write_all("ab")],
)  # fmt: skip
def test_an_argument_of_another_type_is_refused_by_name(memory, call) -> None:
    """An error of ours, before anything is published."""
    with pytest.raises(InvalidArgument, match=r"argument|must be"):
        call(memory)


def test_accepted_returns_without_a_verdict(gate) -> None:
    """Whoever wants no verdict is told where the event lies, and nothing else."""
    done = Memory(gate, ADA, wait="accepted").write(ORDER)
    assert (done.status, done.reasons, done.place[0]) == (Status.ACCEPTED, (), "memory.events.v1")
    assert gate.waiting._expected == {}


def test_many_threads_share_a_memory(gate) -> None:
    """Each is told of its own write."""
    memory, found = Memory(gate, ADA, timeout_s=HANG_S), dict[int, object]()

    def write(number: int) -> None:
        found[number] = memory.write(f"Ada keeps {number} bees.", key=f"k{number}").object_id

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = [f"k{number}" for number in range(12)]
    assert {key: one.admission.object_id for key, one in memory.read(keys).items()} == {
        f"k{number}": where for number, where in found.items()
    }


def test_what_was_killed_in_the_middle_is_decided_at_the_next_start(tmp_path, encoder) -> None:
    """The log is durable: a write that was appended before a crash lands when the home is opened again."""
    home = tmp_path / "home"
    gate = EmbeddedGate.open_local(tenant="acme", home=home, encoder=encoder)
    Memory(gate, ADA).write("Ada drinks tea.")
    gate._own.run(lambda: setattr(gate._runtime, "run_until_idle", lambda: 0))  # as if killed behind the append
    with pytest.raises(LandingUnknown):
        Memory(gate, ADA, timeout_s=0.05).write("Ada lives in Lyon.", event_id="home")
    gate.close()
    again = EmbeddedGate.open_local(tenant="acme", home=home, encoder=encoder)
    assert {one.content for one in Memory(again, ADA).every().entries} == {"Ada drinks tea.", "Ada lives in Lyon."}
    assert Memory(again, ADA).write("Ada lives in Lyon.", event_id="home").status is Status.LANDED
    again.close()
    with pytest.raises(WriterClosed):
        Memory(again, ADA).write("Ada lives in Rome.")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"wait": "soon"}, "wait must be landed or accepted"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"session": Session("globex", "a", "p", "s")}, "another tenant"),
    ],
)
def test_an_argument_that_fits_nothing_is_refused(gate, arguments, why) -> None:
    """At once, and by its name."""
    with pytest.raises(InvalidArgument, match=why):
        Memory(gate, arguments.pop("session", ADA), **arguments)


def test_a_gate_is_the_deployments_or_this_processs(tmp_path, monkeypatch) -> None:
    """Without a deployment it is embedded; who asks for one by name is told what is missing."""
    monkeypatch.delenv("MEMSLUICE_CONNECTION", raising=False)
    monkeypatch.delenv("MEMSLUICE_BOOTSTRAP", raising=False)
    with pytest.raises(ConfigError, match="memsluice stack up"):
        open_gate(tenant="acme", home=tmp_path / "home", mode="stack")
    with pytest.raises(InvalidArgument, match="mode must be"):
        open_gate(tenant="acme", home=tmp_path / "home", mode="both")
    found = open_gate(tenant="acme", home=tmp_path / "home")
    assert isinstance(found, EmbeddedGate)
    found.close()
    found.close()


@pytest.mark.parametrize("variable", ["MEMSLUICE_CONNECTION", "MEMSLUICE_BOOTSTRAP"])
def test_a_deployment_that_is_named_wrongly_is_no_reason_for_another_gate(tmp_path, monkeypatch, variable) -> None:
    """A platform whose connection file is misspelt must not remember on its own disk, under keys that it made."""
    monkeypatch.setenv("MEMSLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(variable, "/nowhere/connection.yaml")
    with pytest.raises(ConfigError):
        open_gate(tenant="acme")
    assert not (tmp_path / "home").exists()


def test_what_is_not_shown_is_not_told_as_returned(memory, gate) -> None:
    """A recall's event names what the session was given, and no more: the rest taints nobody and moves no signal."""
    memory.write("Ada drinks tea.", key="a")
    memory.write("Ada drinks milk.", key="b")
    shown = [
        memory.search("What does Ada drink?", narrow=lambda some: [one for one in some if "tea" in one.content]),
        memory.every(narrow=lambda some: some[:1]),
    ]
    sealed = gate._own.run(lambda: list(gate._runtime.read(SEALED)))
    every = [sealed_from_bytes(gate.waiting._keys(), "acme", one.value or b"").payload for one in sealed]
    told = [[one.object_id for one in asked.returned] for asked in every if isinstance(asked, Recall)]
    assert told == [[one.admission.object_id for one in answer.entries] for answer in shown]
    assert [len(one) for one in told] == [1, 1]
