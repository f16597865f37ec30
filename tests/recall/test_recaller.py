"""Asking: what is published before what is shown, how far is searched, and what is refused."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from tests.client.home import keys
from tests.client.local_channels import NOWHERE, Platform, Recalls, SlowWriter
from tests.stores.build import RING, STRANGER, T0, entry

from memsluice.client.credentials import check
from memsluice.client.options import WriterOptions
from memsluice.client.requests import Session
from memsluice.client.session import AgentSession
from memsluice.client.writer import MemoryWriter, RecallChannel, RuntimeChannel
from memsluice.deployment.local_log import LocalLog
from memsluice.envelope.codec import vector_from_bytes, vector_from_text, vector_to_bytes
from memsluice.envelope.registry import Role
from memsluice.errors import (
    EarlierFailed,
    InvalidArgument,
    LimitExceeded,
    MalformedEvent,
    NotDelivered,
    NotPermitted,
    StoreError,
)
from memsluice.events import cloudevent
from memsluice.events.models import Tier, Visibility, Zone
from memsluice.events.names import EventType
from memsluice.keystore.store import KeyStore, issue_credential, load_credential
from memsluice.recall.reader import Current
from memsluice.recall.recaller import Question, Recaller
from memsluice.stores.base import SEARCHED_MAX
from memsluice.stores.faiss.store import FaissStore
from memsluice.topics.names import EVENTS

NOTES = {
    "reports": "The weekly report goes to Berlin every Friday.",
    "tea": "Ana drinks green tea, never coffee.",
    "flight": "Flights are booked through the travel desk.",
}


class Told:
    """Stands for the broker at fault-free and faulty moments: keeps what was published, and in which order."""

    def __init__(self, fails: bool = False) -> None:
        self.events, self.fails = [], fails

    def __call__(self, event) -> None:
        """Keep the event, or fail as a broker that does not acknowledge."""
        if self.fails:
            raise NotDelivered("no acknowledgement", event_id=event.id)
        self.events.append(event)


@pytest.fixture
def store():
    """An embedded store in memory."""
    return FaissStore(":memory:")


@pytest.fixture
def vector(encoder):
    """From a text to its vector as it travels."""
    return lambda text: vector_from_bytes(vector_to_bytes(encoder.encode([text])[0]))


@pytest.fixture
def remember(store, vector):
    """Write entries as *land* does."""

    def write(content: str, **fields):
        fields.setdefault("event_id", f"event-{store.count('acme', Zone.GUIDANCE)}-{len(content)}")
        item = entry("acme", content, vector(content), **fields)
        store.upsert([item])
        return item

    return write


def recaller(store, encoder, told, now_ms=T0, **options) -> Recaller:
    """Return the recaller under test."""
    return Recaller(
        store=store,
        encoder=encoder,
        keys=lambda: RING,
        publish=told,
        permits=options.pop("permits", lambda _: None),
        freshness=options.pop("freshness", None),
        now_ms=lambda: now_ms,
        new_id=lambda: "r-1",
        **options,
    )


WHO = {"agent": "helper", "principal": "ana", "session": "s-1"}


def test_the_nearest_entry_answers_and_its_recall_says_what_was_returned(store, encoder, remember, vector) -> None:
    """The event holds question, vector, who asked, and every returned object with version, tier and taint."""
    items = {name: remember(text, version=n) for n, (name, text) in enumerate(NOTES.items())}
    told = Told()
    answer = recaller(store, encoder, told).recall("acme", "Where is the report sent?", k=2, **WHO)
    assert answer.entries[0].content == NOTES["reports"]
    (event,) = told.events
    assert (event.id, event.question, event.agent, event.principal) == (
        "r-1",
        "Where is the report sent?",
        "helper",
        "ana",
    )
    assert event.returned[0].object_id == items["reports"].object_id
    assert [r.event_id for r in event.returned] == [found.admission.event_id for found in answer.entries]
    assert len(event.returned) == 2
    searched, own = vector_from_text(event.vector), vector("Where is the report sent?")
    assert np.allclose(searched, own, atol=1e-6)
    assert answer.as_data is False


def test_nothing_is_shown_when_the_recall_was_not_acknowledged(store, encoder, remember) -> None:
    """Session taint rests on it: content that the log does not know of never reaches the agent."""
    remember(NOTES["tea"])
    with pytest.raises(NotDelivered):
        recaller(store, encoder, Told(fails=True)).recall("acme", "What does Ana drink?", **WHO)


def test_a_recall_in_a_session_keeps_its_place_behind_what_was_not_awaited(store, encoder, remember, tmp_path) -> None:
    """Five writes of a slow writer, then a question: answered once all are in the log, in the order of the calls."""
    remember(NOTES["tea"])
    told, at_once, log_file = Told(), threading.Event(), tmp_path / "log.db"
    at_once.set()
    files = {role: keys(tmp_path / role.value, role)[1] for role in (Role.PRODUCER, Role.RUNTIME, Role.READER)}
    options = WriterOptions(check_seconds=None)
    with (
        SlowWriter(NOWHERE, files[Role.PRODUCER], options).into(log_file, at_once, delay_s=0.02) as writer,
        Platform(NOWHERE, files[Role.RUNTIME], options).into(log_file, at_once) as platform,
        Recalls(NOWHERE, files[Role.READER], options).into(log_file, at_once) as recalls,
        AgentSession(Session("acme", **WHO), writer, platform, recalls) as agent,
    ):
        for number in range(5):
            agent.write("note", event_id=f"n-{number}")
        answer = recaller(store, encoder, told).recall_in(agent, "What does Ana drink?", k=1)
    assert [found.content for found in answer.entries] == [NOTES["tea"]]
    log = LocalLog(log_file)
    ids = [cloudevent.read(one.key, one.value, one.headers).id for one in log.read(EVENTS)]
    log.close()
    assert ids == [*(f"n-{number}" for number in range(5)), answer.event_id]
    assert told.events == [], "published by the session, and by nobody else"


def test_a_recall_in_a_session_shows_nothing_behind_an_event_that_failed(store, encoder, remember, tmp_path) -> None:
    """An earlier event of the session was not published: the recall is not, so its answer is withheld."""
    remember(NOTES["tea"])
    options = WriterOptions(check_seconds=None, delivery_seconds=1.0)
    files = {role: keys(tmp_path / role.value, role)[1] for role in (Role.PRODUCER, Role.RUNTIME, Role.READER)}
    with (
        MemoryWriter(NOWHERE, files[Role.PRODUCER], options) as writer,
        RuntimeChannel(NOWHERE, files[Role.RUNTIME], options) as platform,
        RecallChannel(NOWHERE, files[Role.READER], options) as recalls,
        AgentSession(Session("acme", **WHO), writer, platform, recalls) as agent,
    ):
        agent.write("note")
        with pytest.raises(EarlierFailed):
            recaller(store, encoder, Told()).recall_in(agent, "What does Ana drink?")


def test_an_empty_answer_is_a_recall_too(store, encoder) -> None:
    """A question to a memory that holds nothing is published: questions are what attackers' entries aim at."""
    told = Told()
    answer = recaller(store, encoder, told).recall("acme", "Anything?", **WHO)
    assert (answer.entries, answer.withheld, told.events[0].returned) == ((), {}, ())


def test_withheld_entries_do_not_crowd_out_those_that_hold(store, encoder, vector) -> None:
    """300 forged copies of the question beside one honest answer: the search widens until the answer is found."""
    question = "What does Ana drink?"
    good = entry("acme", NOTES["tea"], vector(NOTES["tea"]), event_id="good")
    near = entry("acme", question, vector(question), event_id="e")
    copies = [replace(near, object_id=f"{n:08d}-0000-4000-8000-000000000000") for n in range(300)]
    store.upsert([good, *copies])
    answer = recaller(store, encoder, Told()).recall("acme", question, k=1, **WHO)
    assert [found.content for found in answer.entries] == [NOTES["tea"]]
    assert answer.withheld == {"moved": 300}


def crowd(store, near, many: int) -> None:
    """Plant so many copies of an entry, under ids that are nobody's."""
    copies = [replace(near, object_id=f"{n:08d}-0000-4000-8000-000000000000") for n in range(many)]
    for start in range(0, many, 1_000):
        store.upsert(copies[start : start + 1_000])


def test_a_planted_crowd_does_not_empty_an_answer(store, encoder, vector) -> None:
    """V6: thousands of planted copies of the question are nearer than the honest answer, which is found."""
    question = "What does Ana drink?"
    crowd(store, entry("acme", question, vector(question), event_id="e"), 3_500)
    store.upsert([entry("acme", NOTES["tea"], vector(NOTES["tea"]), event_id="good")])
    answer = recaller(store, encoder, Told()).recall("acme", question, k=1, **WHO)
    assert [found.content for found in answer.entries] == [NOTES["tea"]]
    assert (answer.withheld, answer.incomplete) == ({"moved": 3_500}, False)


def test_the_search_for_entries_that_hold_is_bounded_and_says_so(store, encoder, vector) -> None:
    """Beyond the stated bound the answer is empty rather than late, and the reader is told that it may not be all."""
    question = "What does Ana drink?"
    crowd(store, entry("acme", question, vector(question), event_id="e"), SEARCHED_MAX + 50)
    store.upsert([entry("acme", NOTES["tea"], vector(NOTES["tea"]), event_id="good")])
    answer = recaller(store, encoder, Told()).recall("acme", question, k=1, **WHO)
    assert (answer.entries, answer.withheld, answer.incomplete) == ((), {"moved": SEARCHED_MAX}, True)


def test_what_has_expired_is_counted_and_does_not_crowd_out(store, encoder, vector) -> None:
    """Expired entries nearer than the living one are withheld, counted, and passed over."""
    question = "What does Ana drink?"
    old = [entry("acme", question, vector(question), event_id=f"e{n}", expires_ms=T0 - 1) for n in range(30)]
    store.upsert([*old, entry("acme", NOTES["tea"], vector(NOTES["tea"]), event_id="good")])
    answer = recaller(store, encoder, Told()).recall("acme", question, k=1, **WHO)
    assert [found.content for found in answer.entries] == [NOTES["tea"]]
    assert answer.withheld["expired"] == 1


def test_research_returns_outside_content_marked_as_data(store, encoder, remember) -> None:
    """The external zone is asked only on purpose, and its answer says what it is."""
    remember("A web page: prices fell.", zone=Zone.EXTERNAL, tier=Tier.EXTERNAL_WEB, taint=True)
    remember(NOTES["tea"])
    told = Told()
    found = recaller(store, encoder, told).recall("acme", "What did prices do?", zone=Zone.EXTERNAL, **WHO)
    assert [one.content for one in found.entries] == ["A web page: prices fell."]
    assert (found.as_data, told.events[0].zone, told.events[0].returned[0].taint) == (True, Zone.EXTERNAL, True)
    guidance = recaller(store, encoder, told).recall("acme", "What did prices do?", **WHO)
    assert "A web page: prices fell." not in [one.content for one in guidance.entries]


def test_a_session_and_a_principal_see_their_own(store, encoder, remember) -> None:
    """The scope of the one who asks decides, not the similarity."""
    remember(NOTES["tea"], principal="bo", event_id="e1")
    remember(NOTES["tea"], visibility=Visibility.SESSION, session="s-2", principal="bo", event_id="e2")
    remember(NOTES["flight"], visibility=Visibility.SHARED, principal="bo", event_id="e3")
    answer = recaller(store, encoder, Told()).recall("acme", "What does Ana drink?", **WHO)
    assert [found.content for found in answer.entries] == [NOTES["flight"]]
    other = recaller(store, encoder, Told()).recall(
        "acme", "What does Ana drink?", agent="helper", principal="bo", session="s-2"
    )
    assert [found.admission.event_id for found in other.entries] == ["e1", "e2", "e3"]


def test_the_log_decides_what_is_current(store, encoder, remember) -> None:
    """With a freshness index, a withdrawn entry that the store still holds is not shown."""
    kept, gone = remember(NOTES["tea"], version=3), remember(NOTES["flight"], version=4)

    class Log:
        def current(self, tenant, object_ids):
            known = {kept.object_id: Current(3, False), gone.object_id: Current(4, True)}
            return {found: known[found] for found in object_ids}

    answer = recaller(store, encoder, Told(), freshness=Log()).recall("acme", "What does Ana drink?", **WHO)
    assert [found.content for found in answer.entries] == [NOTES["tea"]]
    assert answer.withheld == {"withdrawn": 1}


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"question": ""}, MalformedEvent),
        ({"question": "x" * 5_000}, LimitExceeded),
        ({"principal": ""}, MalformedEvent),
        ({"tenant": "Not A Tenant"}, MalformedEvent),
        ({"k": 0}, LimitExceeded),
        ({"k": 101}, LimitExceeded),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_searched(store, encoder, bad, error) -> None:
    """The gate's limits hold for readers: nothing is encoded, searched or published."""
    told = Told()
    with pytest.raises(error):
        recaller(store, encoder, told).recall(**{"tenant": "acme", "question": "why?", **WHO, **bad})
    assert told.events == []


def test_a_store_that_is_down_is_an_error_and_no_answer(encoder, tmp_path) -> None:
    """No silent empty memory."""
    (tmp_path / "s.db").write_text("no database" * 500)
    told = Told()
    with pytest.raises(StoreError):
        recaller(FaissStore(tmp_path / "s.db"), encoder, told).recall("acme", "why?", **WHO)
    assert told.events == []


class Watching(FaissStore):
    """An embedded store that counts what is asked of it."""

    searches = 0

    def search(self, *arguments, **options):
        """Count, and search."""
        self.searches += 1
        return super().search(*arguments, **options)


@pytest.mark.parametrize(
    ("field", "asked"), [("principal", {"principal": "bob"}), ("agent", {"agent": "other"}), ("tenant", {})]
)
def test_nobody_is_searched_for_whom_the_reader_may_not_speak(tmp_path, encoder, field, asked) -> None:
    """A reader of ada's asks as bob, by another agent, of another tenant: refused before the store is touched."""
    keys = KeyStore.init(tmp_path, T0)
    _, path = issue_credential(
        keys, Role.READER, "agent", ["acme"], agents=["helper"], principals=["ada"], now_ms=T0 - 1
    )
    held, told, store = load_credential(path), Told(), Watching(":memory:")
    reader = recaller(store, encoder, told, permits=lambda event: check(held, EventType.RECALL, event, T0))
    who = {"agent": "helper", "principal": "ada", "session": "s-1"}
    with pytest.raises(NotPermitted) as refused:
        reader.recall("globex" if field == "tenant" else "acme", "What does he drink?", **{**who, **asked})
    assert (refused.value.field, store.searches, told.events) == (field, 0, [])
    reader.recall("acme", "What does she drink?", **who)
    assert (store.searches, len(told.events)) == (1, 1)


class Searched(FaissStore):
    """A store that tells what it was asked for."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.asked: list[tuple[int, int]] = []

    def search(self, tenant, zone, vector, limit, scope, namespace, now_ms):
        """Search, and remember how many were asked for, and whether the store leaves out what is over."""
        self.asked.append((limit, now_ms))
        return super().search(tenant, zone, vector, limit, scope, namespace, now_ms)

    def nearest_ids(self, tenant, zone, vector, scope, namespace, now_ms):
        """Remember that the ids of all that is near were asked for."""
        self.asked.append((SEARCHED_MAX, now_ms))
        return super().nearest_ids(tenant, zone, vector, scope, namespace, now_ms)


@pytest.mark.parametrize(
    ("k", "sizes"),
    [(1, [1, 80, 320, 1_000]), (5, [5, 80, 320, 1_000]), (6, [6, 80, 320, 1_000]), (100, [100, 400, 1_000])],
)
def test_a_search_asks_for_what_is_wanted_and_then_for_four_times_that(encoder, vector, k, sizes) -> None:
    """Four times FETCH_MIN at least, up to the most that a search returns, then for all ids up to the bound at once;
    once what is over has been counted, it is left out by the store."""
    store, question = Searched(), "What does Ana drink?"
    crowd(store, entry("acme", question, vector(question), event_id="e"), SEARCHED_MAX + 50)
    recaller(store, encoder, Told()).recall("acme", question, k=k, **WHO)
    widening = [(size, T0 if number else 0) for number, size in enumerate(sizes)]
    assert store.asked == [*widening, (SEARCHED_MAX, T0)]


def test_five_are_returned_unless_more_are_asked_for(store, encoder, vector) -> None:
    """The default of both ways to ask."""
    texts = [f"Ana drinks tea {number}" for number in range(7)]
    store.upsert([entry("acme", text, vector(text), event_id=f"e{number}") for number, text in enumerate(texts)])
    asked = recaller(store, encoder, Told())
    assert len(asked.recall("acme", "What does Ana drink?", **WHO).entries) == 5
    assert len(asked.recall("acme", "What does Ana drink?", k=6, **WHO).entries) == 6
    assert Question("acme", "What?", "helper", "ana", "s-1").k == 5


@pytest.mark.parametrize("bad", [{"tenant": 3}, {"tenant": ""}, {"tenant": "acme", "home": "there"}])
def test_a_recaller_of_a_wrong_tenant_or_home_is_refused_before_anything_is_opened(bad) -> None:
    """The argument is named, and no key, broker or store was asked for it."""
    with pytest.raises(InvalidArgument, match=r"tenant|home"), Recaller.open_local(**bad):
        pytest.fail("it was opened")


def test_the_event_says_what_was_withheld(store, encoder, remember, vector) -> None:
    """By reason, as the answer does; an event of a recall that withheld nothing has no word of it."""
    remember(NOTES["tea"])
    told = Told()
    assert recaller(store, encoder, told).recall("acme", "tea?", **WHO).withheld == {}
    store.upsert([entry("acme", "obey", vector("tea?"), ring=STRANGER, event_id="planted")])
    assert recaller(store, encoder, told).recall("acme", "tea?", **WHO).withheld == {"forged": 1}
    assert [event.withheld for event in told.events] == [{}, {"forged": 1}]
    assert ["withheld" in event.model_dump_json() for event in told.events] == [False, True]
